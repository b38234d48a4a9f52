"""Code for sm_90: what differs from sm_80, and products of a warp group."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.nvidia import assembled_kernels as kernels
from tests.backends.nvidia.assembly import assemble
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.distance_table import distance_table
from verilocc_bench.backends.nvidia.hazards import find_hazards
from verilocc_bench.backends.nvidia.kernel import machine_problem, read_kernel
from verilocc_bench.backends.nvidia.write_back import RunVerdict
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.targets import get_target

PRODUCTS = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry products(.param .u64 out, .param .u64 left, .param .u64 right)
{
    .reg .b64 %d<4>;
    .reg .f32 %f<8>;
    ld.param.u64 %d0, [out];
    ld.param.u64 %d1, [left];
    ld.param.u64 %d2, [right];
    mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000;
    mov.f32 %f6, 0f00000000; mov.f32 %f7, 0f00000000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
        {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d1, %d2, 1, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
        {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d2, %d1, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%d0], {%f0, %f1, %f2, %f3};
    st.global.v4.f32 [%d0 + 16], {%f4, %f5, %f6, %f7};
    ret;
}
"""


def test_the_register_count_stands_in_the_information_alone() -> None:
    (kernel,) = read_cubin(kernels.assembled(kernels.LOOP, "sm_90")).kernels
    assert kernel.register_count_offset is None
    assert len(kernel.register_attribute_offsets) == 1
    assert kernel.register_count > 4


def test_a_cubin_without_its_register_count_is_refused() -> None:
    data = bytearray(kernels.assembled(kernels.LOOP, "sm_90"))
    (kernel,) = read_cubin(bytes(data)).kernels
    (offset,) = kernel.register_attribute_offsets
    data[offset : offset + 4] = (300).to_bytes(4, "little")
    with pytest.raises(InputError, match="expected at most 256 registers"):
        read_cubin(bytes(data))


@pytest.mark.parametrize("ptx", [kernels.LOOP, PRODUCTS], ids=["loop", "products"])
def test_a_kernel_is_read_and_written_back(ptx: str) -> None:
    cubin = kernels.assembled(ptx, "sm_90a" if ptx == PRODUCTS else "sm_90")
    kernel = read_kernel(cubin, Path("kernel.cubin"), ReadOptions())
    assert kernel.problem.target is get_target("sm_90")
    problem = kernel.code.normalized
    same = kernels.lowered_kernel(cubin, problem, problem.assignment)
    assert same.data == cubin
    assert same.verdict is RunVerdict.COMPILERS_OWN
    other = kernels.lowered_kernel(cubin, problem, linear_scan(machine_problem(kernel)))
    assert other.verdict is RunVerdict.BY_THE_RULES


@pytest.mark.parametrize("arch", [None, "sm_90"])
def test_ptx_is_assembled_for_the_target_that_it_names(arch: str | None) -> None:
    kernels.require_tools()
    kernel = read_kernel(PRODUCTS.encode(), Path("kernel.ptx"), ReadOptions(arch=arch))
    assert kernel.problem.target is get_target("sm_90")


def test_ptx_for_sm_90_is_refused_for_sm_80() -> None:
    kernels.require_tools()
    with pytest.raises(InputError, match=r"kernel\.ptx"):
        read_kernel(PRODUCTS.encode(), Path("kernel.ptx"), ReadOptions(arch="sm_80"))


def test_an_accumulator_of_f32_starts_at_a_multiple_of_four() -> None:
    kernel = read_kernel(kernels.assembled(PRODUCTS, "sm_90a"), Path("kernel.cubin"), ReadOptions())
    text = print_function(kernel.problem.function)
    assert "class R8 8 R/4" in text
    assert "HGMMA.64x16x16.F32" in text
    assert assemble("HGMMA.64x16x16.F32 R28, gdesc[UR8], R28, gsb0\nEXIT", "sm_90").instructions


def test_reductions_of_half_precision_read_their_vectors() -> None:
    for width, count in (("F16x8", 4), ("BF16x4", 2), ("BF16x2", 1)):
        text = f"REDG.E.ADD.{width}.RN.STRONG.GPU desc[UR6][R4.64], R8\nEXIT"
        (reduction, _) = assemble(text, "sm_90").instructions
        assert [each.count for each in reduction.uses if each.first == 8] == [count]


@pytest.mark.parametrize(("architecture", "variable"), [("sm_80", True), ("sm_90", False)])
def test_r2ur_has_a_fixed_latency_on_sm_90(architecture: str, variable: bool) -> None:
    (move, _) = assemble("R2UR UR4, R2\nEXIT", architecture).instructions
    assert move.variable_latency is variable


@pytest.mark.parametrize(
    ("wait", "found"),
    [
        ("WARPGROUP.DEPBAR.LE gsb0, 0x0", set()),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", {"R56"}),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x2", {"R24", "R56"}),
    ],
)
def test_a_wait_covers_all_groups_but_the_last_ones(wait: str, found: set[str]) -> None:
    function = assemble(
        f"""
        HGMMA.64x16x16.F32 R24, gdesc[UR8], RZ, !UPT
        HGMMA.64x16x16.F32 R24, gdesc[UR12], R24, gsb0
        HGMMA.64x16x16.F32 R56, gdesc[UR8], RZ, !UPT, gsb0
        {wait}
        FADD R2, R24, R24
        FADD R3, R56, R56
        EXIT
        """,
        "sm_90",
    )
    hazards = find_hazards(function)
    assert {register for hazard in hazards for register in hazard.registers} == found


def test_a_factor_in_registers_is_read_until_the_wait() -> None:
    function = assemble(
        """
        HGMMA.64x16x16.F32 R24, R40, gdesc[UR8].tnspB, R24, gsb0
        MOV R41, R2
        WARPGROUP.DEPBAR.LE gsb0, 0x0
        MOV R42, R2
        EXIT
        """,
        "sm_90",
    )
    hazards = find_hazards(function)
    assert [(hazard.later, hazard.registers) for hazard in hazards] == [(1, ("R41",))]


def test_each_architecture_has_distances_of_its_own() -> None:
    old, new = distance_table("sm_80"), distance_table("sm_90")
    assert new.corpus["kernels"] > 2_400
    assert old.cells != new.cells
