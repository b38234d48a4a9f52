"""The collisions of an answer: every pair of registers, at its first point.

For each unit, a sweep visits the points at which a lane begins, ends or is
defined, with the set of lanes that hold the unit. Every definition collides
with the other lanes of the set. The cost is one sort, and linear in the visited
points and the collisions. Units whose lanes share no point are skipped. Since
thousands of lanes in one unit have millions of collisions, the sweep ends after
a number of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem, iterate_bits

_END, _BEGIN, _DEFINE = range(3)
"""The changes of a lane at a point, in the order in which they count."""


STEPS = 1_000_000
"""The most pairs of a definition and another lane in its unit that a sweep looks at."""


class Collision(NamedTuple):
    """One lane destroys another, which is live in the same unit at the same point.

    If both are defined there, the lane of the higher register is the victim.
    """

    point: int
    unit: int
    destroyer: int
    victim: int


class CollisionFinder:
    """Finds the collisions of any number of answers for one problem.

    `owners[lane]` is the virtual register of a lane. Each fixed lane has a number
    of its own, after the virtual registers.
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

        Returns them in the order of their points, and True if they are all.
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
        """The changes of a lane as (point, change): it becomes live, dies, or is defined."""
        changes = self._changes.get(lane)
        if changes is None:
            live = self.live[lane]
            # A bit is set where the lane is live at only one of two neighbouring points.
            edges = list(iterate_bits(live ^ live << 1))
            changes = [(point, _BEGIN) for point in edges[::2]]
            changes += [(point, _END) for point in edges[1::2]]
            changes += [(point, _DEFINE) for point in iterate_bits(self.defined[lane])]
            self._changes[lane] = changes
        return changes
