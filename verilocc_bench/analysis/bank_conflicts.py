"""Bank conflicts and identity copies of an assignment, weighted by loop depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.ir import FixedUnits, Instruction, Operand

Sources = tuple[tuple[str, int], ...]
"""(file, index) of each vector source."""

LOOP_WEIGHT = 10
"""An instruction counts this many times more for each loop around it."""
DEEPEST = 6
"""Searches and splitting count no more loops, so that their sums stay small numbers."""


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Instructions with three distinct vector sources whose banks collide.

    `any` counts the instructions that want more registers of one bank than the
    bank delivers at once (two on AMD, three on sm_80). `all` counts those whose
    three sources lie in one bank. Each instruction weighs 10 to the power of
    its loop depth.
    """

    any: int
    all: int


def count_bank_conflicts(problem: AllocationProblem, answer: NamedAssignment) -> BankConflicts:
    """The bank conflicts of a valid answer, over 32-bit explicit sources.

    On targets whose operand slots keep what they read (`reuse_slots`), a source
    needs no bank if the instruction before reads it at the same place among three.
    """
    in_some_bank = in_one_bank = 0
    for block, _, most in _most_of_a_bank(problem, answer):
        weight = LOOP_WEIGHT ** problem.loop_depths[block]
        in_some_bank += weight * (most > problem.target.bank_ports)
        in_one_bank += weight * (most == 3)
    return BankConflicts(in_some_bank, in_one_bank)


def bank_conflict_places(
    problem: AllocationProblem, answer: NamedAssignment
) -> tuple[tuple[int, int], ...]:
    """(block, instruction) of every bank conflict that `BankConflicts.any` counts."""
    ports = problem.target.bank_ports
    return tuple((b, i) for b, i, most in _most_of_a_bank(problem, answer) if most > ports)


def _most_of_a_bank(
    problem: AllocationProblem, answer: NamedAssignment
) -> Iterator[tuple[int, int, int]]:
    """(block, instruction, most sources that it reads of one bank), of those with three sources."""
    target, units = problem.target, _units(problem, answer)
    for index, block in enumerate(problem.function.blocks):
        kept: Sources = ()
        for place, instruction in enumerate(block.instructions):
            sources = _three_sources(problem, instruction, units)
            if not sources:
                kept = ()
                continue
            read = [source for source, before in zip_longest(sources, kept) if source != before]
            per_bank = Counter((file, unit % target.file(file).banks) for file, unit in read)
            # Empty if the slots keep all of them.
            yield index, place, max(per_bank.values(), default=0)
            if target.reuse_slots:
                # A slot keeps the old value, not the one that the instruction writes.
                kept = () if _writes(problem, instruction, units, sources) else sources


def _three_sources(
    problem: AllocationProblem, instruction: Instruction, units: list[int]
) -> Sources:
    """The three 32-bit vector sources, if the instruction has three different ones; else empty."""
    sources = [
        source
        for operand in instruction.uses
        if not operand.implicit and (source := _vector_source(problem, operand, units)) is not None
    ]
    distinct = tuple(dict.fromkeys(sources))
    return distinct if len(distinct) == 3 else ()


def _writes(
    problem: AllocationProblem, instruction: Instruction, units: list[int], sources: Sources
) -> bool:
    """True if an instruction writes one of its own sources."""
    first_unit = problem.placements.first_unit
    read = {first_unit[file] + index for file, index in sources}
    return any(
        read & set(range(first, first + operand.location.count))
        for operand in instruction.definitions
        for first in (_first_unit(problem, operand, units),)
    )


def count_identity_copies(problem: AllocationProblem, answer: NamedAssignment) -> int:
    """The number of copies whose source and destination a valid answer puts in one place."""
    units = _units(problem, answer)
    found = 0
    for _, _, instruction in problem.function.instructions():
        is_copy = instruction.opcode in problem.target.copy_opcodes
        if is_copy and instruction.definitions and instruction.uses:
            target = _first_unit(problem, instruction.definitions[0], units)
            found += target == _first_unit(problem, instruction.uses[0], units)
    return found


def _units(problem: AllocationProblem, answer: NamedAssignment) -> list[int]:
    by_name = problem.placements.by_name
    classes = problem.function.virtual_registers
    return [by_name[c][answer[f"%{number}"]] for number, c in enumerate(classes)]


def _first_unit(problem: AllocationProblem, operand: Operand, units: list[int]) -> int:
    location = operand.location
    if isinstance(location, FixedUnits):
        return problem.placements.first_unit[location.file] + location.first
    return units[location.register] + location.first


def _vector_source(
    problem: AllocationProblem, operand: Operand, units: list[int]
) -> tuple[str, int] | None:
    """(file, index) of a source of one unit in a vector file; None for any other operand."""
    if operand.location.count != 1:
        return None
    register = problem.placements.register(_first_unit(problem, operand, units))
    if register.file not in problem.target.vector_files:
        return None
    return register.file, register.index
