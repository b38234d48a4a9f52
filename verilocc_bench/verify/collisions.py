"""Which lanes of an answer collide: every pair of registers, at its first point.

One sweep over the points at which something begins, ends or is defined, with
the set of lanes that hold each unit; every definition collides with the others
of the set. Linear in what there is to sweep and in the collisions, but for one
sort; units whose lanes share no point are passed over. Thousands of lanes in
one unit have millions of collisions: the sweep ends after a number of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem, iterate_bits

__all__ = ["Collision", "CollisionFinder"]

_END, _BEGIN, _DEFINE = range(3)
"""What happens to a lane at a point, in the order in which it counts."""


STEPS = 1_000_000
"""A sweep looks at so many pairs of a definition and another lane in its unit."""


class Collision(NamedTuple):
    """One lane destroys another, which is live in the same unit at the same point.

    Where both are defined there, the one of the higher register is the victim.
    """

    point: int
    unit: int
    destroyer: int
    victim: int


class CollisionFinder:
    """Finds the collisions of any number of answers for one problem.

    `owners[lane]` is the virtual register of a lane; fixed lanes are numbered
    on, each for itself.
    """

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.live, self.defined = problem.liveness.live, problem.liveness.defined
        self.widths = [c.width for c in problem.function.virtual_registers]
        self.owners = [number for number, width in enumerate(self.widths) for _ in range(width)]
        fixed = problem.liveness.fixed_lanes
        self.owners += range(len(self.widths), len(self.widths) + len(fixed))
        first_unit = problem.placements.first_unit
        self.fixed = [
            (lane, first_unit[file] + index)
            for lane, (file, index) in enumerate(fixed, problem.liveness.virtual_lane_count)
        ]
        self._changes: dict[int, list[tuple[int, int]]] = {}

    def find(self, units: Mapping[int, int]) -> tuple[list[Collision], bool]:
        """The collisions of registers in these base units, one for each pair of registers.

        In the order of their points; and whether these are all.
        """
        changes: list[tuple[int, int, int, int]] = []
        for unit, lanes in self._occupants(units).items():
            held = 0
            for lane in lanes:
                mask = self.live[lane]
                if held & mask:
                    for each in lanes:
                        changes += [
                            (point, what, unit, each) for point, what in self._changes_of(each)
                        ]
                    break
                held |= mask
        changes.sort()
        return self._sweep(changes)

    def _occupants(self, units: Mapping[int, int]) -> dict[int, list[int]]:
        """The lanes in each unit."""
        occupants: dict[int, list[int]] = {}
        offsets = self.problem.liveness.lane_offsets
        for number, base in units.items():
            lane = offsets[number]
            for unit in range(base, base + self.widths[number]):
                occupants.setdefault(unit, []).append(lane)
                lane += 1
        for lane, unit in self.fixed:
            occupants.setdefault(unit, []).append(lane)
        return occupants

    def _sweep(self, changes: Iterable[tuple[int, int, int, int]]) -> tuple[list[Collision], bool]:
        owners = self.owners
        found: dict[tuple[int, int], Collision] = {}
        holding: dict[int, set[int]] = {}
        steps = 0
        for point, what, unit, lane in changes:
            if what == _BEGIN:
                holding.setdefault(unit, set()).add(lane)
            elif what == _END:
                holding[unit].discard(lane)
            elif len(others := holding.get(unit, ())) > 1:
                steps += len(others)
                if steps > STEPS:
                    return list(found.values()), False
                owner = owners[lane]
                for other in others:
                    if other != lane:
                        theirs = owners[other]
                        pair = (owner, theirs) if owner < theirs else (theirs, owner)
                        if pair not in found:
                            found[pair] = Collision(point, unit, lane, other)
        return list(found.values()), True

    def _changes_of(self, lane: int) -> list[tuple[int, int]]:
        """(point, what happens): where a lane begins and ends to live, and is defined."""
        changes = self._changes.get(lane)
        if changes is None:
            live = self.live[lane]
            # A bit is set wherever the lane is live at one of two neighbours alone.
            edges = list(iterate_bits(live ^ live << 1))
            changes = [(point, _BEGIN) for point in edges[::2]]
            changes += [(point, _END) for point in edges[1::2]]
            changes += [(point, _DEFINE) for point in iterate_bits(self.defined[lane])]
            self._changes[lane] = changes
        return changes
