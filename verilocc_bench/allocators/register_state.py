"""Placing virtual registers one by one: where each may go, given those placed so far.

The rule is the verifier's, exactly. Two lanes cannot share a unit where one
is defined while the other is live (analysis.liveness), and tied operands must
be in one register. So a base that is not legal given what is placed stays
wrong whatever follows, and if all virtual registers are placed at legal bases
the assignment is valid.

Cost: two bit-set operations for each lane and base tried; a pass over 1,700
virtual registers takes a few hundredths of a second. What is in the way of one
takes as long as the registers are many that it can collide with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import FixedUnits, Function, Operand, VirtualLanes

__all__ = ["FIXED", "Lifetime", "RegisterState", "base_distances", "tie_distances"]

Lifetime = tuple[int, int]
"""Where a lane is live and where it is defined, as sets of points."""

FIXED = -1
"""Stands for physical registers where bases are compared: their base is unit 0."""


class RegisterState:
    """Which virtual registers of a problem are placed, and what they leave free.

    Bases and units are numbered as in `problem.placements`; `legal` speaks
    of names as well. `place` takes bases that are not legal too, as long as
    their units exist, so that it can follow answers that are wrong.
    """

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        liveness, placements = problem.liveness, problem.placements
        self._live = [0] * placements.unit_count
        self._defined = [0] * placements.unit_count
        fixed = enumerate(liveness.fixed_lanes, liveness.virtual_lane_count)
        self._fixed: dict[int, Lifetime] = {}
        for lane, (file, index) in fixed:
            unit = placements.first_unit[file] + index
            self._fixed[unit] = liveness.live[lane], liveness.defined[lane]
            self._live[unit], self._defined[unit] = self._fixed[unit]
        self._placed: dict[int, int] = {}
        self._occupants: list[set[int]] = [set() for _ in self._live]
        self._ties = tie_distances(problem)
        self._collisions = _Collisions(problem)

    def copy(self) -> RegisterState:
        """A state of its own that holds the same."""
        twin = RegisterState.__new__(RegisterState)
        twin.problem, twin._ties, twin._fixed = self.problem, self._ties, self._fixed
        twin._collisions = self._collisions
        twin._occupants = [others.copy() for others in self._occupants]
        twin._live, twin._defined = self._live.copy(), self._defined.copy()
        twin._placed = self._placed.copy()
        return twin

    @property
    def placed(self) -> Mapping[int, int]:
        """The base of each placed virtual register, in the order of placement."""
        return MappingProxyType(self._placed)

    def lifetimes(self, register: int) -> tuple[Lifetime, ...]:
        """For each lane where it is live and where it is defined."""
        return self._collisions.lifetimes[register]

    def bases(self, register: int) -> Mapping[int, str]:
        """The bases of a register's class that its ties to what is placed allow, with names."""
        register_class = self.problem.function.virtual_registers[register]
        bases = self.problem.placements.legal[register_class]
        distances = self._ties.get(register, {})
        if distances is None:
            return {}
        for other, distance in distances.items():
            other_base = 0 if other == FIXED else self._placed.get(other)
            if other_base is not None:
                base = other_base + distance
                bases = {base: bases[base]} if base in bases else {}
        return bases

    def legal(self, register: int) -> dict[int, str]:
        """The bases at which a virtual register collides with nothing placed: unit to name.

        In the order of its class.
        """
        bases = self.bases(register)
        lanes = self.lifetimes(register)
        live, defined = self._live, self._defined
        if len(lanes) > 1:
            return {base: name for base, name in bases.items() if self._fits(lanes, base)}
        lane_live, lane_defined = lanes[0]
        return {
            base: name
            for base, name in bases.items()
            if not live[base] & lane_defined and not defined[base] & lane_live
        }

    def is_used(self, unit: int) -> bool:
        """True if a lane is ever live in a unit, of the function's own or of what is placed."""
        return bool(self._live[unit])

    def is_free(self, lifetime: Lifetime, unit: int) -> bool:
        """True if a lane so lived collides with nothing in a unit, and that is not reserved."""
        live, defined = lifetime
        collides = self._live[unit] & defined or self._defined[unit] & live
        return not collides and unit not in self.problem.placements.reserved

    def idle_points(self, lifetime: Lifetime, unit: int) -> int:
        """At how many points a unit would hold nothing just before and just after a lane's life.

        From the last point at which it holds something earlier, or the first
        of the function, and to the first at which it does so later, or the last.
        """
        own, held = lifetime[0] | lifetime[1], self._live[unit] | self._defined[unit]
        if not own:
            return 0
        first, end = (own & -own).bit_length() - 1, own.bit_length()
        before = first - (held & ((1 << first) - 1)).bit_length()
        later = held >> end
        if later:
            return before + (later & -later).bit_length() - 1
        return before + len(self.problem.liveness.points) - end

    def place(self, register: int, base: int) -> None:
        """Puts a virtual register, not placed yet, at a base whose units exist, legal or not."""
        if register in self._placed:
            raise ValueError(f"%{register} is placed already")
        lanes = self.lifetimes(register)
        end = base + len(lanes)
        if not 0 <= base <= end <= len(self._live):
            raise ValueError(f"%{register} at unit {base} ends beyond the last unit")
        for unit, (live, defined) in enumerate(lanes, base):
            self._live[unit] |= live
            self._defined[unit] |= defined
            self._occupants[unit].add(register)
        self._placed[register] = base

    def evict(self, register: int) -> None:
        """Takes back the placement of a virtual register. Raises KeyError if it has none."""
        base = self._placed.pop(register)
        for unit in range(base, base + len(self.lifetimes(register))):
            others = self._occupants[unit]
            others.remove(register)
            live, defined = self._fixed.get(unit, (0, 0))
            for other in others:
                its_live, its_defined = self.lifetimes(other)[unit - self._placed[other]]
                live |= its_live
                defined |= its_defined
            self._live[unit], self._defined[unit] = live, defined

    def blockers(self, register: int) -> dict[int, set[int]]:
        """For each base of the class the placed virtual registers that are in its way.

        In the order of the class, without the bases that the function's own
        physical registers take, or ties to them.
        """
        own_class = self.problem.function.virtual_registers[register]
        lanes, tied = self.lifetimes(register), self._ties.get(register, {})
        if tied is None:
            return {}
        found: dict[int, set[int]] = {
            base: set()
            for base in self.problem.placements.legal[own_class]
            if tied.get(FIXED, base) == base and not self._is_fixed(lanes, base)
        }
        for other, distance in tied.items():
            if other in self._placed:
                due = self._placed[other] + distance
                for base, others in found.items():
                    if base != due:
                        others.add(other)
        for other, distances in self._collisions.distances(register):
            its_base = self._placed.get(other)
            if its_base is not None:
                for distance in distances:
                    others_there = found.get(its_base + distance)
                    if others_there is not None:
                        others_there.add(other)
        return found

    def _is_fixed(self, lanes: Sequence[Lifetime], base: int) -> bool:
        """True if the function's own physical registers collide with lanes at a base."""
        for unit, (live, defined) in enumerate(lanes, base):
            fixed_live, fixed_defined = self._fixed.get(unit, (0, 0))
            if fixed_live & defined or fixed_defined & live:
                return True
        return False

    def _fits(self, lanes: Sequence[Lifetime], base: int) -> bool:
        live, defined = self._live, self._defined
        for unit, (lane_live, lane_defined) in enumerate(lanes, base):
            if live[unit] & lane_defined or defined[unit] & lane_live:
                return False
        return True


class _Collisions:
    """At which distances two virtual registers of a function collide, found when first asked."""

    def __init__(self, problem: AllocationProblem) -> None:
        liveness, classes = problem.liveness, problem.function.virtual_registers
        lanes = list(zip(liveness.live, liveness.defined, strict=True))
        ends = [
            first + each.width for first, each in zip(liveness.lane_offsets, classes, strict=False)
        ]
        self.lifetimes: list[tuple[Lifetime, ...]] = [
            tuple(lanes[end - each.width : end]) for end, each in zip(ends, classes, strict=True)
        ]
        self._points = [
            reduce(or_, (live | defined for live, defined in each), 0) for each in self.lifetimes
        ]
        self._known: dict[int, list[tuple[int, tuple[int, ...]]]] = {}

    def distances(self, register: int) -> list[tuple[int, tuple[int, ...]]]:
        """Those it can collide with, and by how much its base is then above theirs."""
        if register not in self._known:
            points = self._points[register]
            found = (
                (other, tuple(sorted(self._between(register, other))))
                for other, its_points in enumerate(self._points)
                if other != register and its_points & points
            )
            self._known[register] = [each for each in found if each[1]]
        return self._known[register]

    def _between(self, register: int, other: int) -> set[int]:
        return {
            its_lane - lane
            for lane, (live, defined) in enumerate(self.lifetimes[register])
            for its_lane, (its_live, its_defined) in enumerate(self.lifetimes[other])
            if live & its_defined or defined & its_live
        }


def base_distances(
    problem: AllocationProblem, pairs: Iterable[tuple[Operand, Operand]]
) -> dict[int, list[tuple[int, int]]]:
    """What bases must be for the operands of each pair to start in one unit.

    For each virtual register the others that it is paired with, and its base
    less theirs; FIXED stands for physical registers, with base 0.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for left, right in pairs:
        a, a_place = _anchor(problem, left)
        b, b_place = _anchor(problem, right)
        found.setdefault(a, []).append((b, b_place - a_place))
        found.setdefault(b, []).append((a, a_place - b_place))
    return found


def tie_distances(problem: AllocationProblem) -> dict[int, dict[int, int] | None]:
    """For each tied virtual register its base less that of each register it is tied to.

    Ties of ties are among them. None stands for ties that contradict each other.
    """
    edges = base_distances(problem, _unequal_ties(problem.function))
    return {register: _reach(edges, register) for register in edges if register != FIXED}


def _reach(edges: Mapping[int, list[tuple[int, int]]], start: int) -> dict[int, int] | None:
    found = {start: 0}
    pending = [start]
    while pending:
        register = pending.pop()
        for other, distance in edges[register]:
            total = found[register] + distance
            if other not in found:
                found[other] = total
                if other != FIXED:
                    pending.append(other)
            elif found[other] != total:
                return None
    del found[start]
    return found


def _unequal_ties(function: Function) -> Iterator[tuple[Operand, Operand]]:
    """(definition, use) of the ties that equal operands do not already meet."""
    for _, _, instruction in function.instructions():
        for use in instruction.uses:
            if use.tied_to is not None:
                definition = instruction.definitions[use.tied_to]
                if definition.location != use.location:
                    yield definition, use


def _anchor(problem: AllocationProblem, operand: Operand) -> tuple[int, int]:
    """The register of an operand, and its first unit's distance from the base."""
    location = operand.location
    if isinstance(location, VirtualLanes):
        return location.register, location.first
    assert isinstance(location, FixedUnits)
    return FIXED, problem.placements.first_unit[location.file] + location.first
