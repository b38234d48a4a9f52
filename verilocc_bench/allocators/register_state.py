"""Placing virtual registers one by one: where each may go, given those placed so far.

The rule is exactly the verifier's. Two lanes cannot share a unit if one is
defined while the other is live (analysis.liveness), and tied operands must lie
in one register. So a base that is illegal beside the placed registers stays
illegal, and an assignment is valid if every virtual register was placed at a
legal base.

Cost: two bit-set operations for each lane and base; a pass over 1,700 virtual
registers takes a few hundredths of a second. Finding the blockers of a register
is linear in the registers that it can collide with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.ir import FixedUnits, Function, Operand, VirtualLanes

Lifetime = tuple[int, int]
"""The points at which a lane is live, and those at which it is defined, as bit masks."""

FIXED = -1
"""The register number of physical registers in comparisons of bases: their base is unit 0."""


class RegisterState:
    """The placed virtual registers of a problem, and the units that they leave free.

    Bases and units are numbered as in `problem.placements`. `place` also takes
    illegal bases whose units exist, so that it can follow wrong answers.
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
        """An independent copy of the state."""
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
        """The lifetime of each lane of a register."""
        return self._collisions.lifetimes[register]

    def bases(self, register: int) -> Mapping[int, str]:
        """The bases of a register's class that its ties to placed registers allow, with names."""
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
        """The bases at which a virtual register collides with no placed register.

        Maps units to names, in the order of its class.
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

    def place(self, register: int, base: int) -> None:
        """Places a virtual register at a base, legal or not.

        Raises ValueError if it is placed already, or if a unit does not exist.
        """
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
        """For each base of the class, the placed virtual registers that block it.

        The bases are in the order of the class, without those that the function's
        own physical registers block, directly or by ties.
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
    """The distances at which two virtual registers collide, computed at first use."""

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
        """The registers that it can collide with, and its base less theirs when it does."""
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
    """The distances of bases at which the operands of each pair start in one unit.

    Maps each virtual register to (other register, its base less the other's).
    FIXED stands for physical registers, with base 0.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for left, right in pairs:
        a, a_place = _anchor(problem, left)
        b, b_place = _anchor(problem, right)
        found.setdefault(a, []).append((b, b_place - a_place))
        found.setdefault(b, []).append((a, a_place - b_place))
    return found


def tie_distances(problem: AllocationProblem) -> dict[int, dict[int, int] | None]:
    """For each tied virtual register, its base less the base of each register tied to it.

    Ties through other registers are included. None stands for contradicting ties.
    """
    edges = base_distances(problem, unequal_ties(problem.function))
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


def unequal_ties(function: Function) -> Iterator[tuple[Operand, Operand]]:
    """(definition, use) of the ties whose two operands differ."""
    for tie in tied_operands(function):
        yield tie.definition, tie.use


def _anchor(problem: AllocationProblem, operand: Operand) -> tuple[int, int]:
    """The register of an operand, and the distance of its first unit from the base."""
    location = operand.location
    if isinstance(location, VirtualLanes):
        return location.register, location.first
    assert isinstance(location, FixedUnits)
    return FIXED, problem.placements.first_unit[location.file] + location.first
