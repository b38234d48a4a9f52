"""Code for sm_90: what differs from sm_80, and products of a warp group."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.nvidia import assembled_kernels as kernels
from tests.backends.nvidia.assembly import assemble, body
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.distance_table import PairKind, distance_table
from verilocc_bench.backends.nvidia.hazards import HazardKind, find_hazards
from verilocc_bench.backends.nvidia.issue_distances import HORIZON
from verilocc_bench.backends.nvidia.kernel import SassKernel, machine_problem, read_kernel
from verilocc_bench.backends.nvidia.write_back import RunVerdict, write_assignment
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.targets import get_target

_SUM = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
_PRODUCT = f"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {_SUM}"
PRODUCTS = kernels.module(
    kernels.entry(
        "products",
        "ld.param.u64 %d0, [out]; ld.param.u64 %d1, [left]; ld.param.u64 %d2, [right];\n"
        + "".join(f"mov.f32 %f{number}, 0f00000000;\n" for number in range(8))
        + f"""
    wgmma.fence.sync.aligned;
    {_PRODUCT}, %d1, %d2, 1, 1, 1, 0, 0;
    {_PRODUCT}, %d2, %d1, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%d0], {{%f0, %f1, %f2, %f3}};
    st.global.v4.f32 [%d0 + 16], {{%f4, %f5, %f6, %f7}};
""",
        ".param .u64 out, .param .u64 left, .param .u64 right",
    ),
    target="sm_90a",
)
_KERNEL = Path(__file__).with_name("copies.ptx").read_text("utf-8")

# Tensors copied and awaited in a loop; products of bytes between barriers; bulk copies.
COPIES = _KERNEL.replace(
    "PARTS",
    """
again:
    @!%p0 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r2], 4096;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r3], [%d1, {%r4, %r0}], [%r2];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r4;
    @!%p1 bra wait;
    ld.shared.f32 %f4, [%r3+16];
    add.f32 %f0, %f0, %f4;
    add.s32 %r4, %r4, 1;
    setp.lt.s32 %p2, %r4, %r0;
    @%p2 bra again;
    @!%p0 bra done;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r0, %r0}], [%r3];
    cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%d1, {%r0}], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
done:
more:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r4;
    @!%p1 bra more;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%f0, %f1, %f2, %f3}, %d2, %d2, 1, 1, 1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mbarrier.arrive.shared::cta.b64 _, [%r2+8];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d0], %r0, [%r2];
    mbarrier.arrive.shared::cta.b64 %d5, [%r2+8];
    mbarrier.test_wait.shared::cta.b64 %p1, [%r2+8], %d5;
    selp.f32 %f0, 0f3F800000, 0f00000000, %p1;
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r3], %r0;
    cp.async.bulk.wait_group.read 0;
    elect.sync _|%p1, -1;
    @%p1 mbarrier.inval.shared::cta.b64 [%r2];
""",
)


def read(ptx: str, architecture: str = "sm_90a") -> SassKernel:
    return read_kernel(kernels.assembled(ptx, architecture), Path("k.cubin"), ReadOptions())


def test_the_register_count_stands_in_the_information_alone() -> None:
    data = bytearray(kernels.assembled(kernels.LOOP, "sm_90"))
    (kernel,) = read_cubin(bytes(data)).kernels
    assert kernel.register_count_offset is None
    assert kernel.register_count > 4
    (offset,) = kernel.register_attribute_offsets
    data[offset : offset + 4] = (300).to_bytes(4, "little")
    with pytest.raises(InputError, match="expected at most 256 registers"):
        read_cubin(bytes(data))


@pytest.mark.parametrize(
    ("ptx", "opcodes"),
    [
        pytest.param(kernels.LOOP, "MUFU.EX2", marks=pytest.mark.exhaustive),
        (PRODUCTS, "HGMMA.64x16x16.F32"),
        (
            COPIES,
            "UTMALDG.2D UTMASTG.2D UTMAREDG.1D.ADD SYNCS.EXCH.64 UTMACMDFLUSH "
            "QGMMA.64x8x32.F32.E4M3.E5M2 SYNCS.PHASECHK.TRANS64.TRYWAIT "
            "UBLKCP.S.G UBLKCP.G.S SYNCS.ARRIVE.TRANS64.A1T0 SYNCS.CCTL.IV ELECT",
        ),
    ],
    ids=["loop", "products", "copies"],
)
def test_a_kernel_is_read_and_written_back(ptx: str, opcodes: str) -> None:
    kernel = read(ptx, "sm_90" if ptx == kernels.LOOP else "sm_90a")
    assert {*opcodes.split()} <= {each.opcode for each in kernel.code.function.instructions}
    assert not find_hazards(kernel.code.function)
    assert kernel.problem.target is get_target("sm_90")
    same = write_assignment(kernel.code, kernel.code.normalized.assignment)
    assert same.data == kernel.code.cubin
    assert same.verdict is RunVerdict.COMPILERS_OWN
    other = write_assignment(kernel.code, linear_scan(machine_problem(kernel)))
    assert other.verdict is RunVerdict.BY_THE_RULES


def test_limits_of_registers_that_change_are_refused_by_name() -> None:
    ptx = _KERNEL.replace("PARTS", "setmaxnreg.dec.sync.aligned.u32 40;")
    with pytest.raises(InputError, match=r"USETMAXREG.* one budget for all of its code"):
        read(ptx)


def test_the_guard_of_one_thread_does_not_decide_the_branch_of_a_warp() -> None:
    text = "@P0 BRA{} L(1)\nMOV R2, R0\nEXIT\nL1:\n@!P0 MOV R3, R0\nEXIT"
    warp, thread = (
        body("ISETP.NE.AND P0, PT, R0, RZ, PT\n" + text.format(u)) for u in (".U.ANY", "")
    )
    assert warp[2] == "BRA.U.ANY %0"
    assert thread[2] == "@%0 BRA"
    # Where the thread's own guard decides, P0 is true behind the label.
    assert "@!%0 %4=MOV %5" in warp


def test_ptx_is_assembled_for_the_target_that_it_names() -> None:
    kernels.require_tools()
    for arch in (None, "sm_90"):
        kernel = read_kernel(PRODUCTS.encode(), Path("kernel.ptx"), ReadOptions(arch=arch))
        assert kernel.problem.target is get_target("sm_90")
    with pytest.raises(InputError, match=r"kernel\.ptx"):
        read_kernel(PRODUCTS.encode(), Path("kernel.ptx"), ReadOptions(arch="sm_80"))


def test_an_accumulator_of_f32_starts_at_a_multiple_of_four() -> None:
    kernel = read(PRODUCTS)
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


GROUPS = """
    HGMMA.64x16x16.F32 R24, gdesc[UR8], RZ, !UPT
    HGMMA.64x16x16.F32 R24, gdesc[UR12], R24, gsb0
    HGMMA.64x16x16.F32 R56, gdesc[UR8], RZ, !UPT, gsb0
    WARPGROUP.DEPBAR.LE gsb0, {}
    FADD R2, R24, R24
    FADD R3, R56, R56
    EXIT
"""
FACTOR = """
    HGMMA.64x16x16.F32 R24, R40, gdesc[UR8].tnspB, R24, gsb0
    MOV R41, R2
    WARPGROUP.DEPBAR.LE gsb0, 0x0
    MOV R42, R2
    EXIT
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # A wait covers all groups but the last ones.
        (GROUPS.format("0x0"), set()),
        (GROUPS.format("0x1"), {"R56"}),
        (GROUPS.format("0x2"), {"R24", "R56"}),
        (GROUPS.format("0x8"), {"R24", "R56"}),
        # A factor in registers is read until the wait, a copy's registers until its barrier.
        (FACTOR, {"R41"}),
        ("UTMALDG.2D [UR8], [UR18]\nUMOV UR11, UR4\nUMOV UR12, UR4\nEXIT", {"UR11"}),
    ],
)
def test_what_is_not_waited_for(text: str, found: set[str]) -> None:
    hazards = find_hazards(assemble(text, "sm_90"))
    assert {register for hazard in hazards for register in hazard.registers} == found


def test_distances_of_its_own_know_double_precision() -> None:
    old, new = distance_table("sm_80"), distance_table("sm_90")
    assert new.corpus["kernels"] > 2_800
    pair = PairKind(HazardKind.WRITE_AFTER_READ, "DFMA", "integer", "R")
    assert new.least(pair) < HORIZON == old.least(pair)
