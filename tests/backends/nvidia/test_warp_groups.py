"""Sums of warp groups belong to their products from the arrival on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.nvidia.assembly import assemble
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.machine_live_ranges import MachineProblem
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.hazards import find_hazards
from verilocc_bench.backends.nvidia.kept_apart import machine_live_ranges, new_hazards
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.warp_groups import behind_arrivals
from verilocc_bench.backends.nvidia.write_back import renaming_of
from verilocc_bench.ir import PhysicalRegister
from verilocc_bench.verification import FastVerifier

GROUP = """
    FADD R3, R3, R48
    WARPGROUP.ARRIVE
    FADD R2, R3, R3
    HGMMA.64x16x16.F32 R24, R40, gdesc[UR8].tnspB, R24
    FADD R4, R2, R2
    HGMMA.64x16x16.F32 R24, R56, gdesc[UR12].tnspB, R24
    HGMMA.64x16x16.F32 R32, gdesc[UR12], RZ, !UPT, gsb0
    WARPGROUP.DEPBAR.LE gsb0, 0x0
    FADD R4, R4, R24
    FADD R4, R4, R32
    STG.E [R48], R4
    EXIT
"""


@pytest.mark.parametrize(
    ("registers", "found"),
    [
        # (instruction, definition or use) and its new register: the sum moves as a whole,
        ({(3, 0): 64, (3, 3): 64, (5, 0): 64, (5, 3): 64, (8, 2): 64}, set()),
        # between two products, and over a factor of the product before: an H200 does it right.
        ({(5, 0): 64, (8, 2): 64}, set()),
        ({(5, 0): 40, (8, 2): 40}, set()),
        # Over what a product at work adds to, which is waited for.
        (
            {(3, 3): 64, (6, 0): 64, (9, 2): 64},
            {(3, 6, f"R{number}") for number in range(64, 72)},
        ),
        # Half over what it adds to, and over its own factor.
        (
            {(5, 0): 28, (6, 0): 72, (9, 2): 72},
            {(5, 5, "R28"), *((3, 5, f"R{number}") for number in range(28, 32))},
        ),
        ({(5, 0): 56}, {(5, 5, "R56")}),
        # Over what others access behind the arrival: an H200 leaves wrong numbers.
        ({(6, 0): 0}, {(2, 6, "R2"), (2, 6, "R3"), (4, 6, "R2"), (4, 6, "R4")}),
        ({(5, 0): 0}, {(2, 5, "R2"), (2, 5, "R3"), (4, 5, "R2"), (4, 5, "R4")}),
        # What is accessed before the arrival alone does no harm.
        ({(2, 1): 5, (2, 2): 5, (0, 0): 32, (0, 1): 32}, set()),
    ],
)
def test_a_sum_belongs_to_its_product_from_the_arrival_on(
    registers: dict[tuple[int, int], int], found: set[tuple[int, int, str]]
) -> None:
    hazards = new_hazards(assemble(GROUP, "sm_90"), registers)
    assert {
        (h.earlier, h.later, each) for h in hazards if h.cycles is None for each in h.registers
    } == found


def test_a_product_may_overwrite_a_factor_of_one_that_adds_to_nothing() -> None:
    function = assemble(
        """
        HGMMA.64x16x16.F32 R24, R40, gdesc[UR8].tnspB, RZ, !UPT
        HGMMA.64x16x16.F32 R32, gdesc[UR12], RZ, !UPT, gsb0
        WARPGROUP.DEPBAR.LE gsb0, 0x0
        EXIT
        """,
        "sm_90",
    )
    assert not new_hazards(function, {(1, 0): 40})


@pytest.mark.parametrize(("total", "found"), [("R32", set()), ("R0", {"R2", "R3", "R4"})])
def test_it_is_a_hazard_of_any_code(total: str, found: set[str]) -> None:
    hazards = find_hazards(assemble(GROUP.replace("R32", total), "sm_90"))
    assert {register for hazard in hazards for register in hazard.registers} == found


def test_arrivals_count_on_all_paths() -> None:
    function = assemble(
        """
            MOV R2, R3
        L1:
            MOV R4, R5
            @P0 BRA L(2)
            WARPGROUP.ARRIVE
        L2:
            MOV R6, R7
            HGMMA.64x16x16.F32 R24, gdesc[UR8], RZ, !UPT, gsb0
            @P1 WARPGROUP.ARRIVE
            @P2 BRA L(1)
            EXIT
        """,
        "sm_90",
    )
    found = {earlier for earlier, later in behind_arrivals(function, control_flow(function))}
    assert {0, 1, 4} <= found
    assert 3 not in found


def test_machine_live_ranges_keep_to_it() -> None:
    function = assemble(GROUP, "sm_90")
    problem = normalize_sass(function, 80)
    text = AllocationProblem(problem.function)
    strict = MachineProblem(text, machine_live_ranges(function, problem, text.liveness))
    moved = {
        number: replace(base, index=35) if base == PhysicalRegister("R", 2) else base
        for number, base in problem.assignment.items()
    }
    for assignment, right in ((problem.assignment, True), (moved, False)):
        named = answer_from_assignment(text, assignment)
        assert FastVerifier(text).verify(named).valid
        assert FastVerifier(strict).verify(named).valid == right
    renaming = renaming_of(function, problem, linear_scan(strict))
    assert not new_hazards(function, renaming)
