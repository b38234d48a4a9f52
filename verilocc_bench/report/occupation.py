"""What an assignment puts where: which unit holds which lane, from which point to which.

Pictures are drawn from it. An answer may be wrong: registers without a place
are named, and every collision that the verifier found is a clash at a point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.analysis import VECTOR, AllocationProblem, parse_register_name
from verilocc_bench.analysis.bank_conflicts import bank_conflict_places
from verilocc_bench.ir import RegisterClass
from verilocc_bench.verification import FastVerifier, Finding, Verdict

FINDINGS = 1_000
"""The most findings that are looked at."""

Point = int
Unit = int


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """A unit that holds one lane from point `first` to point `last`.

    `register` is the number of the virtual register, None for a unit that the function names.
    """

    register: int | None
    lane: int
    unit: Unit
    first: Point
    last: Point


@dataclass(frozen=True, slots=True)
class Clash:
    """A finding of the verifier at a point and, if it is about one, a unit."""

    finding: Finding
    point: Point | None
    unit: Unit | None


@dataclass(frozen=True, slots=True)
class Occupation:
    """An assignment over the points of its function.

    `used` counts the units of each file in use, up to the highest, and the units of
    the vector files together under VECTOR. `occupancy` is None if some register
    has no legal place. `unplaced` are registers that are not drawn: the answer gives
    them no place that there is. `conflicts` and `copies` are points of instructions;
    conflicts are empty unless every place is legal.
    """

    source: str
    spans: tuple[HeldSpan, ...]
    bases: Mapping[int, str]
    used: Mapping[str, int]
    occupancy: int | None
    clashes: tuple[Clash, ...]
    findings_count: int
    unplaced: tuple[str, ...]
    conflicts: tuple[Point, ...]
    copies: tuple[Point, ...]

    @property
    def valid(self) -> bool:
        """True if the verifier finds nothing."""
        return not self.clashes


def occupation_of(
    problem: AllocationProblem, answer: NamedAssignment, source: str = "the answer"
) -> Occupation:
    """Where an answer without edits puts every lane, and what the fast check finds wrong."""
    verdict = FastVerifier(problem).verify(answer, FINDINGS)
    units: dict[int, Unit] = {}
    unplaced = []
    for number, register_class in enumerate(problem.function.virtual_registers):
        unit = _unit(problem, register_class, answer.get(f"%{number}"))
        if unit is None:
            unplaced.append(f"%{number}")
        else:
            units[number] = unit
    spans = tuple(_spans(problem, units))
    legal = verdict.registers_used is not None
    conflicts = bank_conflict_places(problem, answer) if legal else ()
    return Occupation(
        source=source,
        spans=spans,
        bases={number: str(answer[f"%{number}"]) for number in units},
        used=_used(problem, spans, verdict),
        occupancy=verdict.occupancy,
        clashes=tuple(_clash(problem, finding) for finding in verdict.findings),
        findings_count=verdict.findings_count,
        unplaced=tuple(unplaced),
        conflicts=tuple(problem.liveness.after[block][index] for block, index in conflicts),
        copies=tuple(
            problem.liveness.after[block][index]
            for block, index, instruction in problem.function.instructions()
            if instruction.opcode in problem.target.copy_opcodes
        ),
    )


def _unit(
    problem: AllocationProblem, register_class: RegisterClass, name: str | None
) -> Unit | None:
    """The first unit of a base, a legal one or another that the hardware has; None if none."""
    if not isinstance(name, str):
        return None
    placements = problem.placements
    legal = placements.by_name[register_class].get(name)
    if legal is not None:
        return legal
    register = parse_register_name(problem.target, name)
    if register is None:
        return None
    fits = register.index + register_class.width <= problem.target.file(register.file).count
    return placements.unit(register) if fits else None


def _spans(problem: AllocationProblem, units: Mapping[int, Unit]) -> Iterator[HeldSpan]:
    liveness, placements = problem.liveness, problem.placements
    owners: list[tuple[int | None, int, Unit | None]] = []
    for number, register_class in enumerate(problem.function.virtual_registers):
        base = units.get(number)
        owners += (
            (number, lane, None if base is None else base + lane)
            for lane in range(register_class.width)
        )
    owners += (
        (None, 0, placements.first_unit[file] + index) for file, index in liveness.fixed_lanes
    )
    merged: dict[int, tuple[Point, Point]] = {}
    for lane, first, last, _ in sorted(liveness.segments):
        before = merged.get(lane)
        if before is not None and first <= before[1] + 1:
            merged[lane] = (before[0], max(before[1], last))
            continue
        if before is not None:
            yield from _span(owners[lane], before)
        merged[lane] = (first, last)
    for lane, span in merged.items():
        yield from _span(owners[lane], span)


def _span(
    owner: tuple[int | None, int, Unit | None], span: tuple[Point, Point]
) -> Iterator[HeldSpan]:
    register, lane, unit = owner
    if unit is not None:
        yield HeldSpan(register, lane, unit, *span)


def _used(
    problem: AllocationProblem, spans: tuple[HeldSpan, ...], verdict: Verdict
) -> Mapping[str, int]:
    if verdict.registers_used is not None:
        return verdict.registers_used
    used: dict[str, int] = {}
    for span in spans:
        register = problem.placements.register(span.unit)
        used[register.file] = max(used.get(register.file, 0), register.index + 1)
    used[VECTOR] = sum(used.get(file, 0) for file in problem.target.vector_files)
    return used


def _clash(problem: AllocationProblem, finding: Finding) -> Clash:
    unit = point = None
    if finding.unit is not None:
        register = parse_register_name(problem.target, finding.unit)
        unit = None if register is None else problem.placements.unit(register)
    if finding.block is not None and finding.instruction is not None:
        entry = finding.instruction < 0
        point = 0 if entry else problem.liveness.after[finding.block][finding.instruction]
    return Clash(finding, point, unit)
