"""What the control words keep apart: the analysis, and the timing model's second opinion."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.timing_model import TimingModel
from benchmarks.timing_operations import registers_of
from tests.backends.nvidia.assembled_kernels import (
    LOOP,
    PRODUCT,
    assembled,
    code,
    linear_scan,
    lowered_kernel,
    normalized,
    permuted,
    require_tools,
)
from tests.backends.nvidia.assembly import assemble, changed
from tests.backends.nvidia.test_issue_distances import timed
from verilocc_bench.allocators.linear_scan import linear_scan as scan
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.machine_live_ranges import MachineProblem
from verilocc_bench.backends.nvidia.distance_table import distance_table
from verilocc_bench.backends.nvidia.hazards import HazardKind, find_hazards
from verilocc_bench.backends.nvidia.kept_apart import (
    kept_apart,
    machine_live_ranges,
    met,
    new_hazards,
)
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.write_back import RunVerdict, renaming_of
from verilocc_bench.ir import Assignment

DISTANCES = {
    (kind.hazard.value, kind.earlier, kind.later, kind.file): cell.cycles
    for kind, cell in distance_table("sm_80").cells.items()
}

STORE = """
MOV R2, 0x1
MOV R6, 0x40
MOV R7, 0x0
STG.E [R6], R2
MOV R3, 0x2
STG.E [R6], R3
EXIT
"""


def model_of(function: SassFunction) -> TimingModel:
    return TimingModel(function, DISTANCES)


def renamed(function: SassFunction, changes: dict[tuple[int, int], int]) -> list[str]:
    """The kinds of what meets under changed registers, of analysis and model."""
    found = {hazard.kind.value for hazard in new_hazards(function, changes)}
    destroyed = model_of(function).destroyed(registers_of(function, changes))
    assert bool(found) == bool(destroyed)
    return sorted(found)


def test_a_store_that_nothing_waits_for_keeps_its_source() -> None:
    function = timed(STORE, dict.fromkeys(range(7), 8))
    assert renamed(function, {}) == []
    # R3 becomes R2 while the first store may still read it.
    assert renamed(function, {(4, 0): 2, (5, 2): 2}) == ["write-after-read"]
    # So it may where the second MOV waits for the store.
    raised = function.instructions[3].encoding & ~(7 << 113) | 2 << 113
    waiting = function.instructions[4].encoding | 1 << 2 + 116
    function = changed(changed(function, 3, encoding=raised), 4, encoding=waiting)
    assert renamed(function, {(4, 0): 2, (5, 2): 2}) == []


PARTED = Path(__file__).with_name("parted.txt").read_text("utf-8").strip().split("\n\n")


@pytest.mark.parametrize("case", PARTED, ids=[case.partition("\n")[0] for case in PARTED])
def test_threads_that_part_share_uniform_registers(case: str) -> None:
    """What one side of a branch defines, with a use of what the other side found."""
    told, _, text = case.partition("\n")
    pairs = told.removeprefix("pairs ").partition(":")[0].split()
    function = assemble(text)
    found = [p for p in kept_apart(function) if p.hazard is HazardKind.PARTED_THREADS]
    assert [f"{pair.earlier}-{pair.later}" for pair in found] == pairs
    for pair in found:
        hazard, *_ = new_hazards(function, {(pair.earlier, 0): pair.second.register})
        assert hazard.registers == (f"UR{pair.second.register}",)


def test_a_jump_through_a_table_parts_threads() -> None:
    text = "BRX R2 -0x10\nL1:\nIADD3 R2, R2, UR4, RZ\nEXIT\nL2:\nUMOV UR6, 0x400\nEXIT"
    function = changed(assemble(text), 0, table=(".L_x_1", ".L_x_2"))
    found = [p for p in kept_apart(function) if p.hazard is HazardKind.PARTED_THREADS]
    assert [(pair.earlier, pair.later) for pair in found] == [(3, 1)]


PRODUCTS = """
HMMA.16816.F32 R4, R8, R12, R4
IADD3 R20, R21, R22, RZ
EXIT
"""


@pytest.mark.parametrize(("stall", "meets"), [(6, True), (7, False)])
def test_operands_of_a_matrix_product_are_kept_seven_cycles(stall: int, meets: bool) -> None:
    function = timed(PRODUCTS, {0: stall})
    assert (renamed(function, {(1, 0): 9}) == ["write-after-read"]) is meets
    (hazard, *_) = new_hazards(function, {(1, 0): 9}) or [None]
    if hazard is not None:
        assert (hazard.cycles, hazard.least, hazard.registers) == (6, 7, ("R9",))
    assert (
        renamed(function, {(1, 0): 5})
        == ["write-after-write", "write-after-read"][: 1 + meets][::-1]
    )


@cache
def kernel(ptx: str):  # type: ignore[no-untyped-def]
    require_tools()
    cubin = assembled(ptx)
    problem = normalized(cubin)
    return cubin, problem, code(cubin, problem.name)


def machine(ptx: str) -> MachineProblem:
    _, problem, function = kernel(ptx)
    plain = AllocationProblem(problem.function)
    return MachineProblem(plain, machine_live_ranges(function, problem, plain.liveness))


KERNELS = pytest.mark.parametrize("ptx", [LOOP, PRODUCT], ids=["loop", "product"])


@KERNELS
def test_the_compilers_own_assignment_and_its_permutations_run(ptx: str) -> None:
    cubin, problem, function = kernel(ptx)
    for model in placement_models(machine(ptx)):
        assert model.is_valid(model.bases(problem.assignment))
    pairs = list(kept_apart(function))
    assert pairs
    for assignment in (problem.assignment, permuted(problem, 1), permuted(problem, 2)):
        assert not list(met(pairs, renaming_of(function, problem, assignment)))
        assert not destroyed(ptx, assignment)
    assert lowered_kernel(cubin, problem, problem.assignment).verdict is RunVerdict.COMPILERS_OWN
    assert lowered_kernel(cubin, problem, permuted(problem, 1)).verdict is RunVerdict.BY_THE_RULES


def destroyed(ptx: str, assignment: Assignment) -> bool:
    _, problem, function = kernel(ptx)
    renaming = renaming_of(function, problem, assignment)
    return bool(model_of(function).destroyed(registers_of(function, renaming)))


@KERNELS
def test_answers_on_machine_live_ranges_run_by_the_rules(ptx: str) -> None:
    cubin, problem, _ = kernel(ptx)
    found = scan(machine(ptx))
    lowered = lowered_kernel(cubin, problem, found)
    assert lowered.verdict is RunVerdict.BY_THE_RULES, lowered.reasons
    assert not destroyed(ptx, found)


@KERNELS
def test_other_answers_are_refused_by_both(ptx: str) -> None:
    cubin, problem, _ = kernel(ptx)
    found = linear_scan(problem)
    lowered = lowered_kernel(cubin, problem, found)
    assert lowered.verdict is RunVerdict.NOT_RUNNABLE
    assert lowered.reasons
    assert destroyed(ptx, found)
    # The hazards of waits are those that the code itself shows when it is read again.
    waits = {(h.kind, h.earlier, h.later) for h in lowered.hazards if h.cycles is None}
    assert waits == {(h.kind, h.earlier, h.later) for h in find_hazards(lowered.function)}
