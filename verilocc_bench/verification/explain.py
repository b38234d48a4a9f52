"""The findings about a wrong answer, in the order of the program.

The explainer is slower than the fast check, which calls it only for wrong
answers. For each pair of registers that collide it describes the first point at
which they do: the operand that destroys, the lane that it writes, the lane that
it destroys, where that lane got its value, and where each lane is next read
(verification.value_tracker).

Cost: linear in the answer; a sweep over every unit whose lanes share a point
(verification.collisions); 20 microseconds for each finding that is described, and 2
for one that is only counted. If the walks to definitions and readers lead
through thousands of blocks, fewer findings are described than were asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.conditions import Literal
from verilocc_bench.analysis.ties import Tie
from verilocc_bench.edits.findings import Finding, FindingKind, InvolvedLane, Place
from verilocc_bench.ir import FixedUnits, Operand
from verilocc_bench.verification.collisions import Collision, CollisionFinder
from verilocc_bench.verification.misplacement import misplacement
from verilocc_bench.verification.value_tracker import ValueTracker

_VIRTUAL = re.compile(r"%(0|[1-9]\d{0,8})", re.ASCII)

PLACES_TOLD = 3
"""The most definitions that a message names; the finding itself has all of them."""

STEPS = 300_000
"""The most blocks and named places in the walks of all findings that are described together; one
finding is always described."""


class _Moment(NamedTuple):
    """The common part of all findings at one place.

    `early` is True before the instruction reads its uses. `known` is the
    predicate value that holds before an instruction that acts; `left` is the
    part of it that holds afterwards.
    """

    place: Place
    early: bool
    text: str
    definitions: tuple[Operand, ...]
    known: Literal | None
    left: Literal | None


class _Mismatch(NamedTuple):
    """Tied operands that begin in different units."""

    tie: Tie
    definition_unit: int
    use_unit: int


_Fault = _Mismatch | Collision


class Explanation(NamedTuple):
    """The findings about an answer.

    `told` are described. `untold` counts the others by kind; if `complete` is
    False there are more than it counts.
    """

    told: tuple[Finding, ...]
    untold: dict[FindingKind, int]
    complete: bool


class Explainer:
    """Explains any number of wrong answers for one problem."""

    def __init__(self, problem: AllocationProblem, ties: Sequence[Tie]) -> None:
        self.problem, self.ties = problem, ties
        self._virtual_lane_count = problem.liveness.virtual_lane_count
        self._moments: dict[tuple[Place, bool], _Moment] = {}
        self._definitions: dict[tuple[int, Place], InvolvedLane] = {}
        self._values: dict[tuple[int, int, int], tuple[InvolvedLane, str]] = {}

    @cached_property
    def _finder(self) -> CollisionFinder:
        return CollisionFinder(self.problem)

    @cached_property
    def _tracker(self) -> ValueTracker:
        return ValueTracker(self.problem)

    @cached_property
    def _lane_names(self) -> list[str]:
        """The name of each lane: `%4`, `%5.1`, or of the physical unit."""
        problem = self.problem
        names = [
            f"%{number}.{lane}" if register_class.width > 1 else f"%{number}"
            for number, register_class in enumerate(problem.function.virtual_registers)
            for lane in range(register_class.width)
        ]
        first_unit = problem.placements.first_unit
        fixed = problem.liveness.fixed_lanes
        return names + [self._unit_names[first_unit[file] + index] for file, index in fixed]

    @cached_property
    def _register_names(self) -> list[str]:
        """The register of each lane: `%4`, or the physical unit."""
        return [name.partition(".")[0] for name in self._lane_names]

    @cached_property
    def _unit_names(self) -> list[str]:
        placements = self.problem.placements
        return [placements.unit_name(unit) for unit in range(placements.unit_count)]

    def explain(self, answer: Mapping[str, str], at_most: int | None = None) -> Explanation:
        """The findings in the order of `Finding.sort_key`.

        With `at_most`, describes no more than that many of the first findings.
        """
        findings = list(self._strangers(answer))
        by_name = self.problem.placements.by_name
        units: dict[int, int] = {}
        for number, register_class in enumerate(self.problem.function.virtual_registers):
            name = answer.get(f"%{number}")
            unit = None if name is None else by_name[register_class].get(name)
            if unit is None:
                finding, unit = misplacement(self.problem, number, register_class, name)
                findings.append(finding)
            if unit is not None:
                units[number] = unit
        findings.sort(key=Finding.sort_key)
        collisions, complete = self._finder.find(units)
        faults: list[_Fault] = [*self._mismatches(units), *collisions]
        wanted = None if at_most is None else max(at_most - len(findings), 0)
        faults = self._ordered(faults, wanted)
        told = self._told(faults, wanted)
        untold = Counter(map(self._kind, faults[len(told) :]))
        findings += sorted(told, key=Finding.sort_key)
        untold.update(finding.kind for finding in findings[at_most:] if at_most is not None)
        return Explanation(tuple(findings[:at_most]), dict(sorted(untold.items())), complete)

    def _told(self, faults: Sequence[_Fault], wanted: int | None) -> list[Finding]:
        """The findings of the first faults."""
        found: list[Finding] = []
        steps = -self._tracker.steps if wanted else 0
        for fault in faults[:wanted]:
            if isinstance(fault, Collision):
                found.append(self.collision(fault))
            else:
                found.append(self.mismatch(*fault))
            steps += sum(len(lane.defined) for lane in found[-1].lanes)
            if wanted is not None and self._tracker.steps + steps > STEPS:
                break
        return found

    def _ordered(self, faults: list[_Fault], count: int | None) -> list[_Fault]:
        """Sorts faults until the first `count` are those that come first among the findings."""
        if count is None or len(faults) <= count:
            return sorted(faults, key=self._place)
        faults.sort(key=self._place)
        if count == 0:
            return faults
        # The faults of the instruction at the boundary still need the order of their findings.
        place = self._place(faults[count - 1])
        start = bisect_left(faults, place, key=self._place)
        end = bisect_right(faults, place, key=self._place)
        faults[start:end] = sorted(faults[start:end], key=self._sort_key)
        return faults

    def _place(self, fault: _Fault) -> Place:
        if isinstance(fault, Collision):
            return self.problem.liveness.points[fault.point]
        return fault.tie.block, fault.tie.instruction

    def _sort_key(self, fault: _Fault) -> tuple[object, ...]:
        """The key by which Finding.sort_key orders the faults of one place."""
        if isinstance(fault, Collision):
            names = [self._register_names[lane] for lane in (fault.destroyer, fault.victim)]
            unit, operand = fault.unit, 0
        else:
            names = [*_registers(fault.tie.definition), *_registers(fault.tie.use)]
            unit, operand = fault.definition_unit, fault.tie.operand
        numbers = [int(match[1]) for name in names if (match := _VIRTUAL.fullmatch(name))]
        return numbers, self._kind(fault), names, self._unit_names[unit], operand

    def _strangers(self, answer: Mapping[str, str]) -> Iterator[Finding]:
        count = len(self.problem.function.virtual_registers)
        for key in answer:
            if not (match := _VIRTUAL.fullmatch(key)) or int(match[1]) >= count:
                yield Finding(
                    FindingKind.UNKNOWN_VIRTUAL_REGISTER,
                    f"{key[:40]} is not a virtual register: the function has {count} of them",
                    registers=(key[:40],),
                )

    def _mismatches(self, units: Mapping[int, int]) -> Iterator[_Mismatch]:
        """The tied operands that do not lie in one register."""
        for tie in self.ties:
            left, right = self._unit(tie.definition, units), self._unit(tie.use, units)
            if left is not None and right is not None and left != right:
                yield _Mismatch(tie, left, right)

    def _unit(self, operand: Operand, units: Mapping[int, int]) -> int | None:
        """The first unit of an operand; `units` are the base units of virtual registers."""
        location = operand.location
        if isinstance(location, FixedUnits):
            return self.problem.placements.first_unit[location.file] + location.first
        base = units.get(location.register)
        return None if base is None else base + location.first

    def mismatch(self, tie: Tie, left: int, right: int) -> Finding:
        """The finding of tied operands that start in these two units."""
        moment = self._moment((tie.block, tie.instruction), early=True)
        lanes = self._tracker.lanes
        written = self._written(lanes(tie.definition.location)[0], moment)
        read, history = self._held(lanes(tie.use.location)[0], moment)
        unit, other = self._unit_names[left], self._unit_names[right]
        return Finding(
            FindingKind.TIED_MISMATCH,
            f"{moment.text} writes {_put(written, unit)}, tied to its use of "
            f"{read.name if read.name == other else f'{read.name} in {other}'}"
            f"{f', {history}' if read.defined else ''}: the two must be in one register",
            *moment.place,
            (*_registers(tie.definition), *_registers(tie.use)),
            unit,
            tie.operand,
            (written, read),
        )

    def collision(self, collision: Collision) -> Finding:
        """The finding of two lanes that collide."""
        liveness = self.problem.liveness
        point, unit_number, destroyer, victim = collision
        place = liveness.points[point]
        moment = self._moment(place, early=self._is_early(point))
        unit = self._unit_names[unit_number]
        written = self._written(destroyer, moment)
        if liveness.defined[victim] >> point & 1:
            held = self._written(victim, moment)
            both = f"both {written.name} and {_owned(held, unit)}"
            verb = f"writes {both} to {unit}" if place[1] >= 0 else f"leaves {both} in {unit}"
            message = f"{moment.text} {verb}: {_reading(written)}, {_reading(held)}"
        elif place[1] >= 0 and self._operand(destroyer, moment) is None:
            held, history = self._held(victim, moment)
            message = f"{moment.text} destroys {unit}, which holds {held.name}, {history}"
        else:
            held, history = self._held(victim, moment)
            message = (
                f"{moment.text} writes {_put(written, unit)}, "
                f"which holds {_owned(held, unit)}, {history}"
            )
            if written.next_use is None:
                message += f"; {written.name} is never read"
        return Finding(
            self._kind(collision),
            message,
            *place,
            (self._register_names[destroyer], self._register_names[victim]),
            unit,
            self._operand(destroyer, moment),
            (written, held),
        )

    def _kind(self, fault: _Fault) -> FindingKind:
        if isinstance(fault, _Mismatch):
            return FindingKind.TIED_MISMATCH
        point, _, destroyer, victim = fault
        if max(destroyer, victim) >= self._virtual_lane_count:
            return FindingKind.FIXED_REGISTER_CLOBBERED
        if self._is_early(point) and not self.problem.liveness.live[victim] >> (point + 1) & 1:
            return FindingKind.EARLY_CLOBBER
        return FindingKind.OVERLAP

    def _is_early(self, point: int) -> bool:
        """True if the instruction of a point has two points and this is the first."""
        points = self.problem.liveness.points
        return point + 1 < len(points) and points[point + 1] == points[point]

    def _moment(self, place: Place, *, early: bool) -> _Moment:
        key = place, early
        if key not in self._moments:
            block, index = place
            if index < 0:
                moment = _Moment(place, early, _place_text(place), (), None, None)
            else:
                instruction = self.problem.function.blocks[block].instructions[index]
                known = self._tracker.literal(instruction.guard)
                moment = _Moment(
                    place,
                    early,
                    f"{_place_text(place)} ({instruction.opcode})",
                    instruction.definitions,
                    known,
                    self._tracker.known_after(place, known),
                )
            self._moments[key] = moment
        return self._moments[key]

    def _operand(self, lane: int, moment: _Moment) -> int | None:
        """The definition operand of an instruction that writes a lane; None at the entry."""
        for operand, definition in enumerate(moment.definitions):
            then = definition.early_clobber or not moment.early
            if then and lane in self._tracker.lanes(definition.location):
                return operand
        return None

    def _written(self, lane: int, moment: _Moment) -> InvolvedLane:
        """A lane that is defined at a moment."""
        key = lane, moment.place
        if key not in self._definitions:
            block, index = moment.place
            read = self._tracker.next_use(lane, (block, index + 1), moment.left)
            self._definitions[key] = InvolvedLane(self._lane_names[lane], (moment.place,), read)
        return self._definitions[key]

    def _held(self, lane: int, moment: _Moment) -> tuple[InvolvedLane, str]:
        """A lane that holds an older value at a moment, and the history of that value in words."""
        block, index = moment.place
        key = None
        if not moment.early:
            index += 1
            if moment.known is None:
                # The answer is the same between two consecutive instructions that concern the lane.
                key = lane, block, self._tracker.position(lane, (block, index))
                if key in self._values:
                    return self._values[key]
        sources = self._tracker.sources(lane, moment.place, moment.known)
        left = moment.known if moment.early else moment.left
        read = self._tracker.next_use(lane, (block, index), left)
        held = InvolvedLane(self._lane_names[lane], sources, read)
        told = held, _history(held, moment.place if moment.early else None)
        if key is not None:
            self._values[key] = told
        return told


def _place_text(place: Place) -> str:
    return "the entry" if place[1] < 0 else f"bb{place[0]} instruction {place[1]}"


def _history(held: InvolvedLane, reader: Place | None) -> str:
    """The definitions of a value and its next reader, in words."""
    places = [_place_text(place) for place in held.defined[:PLACES_TOLD]]
    if more := len(held.defined) - len(places):
        places.append(f"{more} more")
    defined = " or ".join(places)
    if held.next_use is None:
        return f"defined at {defined} and never read"
    if held.next_use == reader:
        return f"defined at {defined} and still to be read by the same instruction"
    return f"defined at {defined} and next read at {_place_text(held.next_use)}"


def _put(written: InvolvedLane, unit: str) -> str:
    return unit if written.name == unit else f"{written.name} to {unit}"


def _owned(held: InvolvedLane, unit: str) -> str:
    return f"the function's own {unit}" if held.name == unit else held.name


def _reading(lane: InvolvedLane) -> str:
    if lane.next_use is None:
        return f"{lane.name} is never read"
    return f"{lane.name} is next read at {_place_text(lane.next_use)}"


def _registers(operand: Operand) -> tuple[str, ...]:
    location = operand.location
    return () if isinstance(location, FixedUnits) else (f"%{location.register}",)
