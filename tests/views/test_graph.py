"""The graph's conflicts, blocked bases, ties and labels against the verifier, and its arrays."""

from __future__ import annotations

import random
from dataclasses import asdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generated import random_function
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, Function
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification.fast import FastVerifier
from verilocc_bench.views import (
    UNKNOWN,
    OpcodeVocabulary,
    OperandFlag,
    OperandRole,
    ProblemGraph,
    answer_from_arrays,
    graph_of,
    problem_of,
)

COLLISIONS = {FindingKind.OVERLAP, FindingKind.EARLY_CLOBBER, FindingKind.FIXED_REGISTER_CLOBBERED}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for row in load_rows("mini").rows if row.n_instructions < 800][::4]


@cache
def functions() -> list[Function]:
    """Small ones of every kind."""
    plain = [random_function(seed) for seed in range(40)]
    guarded = [random_function(seed, guarded=True) for seed in range(40)]
    named = [
        random_function(seed, target=target)
        for target in ("gfx90a", "sm_80")
        for seed in range(100, 120)
    ]
    return plain + guarded + named


def conflicts_of(graph: ProblemGraph) -> set[tuple[int, int, int]]:
    columns = graph.conflict_left, graph.conflict_right, graph.conflict_distance
    return set(zip(*(column.tolist() for column in columns), strict=True))


def legal_bases(graph: ProblemGraph, register: int) -> list[tuple[int, int]]:
    """The (file, base) of a register's class."""
    number = graph.register_class[register]
    part = slice(graph.class_first[number], graph.class_first[number + 1])
    return list(zip(graph.base_file[part].tolist(), graph.base_index[part].tolist(), strict=True))


def answer_of(graph: ProblemGraph, placed: dict[int, tuple[int, int]]) -> dict[str, str]:
    files, bases = [-1] * graph.register_count, [-1] * graph.register_count
    for register, (file, base) in placed.items():
        files[register], bases[register] = file, base
    return answer_from_arrays(graph, files, bases)


def collides(
    verifier: FastVerifier, answer: dict[str, str], kinds: set[FindingKind] = COLLISIONS
) -> bool:
    """Whether the verifier says that registers of an answer, perhaps of few, collide."""
    return any(finding.kind in kinds for finding in verifier.verify(answer).findings)


def test_two_registers_conflict_exactly_where_the_verifier_says_so() -> None:
    generator = random.Random(0)
    said = {True: 0, False: 0}
    for function in functions():
        problem = AllocationProblem(function)
        graph, verifier = graph_of(problem), FastVerifier(problem)
        conflicts = conflicts_of(graph)
        for a, b in combinations(range(graph.register_count), 2):
            places = [(x, y) for x in legal_bases(graph, a) for y in legal_bases(graph, b)]
            near = [(x, y) for x, y in places if x[0] == y[0] and abs(x[1] - y[1]) < 5]
            for x, y in generator.sample(near, min(6, len(near))):
                expected = x[0] == y[0] and (a, b, y[1] - x[1]) in conflicts
                found = collides(
                    verifier,
                    answer_of(graph, {a: x, b: y}),
                    COLLISIONS - {FindingKind.FIXED_REGISTER_CLOBBERED},
                )
                assert found == expected, (problem.normalized, a, b, x, y)
                said[found] += 1
    assert min(said.values()) > 300


def test_conflicts_are_those_of_the_oracle_that_walks_paths() -> None:
    compared = 0
    for seed in range(100):
        function = random_function(seed, guarded=seed % 2 == 0)
        graph, oracle = graph_of(AllocationProblem(function)), Oracle(function)
        classes = function.virtual_registers
        expected = {
            (a, b, i - j)
            for a, b in combinations(range(len(classes)), 2)
            if set(classes[a].files) & set(classes[b].files)
            for i in range(classes[a].width)
            for j in range(classes[b].width)
            if oracle.collide((a, i), (b, j))
        }
        assert conflicts_of(graph) == expected
        pairs = {(a, b) for a, b, _ in expected}
        assert set(zip(*graph.interference.tolist(), strict=True)) == pairs
        compared += len(expected)
    assert compared > 200


def test_blocked_bases_are_those_that_the_function_itself_forbids() -> None:
    blocked_in_all = 0
    for function in functions():
        problem = AllocationProblem(function)
        graph, verifier = graph_of(problem), FastVerifier(problem)
        columns = graph.blocked_register, graph.blocked_file, graph.blocked_base
        blocked = {(r, (f, b)) for r, f, b in zip(*(c.tolist() for c in columns), strict=True)}
        blocked_in_all += len(blocked)
        for register in range(graph.register_count):
            for base in legal_bases(graph, register):
                found = collides(verifier, answer_of(graph, {register: base}))
                assert found == ((register, base) in blocked), (problem.normalized, register, base)
    assert blocked_in_all > 100


def says_valid(graph: ProblemGraph, files: list[int], bases: list[int]) -> bool:
    """Whether an assignment is valid by the graph alone; all bases are of the classes."""
    at = np.array(files), np.array(bases)

    def apart(left: Any, right: Any, distance: Any) -> Any:
        same = at[0][left] == at[0][right]
        return same & (at[1][right] - at[1][left] == distance)

    if apart(graph.conflict_left, graph.conflict_right, graph.conflict_distance).any():
        return False
    own = at[0][graph.blocked_register], at[1][graph.blocked_register]
    if ((own[0] == graph.blocked_file) & (own[1] == graph.blocked_base)).any():
        return False
    if not apart(graph.tie_left, graph.tie_right, graph.tie_distance).all():
        return False
    own = at[0][graph.fixed_tie_register], at[1][graph.fixed_tie_register]
    return bool(((own[0] == graph.fixed_tie_file) & (own[1] == graph.fixed_tie_base)).all())


def test_whole_assignments_are_valid_exactly_where_the_graph_says_so() -> None:
    generator = random.Random(1)
    said = {True: 0, False: 0}
    tied = 0
    sizes = [(seed, target) for seed in range(180) for target in ("gfx90a", "sm_80")]
    for seed, target in sizes:
        problem = AllocationProblem(random_function(seed, registers=5, blocks=3, target=target))
        graph, verifier = graph_of(problem), FastVerifier(problem)
        tied += len(graph.tie_left) + len(graph.fixed_tie_register)
        if any(not legal_bases(graph, register) for register in range(graph.register_count)):
            continue
        for _ in range(4):
            chosen = [generator.choice(legal_bases(graph, n)) for n in range(graph.register_count)]
            files, bases = [file for file, _ in chosen], [base for _, base in chosen]
            valid = verifier.verify(answer_from_arrays(graph, files, bases)).valid
            assert says_valid(graph, files, bases) == valid, problem.normalized
            said[valid] += 1
    assert min(said.values()) > 300
    assert tied > 20


def test_kernels_labels_go_through_arrays_and_back(rows: list[Row]) -> None:
    generator = random.Random(2)
    for row in rows:
        graph = graph_of(row)
        assert (graph.label_file >= 0).all()
        assert answer_from_arrays(graph, graph.label_file, graph.label_base) == row.label
        assert says_valid(graph, graph.label_file.tolist(), graph.label_base.tolist())
        other = graph_of(problem_of(row))
        assert (other.label_file == -1).all()
        assert (other.label_base == -1).all()
    # The same as for generated functions, on two kernels: registers that are moved.
    for row in (rows[0], rows[-1]):
        graph, verifier = graph_of(row), FastVerifier(problem_of(row))
        said = {True: 0, False: 0}
        for _ in range(100):
            files, bases = graph.label_file.tolist(), graph.label_base.tolist()
            moved = generator.randrange(graph.register_count)
            near = [
                (file, base)
                for file, base in legal_bases(graph, moved)
                if file == files[moved] and abs(base - bases[moved]) < 9
            ]
            files[moved], bases[moved] = generator.choice(near)
            valid = verifier.verify(answer_from_arrays(graph, files, bases)).valid
            assert says_valid(graph, files, bases) == valid
            said[valid] += 1
        assert min(said.values()) > 3


def test_arrays_say_what_the_function_says() -> None:
    for function in functions():
        problem = AllocationProblem(function)
        graph = graph_of(problem)
        instructions = list(function.instructions())
        assert graph.instruction_count == len(instructions)
        assert graph.instruction_block.tolist() == [block for block, _, _ in instructions]
        assert graph.instruction_place.tolist() == [place for _, place, _ in instructions]
        depths = [problem.loop_depths[block] for block, _, _ in instructions]
        assert graph.instruction_depth.tolist() == depths
        edges = [(n, s) for n, block in enumerate(function.blocks) for s in block.successors]
        assert list(zip(graph.flow_from.tolist(), graph.flow_to.tolist(), strict=True)) == edges
        classes = function.virtual_registers
        assert graph.register_width.tolist() == [c.width for c in classes]
        for number, register_class in enumerate(classes):
            assert graph.class_names[graph.register_class[number]] == register_class.name
            mask = {
                name
                for n, name in enumerate(graph.file_names)
                if graph.register_files[number] >> n & 1
            }
            assert mask == set(register_class.files)
            for file, base in legal_bases(graph, number):
                assert register_class.allows(graph.file_names[file], base)
                assert base % graph.register_alignment[number] == 0
        assert operands_of(graph) == operands_in(function)


def operands_of(graph: ProblemGraph) -> set[tuple[Any, ...]]:
    virtual = zip(
        graph.operand_instruction.tolist(),
        graph.operand_role.tolist(),
        graph.operand_place.tolist(),
        graph.operand_register.tolist(),
        graph.operand_first_lane.tolist(),
        graph.operand_lanes.tolist(),
        graph.operand_flags.tolist(),
        graph.operand_tied_to.tolist(),
        strict=True,
    )
    fixed = zip(
        graph.fixed_instruction.tolist(),
        graph.fixed_role.tolist(),
        graph.fixed_place.tolist(),
        [graph.file_names[n] for n in graph.fixed_file],
        graph.fixed_first_unit.tolist(),
        graph.fixed_units.tolist(),
        graph.fixed_flags.tolist(),
        graph.fixed_tied_to.tolist(),
        strict=True,
    )
    return {*virtual, *fixed}


def operands_in(function: Function) -> set[tuple[Any, ...]]:
    found: set[tuple[Any, ...]] = set()
    for number, (_, _, instruction) in enumerate(function.instructions()):
        groups: list[tuple[int, Any]] = [
            (OperandRole.DEFINITION, instruction.definitions),
            (OperandRole.USE, instruction.uses),
        ]
        for role, operands in groups:
            for place, operand in enumerate(operands):
                flags = OperandFlag(0)
                flags |= OperandFlag.UNDEF if operand.undef else 0
                flags |= OperandFlag.EARLY_CLOBBER if operand.early_clobber else 0
                flags |= OperandFlag.IMPLICIT if operand.implicit else 0
                tied = -1 if operand.tied_to is None else operand.tied_to
                found.add((number, role, place, *where(operand.location), flags, tied))
        if instruction.guard is not None:
            flags = OperandFlag.NEGATED if instruction.guard.negated else OperandFlag(0)
            guard = where(instruction.guard.location)
            found.add((number, OperandRole.GUARD, 0, *guard, flags, -1))
    return found


def where(location: Any) -> tuple[Any, int, int]:
    owner = location.file if isinstance(location, FixedUnits) else location.register
    return owner, location.first, location.count


def test_live_ranges_are_the_points_of_liveness() -> None:
    for function in functions()[:40]:
        problem = AllocationProblem(function)
        graph, liveness = graph_of(problem), problem.liveness
        live = [0] * liveness.virtual_lane_count
        columns = graph.live_register, graph.live_lane, graph.live_first, graph.live_last
        ranges = list(zip(*(column.tolist() for column in columns), strict=True))
        assert ranges == sorted(ranges)
        for register, lane, first, last in ranges:
            assert 0 <= first <= last < graph.point_count
            points = ((1 << (last - first + 1)) - 1) << first
            place = liveness.lane_offsets[register] + lane
            # Neither overlapping nor touching: else the two would be one.
            assert not live[place] & (points | points << 1 | points >> 1)
            live[place] |= points
        assert live == list(liveness.live[: len(live)])
        defined = [0] * len(live)
        columns = graph.defined_register, graph.defined_lane, graph.defined_point
        for register, lane, point in zip(*(column.tolist() for column in columns), strict=True):
            defined[liveness.lane_offsets[register] + lane] |= 1 << point
        assert defined == list(liveness.defined[: len(defined)])


def test_all_arrays_are_flat_and_of_one_type(rows: list[Row]) -> None:
    for name, value in asdict(graph_of(rows[0])).items():
        if isinstance(value, np.ndarray):
            assert value.dtype == np.int32, name
            assert value.ndim == 1, name
            assert value.flags.c_contiguous, name
        else:
            assert isinstance(value, str | int | tuple), name


def test_a_function_without_registers_has_a_graph() -> None:
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi\n"
        "bb0\nS_ENDPGM\n"
    )
    graph = graph_of(AllocationProblem.from_text(text))
    assert graph.register_count == 0
    assert graph.interference.shape == (2, 0)
    assert answer_from_arrays(graph, [], []) == {}


def test_answers_that_are_wrong_are_for_the_verifier_or_an_error(rows: list[Row]) -> None:
    row = next(row for row in rows if row.arch == "gfx90a")
    graph, verifier = graph_of(row), FastVerifier(problem_of(row))
    files, bases = graph.label_file.tolist(), graph.label_base.tolist()
    files[0] = -1
    (finding,) = verifier.verify(answer_from_arrays(graph, files, bases)).findings
    assert finding.kind is FindingKind.MISSING
    for file, base in ((len(graph.file_names), 0), (0, 100_000), (0, -1)):
        files[0], bases[0] = file, base
        with pytest.raises(InputError, match=f"%0: there is no register {base} of file {file}"):
            answer_from_arrays(graph, files, bases)
    with pytest.raises(InputError, match="expected 119 files and bases, not 2 and 1"):
        answer_from_arrays(graph, [0, 0], [0])
    # Any base that the hardware has gives a name that the verifier knows.
    for file, name in enumerate(graph.file_names):
        count = verifier.problem.target.file(name).count
        for register in range(0, graph.register_count, 10):
            files[0], bases[0] = graph.label_file[0], graph.label_base[0]
            files[register], bases[register] = file, count - 1
            findings = verifier.verify(answer_from_arrays(graph, files, bases)).findings
            assert FindingKind.UNKNOWN_PHYSICAL_REGISTER not in {f.kind for f in findings}


def test_a_vocabulary_is_built_saved_and_loaded(rows: list[Row], tmp_path: Path) -> None:
    vocabulary = OpcodeVocabulary.build(rows[:4])
    known = {i.opcode for r in rows[:4] for _, _, i in problem_of(r).function.instructions()}
    assert set(vocabulary.opcodes) == known
    ids = [vocabulary.id_of(opcode) for opcode in vocabulary.opcodes]
    assert ids == list(range(1, vocabulary.size))
    assert vocabulary.id_of("NO_SUCH_OPCODE") == UNKNOWN == 0
    path = tmp_path / "new" / "opcodes.json"
    vocabulary.save(path)
    assert OpcodeVocabulary.load(path) == vocabulary
    names = ["?", *vocabulary.opcodes]
    graph = graph_of(rows[0], vocabulary)
    opcodes = [i.opcode for _, _, i in problem_of(rows[0]).function.instructions()]
    assert [names[n] for n in graph.instruction_opcode] == opcodes
    sass = next(row for row in rows if row.arch == "sm_80")
    assert UNKNOWN in graph_of(sass, OpcodeVocabulary.build(rows[:1])).instruction_opcode


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected {"),
        ('{"format": "else", "opcodes": []}', "expected {"),
        ('{"format": "verilocc-bench opcodes 1", "opcodes": [1]}', "expected strings"),
        ('{"format": "verilocc-bench opcodes 1", "opcodes": ["B", "A"]}', "sorted"),
        ('{"format": "verilocc-bench opcodes 1", "opcodes": ["A", "A"]}', "each once"),
    ],
)
def test_a_file_that_is_no_vocabulary(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "opcodes.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        OpcodeVocabulary.load(path)
    assert str(path) in str(error.value)


def test_a_label_that_is_not_legal_is_an_error(rows: list[Row]) -> None:
    row = {"id": "x", "normalized": rows[0].normalized, "assignment": '{"%0": "nowhere"}'}
    with pytest.raises(InputError, match="the label has no legal base for %0"):
        graph_of(row)
