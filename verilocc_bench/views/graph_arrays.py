"""Builds the arrays of a graph, group by group.

Cost: liveness, which the problem computes once, the conflicts (views.conflicts), and
one pass over the operands: 0.1 ms for each instruction of real kernels in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, Guard, Instruction, Operand
from verilocc_bench.views.conflicts import find_conflicts, live_ranges
from verilocc_bench.views.graph import Integers, OperandFlag, OperandRole
from verilocc_bench.views.vocabulary import OpcodeVocabulary

Arrays = dict[str, Any]

OPERAND = (
    "operand_instruction",
    "operand_register",
    "operand_role",
    "operand_place",
    "operand_first_lane",
    "operand_lanes",
    "operand_flags",
    "operand_tied_to",
)
FIXED = (
    "fixed_instruction",
    "fixed_file",
    "fixed_role",
    "fixed_place",
    "fixed_first_unit",
    "fixed_units",
    "fixed_flags",
    "fixed_tied_to",
)


def graph_arrays(problem: AllocationProblem, vocabulary: OpcodeVocabulary) -> Arrays:
    """All fields of a ProblemGraph except the label's."""
    files = problem.function.files
    return {
        "id": problem.id,
        "target": problem.target.name,
        "point_count": len(problem.liveness.points),
        "file_names": tuple(file.name for file in files),
        **_columns(["file_budget"], ([file.count] for file in files)),
        **_classes(problem),
        **_blocks(problem),
        **_instructions(problem, vocabulary),
        **_operands(problem),
        **_ranges_and_conflicts(problem),
        **_ties(problem),
    }


def label_arrays(problem: AllocationProblem, answer: Mapping[str, str] | None) -> Arrays:
    """The bases of the label; -1 without a label. Raises InputError for an illegal label."""
    classes = problem.function.virtual_registers
    if answer is None:
        return _columns(("label_file", "label_base"), [(-1, -1)] * len(classes))
    files = _file_numbers(problem)
    rows: list[tuple[int, int]] = []
    for number, register_class in enumerate(classes):
        unit = problem.placements.by_name[register_class].get(answer.get(f"%{number}", ""))
        if unit is None:
            raise InputError(f"function {problem.id}: the label has no legal base for %{number}")
        base = problem.placements.register(unit)
        rows.append((files[base.file], base.index))
    return _columns(("label_file", "label_base"), rows)


def _columns(names: Sequence[str], rows: Iterable[Sequence[int]]) -> Arrays:
    """Rows of integers as one array for each column."""
    table = np.array(list(rows), np.int32).reshape(-1, len(names))
    return {name: np.ascontiguousarray(table[:, n]) for n, name in enumerate(names)}


def _file_numbers(problem: AllocationProblem) -> dict[str, int]:
    return {file.name: number for number, file in enumerate(problem.target.files)}


def _classes(problem: AllocationProblem) -> Arrays:
    classes = problem.function.classes()
    numbers = {register_class: number for number, register_class in enumerate(classes)}
    files, first = _file_numbers(problem), [0]
    bases: list[tuple[int, int]] = []
    for register_class in classes:
        found = map(problem.placements.register, problem.placements.legal[register_class])
        bases += [(files[base.file], base.index) for base in found]
        first.append(len(bases))
    features = {
        c: (
            numbers[c],
            c.width,
            min((r.step for r in c.ranges), default=1),
            sum(1 << files[name] for name in c.files),
        )
        for c in classes
    }
    names = ("register_class", "register_width", "register_alignment", "register_files")
    return {
        "class_names": tuple(register_class.name for register_class in classes),
        "class_first": np.array(first, np.int32),
        **_columns(("base_file", "base_index"), bases),
        **_columns(names, (features[c] for c in problem.function.virtual_registers)),
    }


def _blocks(problem: AllocationProblem) -> Arrays:
    blocks = problem.function.blocks
    edges = ((n, successor) for n, block in enumerate(blocks) for successor in block.successors)
    return {
        "block_depth": np.array(problem.loop_depths, np.int32),
        **_columns(("flow_from", "flow_to"), edges),
    }


def _instructions(problem: AllocationProblem, vocabulary: OpcodeVocabulary) -> Arrays:
    depths, after = problem.loop_depths, problem.liveness.after
    rows = (
        (vocabulary.id_of(instruction.opcode), block, place, depths[block], after[block][place])
        for block, place, instruction in problem.function.instructions()
    )
    names = ("opcode", "block", "place", "depth", "point")
    return _columns([f"instruction_{name}" for name in names], rows)


def _operands(problem: AllocationProblem) -> Arrays:
    files = _file_numbers(problem)
    virtual: list[tuple[int, ...]] = []
    fixed: list[tuple[int, ...]] = []
    for number, (_, _, instruction) in enumerate(problem.function.instructions()):
        for role, place, operand, negated in _all_operands(instruction):
            location = operand.location
            flags = (
                int(OperandFlag.UNDEF) * operand.undef
                | int(OperandFlag.EARLY_CLOBBER) * operand.early_clobber
                | int(OperandFlag.IMPLICIT) * operand.implicit
            ) | negated
            tied = -1 if operand.tied_to is None else operand.tied_to
            if isinstance(location, FixedUnits):
                file, first, count = files[location.file], location.first, location.count
                fixed.append((number, file, role, place, first, count, flags, tied))
            else:
                register, first, count = location.register, location.first, location.count
                virtual.append((number, register, role, place, first, count, flags, tied))
    return {**_columns(OPERAND, virtual), **_columns(FIXED, fixed)}


def _all_operands(instruction: Instruction) -> list[tuple[int, int, Operand, int]]:
    """(role, place, operand, NEGATED or 0) of the definitions, the uses and any guard."""
    found = [
        (int(OperandRole.DEFINITION), n, each, 0) for n, each in enumerate(instruction.definitions)
    ]
    found += [(int(OperandRole.USE), n, each, 0) for n, each in enumerate(instruction.uses)]
    guard: Guard | None = instruction.guard
    if guard is not None:
        negated = int(OperandFlag.NEGATED) if guard.negated else 0
        found.append((int(OperandRole.GUARD), 0, Operand(guard.location), negated))
    return found


def _ranges_and_conflicts(problem: AllocationProblem) -> Arrays:
    ranges = live_ranges(problem)
    conflicts = find_conflicts(problem, ranges)
    lane, first, last = _virtual(problem, ranges.live)
    at, point = _virtual(problem, ranges.defined)
    register, place = _owners(problem)
    pairs = conflicts.pairs.astype(np.int32).T
    files = _file_numbers(problem)
    fixed = ((n, problem.placements.register(unit)) for n, unit in conflicts.fixed.tolist())
    blocked = [(number, files[base.file], base.index) for number, base in fixed]
    return {
        "live_register": register[lane],
        "live_lane": place[lane],
        "live_first": first.astype(np.int32),
        "live_last": last.astype(np.int32),
        "defined_register": register[at],
        "defined_lane": place[at],
        "defined_point": point.astype(np.int32),
        "conflict_left": np.ascontiguousarray(pairs[0]),
        "conflict_right": np.ascontiguousarray(pairs[1]),
        "conflict_distance": np.ascontiguousarray(pairs[2]),
        **_columns(("blocked_register", "blocked_file", "blocked_base"), blocked),
    }


def _virtual(problem: AllocationProblem, columns: Sequence[Any]) -> list[Any]:
    """The rows of virtual lanes; the first column has the lane numbers."""
    kept = columns[0] < problem.liveness.virtual_lane_count
    return [column[kept] for column in columns]


def _owners(problem: AllocationProblem) -> tuple[Integers, Integers]:
    """The virtual register of each lane, and the index of the lane in it."""
    widths = np.array([c.width for c in problem.function.virtual_registers], np.int32)
    register = np.repeat(np.arange(len(widths), dtype=np.int32), widths)
    firsts = np.array(problem.liveness.lane_offsets, np.int32)
    return register, np.arange(len(register), dtype=np.int32) - firsts[register]


def _ties(problem: AllocationProblem) -> Arrays:
    """The ties between virtual registers, and those to physical registers."""
    files = _file_numbers(problem)
    free: set[tuple[int, int, int]] = set()
    fixed: set[tuple[int, int, int]] = set()
    for tie in tied_operands(problem.function):
        one, other = tie.definition.location, tie.use.location
        if isinstance(one, FixedUnits):
            one, other = other, one
        if isinstance(one, FixedUnits):
            continue  # an allocator does not decide about two physical registers
        if isinstance(other, FixedUnits):
            fixed.add((one.register, files[other.file], other.first - one.first))
        else:
            free.add((one.register, other.register, one.first - other.first))
    return {
        **_columns(("tie_left", "tie_right", "tie_distance"), sorted(free)),
        **_columns(("fixed_tie_register", "fixed_tie_file", "fixed_tie_base"), sorted(fixed)),
    }
