"""Small kernels in assembly: memory, time, faults, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.machine.assembly import assembled, kernel_of, program
from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import KernelArgument
from verilocc_bench.machine.execution import Fault, RunnableKernel, load_kernel, run
from verilocc_bench.machine.state import WaveOrder
from verilocc_bench.machine.stepping import SteppedRun, trace

pytestmark = pytest.mark.slow

COPY = program("copy")
TURNED = program("turned")
BY_HAND = program("by_hand")
ALIKE = program("alike")
PASSED_OVER = program("passed_over")


def numbers(count: int = 64) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.arange(count, dtype=np.uint32) * 3


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_memory_is_read_and_written(arch: str, asynchronous: bool) -> None:
    out = np.zeros(64, np.uint32)
    result = run(assembled(COPY, arch), "k", [numbers(), out], (1,), asynchronous=asynchronous)
    assert result.buffers[1] is not None
    assert (result.buffers[1] == numbers() + 1).all()
    assert not out.any(), "the caller's arrays stay as they are"
    assert (result.wave_instructions, result.event_count) == (8, 0)
    assert result.counts.tolist() == [1] * 8


def test_a_missing_wait_gives_other_numbers() -> None:
    arguments = [numbers(), np.zeros(64, np.uint32)]
    for_address, for_number = (
        kernel_of(COPY.replace(f"s_waitcnt {count}cnt(0)", "")) for count in ("lgkm", "vm")
    )
    for kernel in (for_address, for_number):
        assert (kernel.run(arguments, (1,)).buffers[1] == numbers() + 1).all()
    with pytest.raises(Fault, match="outside every argument's memory"):
        for_address.run(arguments, (1,), asynchronous=True)
    late = for_number.run(arguments, (1,), asynchronous=True)
    assert (late.buffers[1] != numbers() + 1).all()
    assert (late.events[0].kind, late.events[0].register) == ("read in flight", "v2")
    assert "global_load_dword" in str(late.events[0])


def test_a_fault_names_instruction_lane_and_address() -> None:
    with pytest.raises(Fault, match=r"0x\w+: 'global_load_dword v2, v1.*wave 0, lane 32: address"):
        run(assembled(COPY), "k", [numbers(32), np.zeros(64, np.uint32)], (1,))


def test_the_kernarg_segment_is_read_only() -> None:
    body = """
        v_mov_b32_e32 v1, 0
        global_store_dword v1, v0, s[0:1]
        s_endpgm
    """
    with pytest.raises(Fault, match="read-only memory"):
        kernel_of(body).run([], (1,))


def test_an_endless_loop_ends() -> None:
    with pytest.raises(Fault, match="more instructions than the limit"):
        kernel_of(".Lx:\ns_branch .Lx\ns_endpgm").run([], (1,), step_limit=1000)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("v_mqsad_pk_u16_u8 v[2:3], v[4:5], v6, v[8:9]", "unknown opcode v_mqsad_pk_u16_u8"),
        ("s_set_gpr_idx_off", "unknown opcode s_set_gpr_idx_off"),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0", "unknown opcode"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3", "unknown opcode"),
        ("v_mfma_f32_32x32x1_2b_f32 v[0:31], v32, v33, v[0:31] cbsz:1", "modifier cbsz"),
        ("v_add_u32_e64 v1, v2, v3 clamp", "modifier clamp"),
        ("s_trap 2", "unknown opcode s_trap"),
        ("v_mfma_f32_32x32x8_f16 v[0:15], v[14:15], v[16:17], v[0:15]", "the result overlaps A"),
    ],
)
def test_what_is_not_supported_is_refused_before_anything_runs(line: str, what: str) -> None:
    data = assembled(f"s_branch .Lx\n{line}\n.Lx:\ns_endpgm")
    with pytest.raises(InputError, match="is not supported") as refused:
        load_kernel(data)
    assert what in str(refused.value)


def test_registers_beyond_the_descriptor() -> None:
    load_kernel(assembled("v_mov_b32_e32 v63, 0\nv_accvgpr_write_b32 a63, v0\ns_endpgm"))
    for line in ("v_mov_b32_e32 v64, 0", "global_load_dwordx2 v[64:65], v[0:1], off"):
        with pytest.raises(InputError, match=r"at 0x\w+: its descriptor has 64 registers v$"):
            load_kernel(assembled(f"{line}\ns_endpgm"))
    with pytest.raises(InputError, match=r"64 registers a$"):
        load_kernel(assembled("v_accvgpr_write_b32 a64, v0\ns_endpgm"))


def test_waves_meet_at_barriers_and_share_lds() -> None:
    kernel = kernel_of(TURNED.format(wait="s_waitcnt lgkmcnt(0)"), items=128)
    arguments = [None, np.zeros(128, np.uint32)]
    for asynchronous in (False, True):
        result = kernel.run(arguments, (1,), asynchronous=asynchronous)
        assert (result.buffers[1] == np.arange(128)[::-1]).all()
        assert result.event_count == 0
    # A wave that does not wait for its write before the barrier.
    hasty = kernel_of(TURNED.format(wait=""), items=128)
    result = hasty.run(arguments, (1,), asynchronous=True)
    assert (result.buffers[1] != np.arange(128)[::-1]).any()


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("missing", [-1, 0, 1, 16])
def test_a_matrix_result_that_is_read_too_soon(arch: str, missing: int) -> None:
    """32x32x8 f16 takes 16 passes on gfx90a (19 wait states), 8 on gfx942 (11)."""
    name, needed = {
        "gfx90a": ("v_mfma_f32_32x32x8f16", 19),
        "gfx942": ("v_mfma_f32_32x32x8_f16", 11),
    }[arch]
    waits = ["s_nop 0"] * (needed - missing)
    body = f"""
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        v_mov_b32_e32 v2, 0x3c003c00
        v_mov_b32_e32 v3, v2
        s_waitcnt lgkmcnt(0)
        s_nop 1
        {name} v[16:31], v[2:3], v[2:3], 0
        {chr(10).join(waits)}
        global_store_dword v1, v16, s[6:7]
        s_endpgm
    """
    kernel = kernel_of(body, arch)
    result = kernel.run([None, np.zeros(64, np.float32)], (1,), asynchronous=True)
    assert bool((result.buffers[1] == 8).all()) == (missing <= 0)
    assert bool(result.event_count) == (missing > 0)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_private_memory(arch: str) -> None:
    if arch == "gfx942":
        store = "scratch_store_dword off, v0, off offset:4"
        load = "scratch_load_dword v3, off, off offset:4"
        options, scalar = ".amdhsa_enable_private_segment 1", "s[0:1]"
    else:
        options = (
            ".amdhsa_user_sgpr_private_segment_buffer 1\n"
            ".amdhsa_system_sgpr_private_segment_wavefront_offset 1"
        )
        store = "buffer_store_dword v0, off, s[0:3], s8 offset:4"
        load = "buffer_load_dword v3, off, s[0:3], s8 offset:4"
        scalar = "s[4:5]"
    body = f"""
        s_load_dwordx4 s[12:15], {scalar}, 0x0
        v_and_b32_e32 v0, 0x3ff, v0
        v_lshlrev_b32_e32 v1, 2, v0
        {store}
        s_waitcnt vmcnt(0) lgkmcnt(0)
        {load}
        s_waitcnt vmcnt(0)
        global_store_dword v1, v3, s[14:15]
        s_endpgm
    """
    kernel = kernel_of(body, arch, scratch=16, options=options, items=128)
    result = kernel.run([None, np.zeros(128, np.uint32)], (1,), asynchronous=True)
    assert (result.buffers[1] == np.arange(128)).all()


def test_a_buffer_out_of_range_reads_zero_and_stores_nothing() -> None:
    body = """
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        s_mov_b32 s8, s4
        s_mov_b32 s9, s5
        s_mov_b32 s10, 128
        s_mov_b32 s11, 0x20000
        s_mov_b32 s12, s6
        s_mov_b32 s13, s7
        s_mov_b32 s14, 192
        s_mov_b32 s15, 0x20000
        buffer_load_dword v2, v1, s[8:11], 0 offen
        s_waitcnt vmcnt(0)
        buffer_store_dword v2, v1, s[12:15], 0 offen
        s_endpgm
    """
    out = np.full(64, 7, np.uint32)
    result = kernel_of(body).run([numbers(), out], (1,))
    expected = np.where(np.arange(64) < 32, numbers(), np.where(np.arange(64) < 48, 0, 7))
    assert (result.buffers[1] == expected).all()


def test_registers_at_an_instruction() -> None:
    kernel = kernel_of(COPY)
    at = kernel.program.instructions[5].address
    registers = trace(kernel, [numbers(), np.zeros(64, np.uint32)], (1,), at)
    assert (registers.vectors[2] == numbers()).all()
    assert registers.execution == 2**64 - 1
    with pytest.raises(InputError, match="comes to 0x"):
        trace(kernel, [numbers(), np.zeros(64, np.uint32)], (1,), at, visit=1)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="has 3 arguments, got 4"):
        run(assembled(COPY), "k", [None, None, 1, 2], (1,))
    with pytest.raises(InputError, match="neither an array nor a number"):
        run(assembled(COPY), "k", [None, None, "x"], (1,))  # type: ignore[list-item]
    with pytest.raises(InputError, match="no whole ELF file: the header cannot be read"):
        run(b"\x7fELF nonsense", "k", [], (1,))
    with pytest.raises(InputError, match="expected the name of one of the kernels k"):
        run(assembled(COPY), "other", [], (1,))


def test_numbers_that_do_not_fit() -> None:
    kernel = kernel_of(COPY)
    for number in (1e39, 2**32, -(2**31) - 1):
        with pytest.raises(InputError, match=r"at byte 16 has 4 bytes.*a number that fits"):
            kernel.run([None, None, number], (1,))
    with pytest.raises(InputError, match="an array of objects"):
        kernel.run([np.array([None])], (1,))
    kernel.code = replace(kernel.code, arguments=(KernelArgument(16, 2, "by_value", None),))
    with pytest.raises(InputError, match="expected a NumPy number or the bits of one"):
        kernel.run([0.5], (1,))
    for grid in ((1.5,), (1, 1, 1, 1), (0,)):
        with pytest.raises(InputError, match="expected one to three positive numbers"):
            kernel.run([], grid)  # type: ignore[arg-type]


def test_four_words_are_loaded_where_three_are_and_the_dimensions_of_the_grid() -> None:
    """Past the arguments (24 bytes) and an array of 12, to the end of the aligned 16 alone."""
    kernel = kernel_of(program("wide"))
    hidden = KernelArgument(20, 2, "hidden_grid_dims", None)
    kernel.code = replace(kernel.code, arguments=(*kernel.code.arguments, hidden))
    three = np.array([2, 3, 7], np.uint32)
    for grid, dimensions in (((2,), 1), ((1, 2), 2), ((1, 1, 2), 3)):
        found = kernel.run([three, np.zeros(64, np.uint32), 5], grid, block=(64,)).buffers[1]
        assert (found == 5 + dimensions + 7).all()
    for further in ("s_load_dword s8, s[0:1], 0x20", "s_load_dword s8, s[4:5], 0x10"):
        with pytest.raises(Fault, match="outside every argument's memory"):
            kernel_of(program("wide").replace("s_nop 0", further)).run([three, three, 5], (1,))


def test_the_order_of_waves_shows_a_read_that_another_wave_overwrites() -> None:
    kernel = kernel_of(program("overwritten"), items=128)
    arguments = [None, np.zeros(128, np.uint32)]
    right = np.arange(128)
    assert (kernel.run(arguments, (1,), asynchronous=True).buffers[1] == right).all()
    turned = kernel.run(arguments, (1,), asynchronous=True, order=WaveOrder.BACKWARD).buffers[1]
    assert (turned != right).any()
    waiting = kernel_of(
        program("overwritten").replace("v3, v1\n", "v3, v1\n    s_waitcnt lgkmcnt(0)\n"),
        items=128,
    )
    for order in WaveOrder:
        result = waiting.run(arguments, (1,), asynchronous=True, order=order)
        assert (result.buffers[1] == right).all()


def test_code_written_by_hand_has_labels_and_no_sizes() -> None:
    kernel = kernel_of(BY_HAND, sized=False)
    assert kernel.program.instructions[-1].mnemonic == "s_endpgm"
    assert kernel.program.instructions[7].text == "s_cbranch_scc1 65532"
    done = kernel.run([None, np.zeros(64, np.uint32)], (1,)).buffers[1]
    assert (done == 6).all()
    with pytest.raises(InputError, match="s_trap"):
        kernel_of(BY_HAND)


def test_a_run_stops_before_every_instruction() -> None:
    kernel = kernel_of(COPY, items=128)
    run_of = SteppedRun(kernel, [numbers(128), np.zeros(128, np.uint32)], (1,), block=(128, 1, 1))
    stops = list(run_of.stops())
    count = len(kernel.program.instructions)
    assert stops == [(wave, row) for wave in range(2) for row in range(count)]


def test_alternating_waves_show_what_several_waves_write_alike() -> None:
    arguments = [numbers(128), np.zeros(64, np.uint32)]
    sums = numbers(128)[:64] + numbers(128)[64:]
    # In either plain order the wave that comes last has read late enough, and overwrites.
    for wait, right in (("s_waitcnt lgkmcnt(0)", [True] * 4), ("", [True, True, False, False])):
        kernel = kernel_of(ALIKE.format(wait=wait), items=128)
        done = [kernel.run(arguments, (1,), asynchronous=True, order=order) for order in WaveOrder]
        assert [bool((each.buffers[1] == sums).all()) for each in done] == right


def test_any_wave_can_run_first() -> None:
    arguments = [numbers(64), np.zeros(64, np.uint32)]
    waiting, hasty = (
        kernel_of(program("between").format(wait=wait), items=192)
        for wait in ("s_waitcnt lgkmcnt(0)", "")
    )

    def is_right(kernel: RunnableKernel, order: WaveOrder, first_wave: int) -> bool:
        done = kernel.run(
            arguments, (1,), asynchronous=True, order=order, first_wave=first_wave
        ).buffers[1]
        return bool((done == numbers(64)).all())

    for order in WaveOrder:
        assert all(is_right(waiting, order, first_wave) for first_wave in range(3))
        # From either end another wave has written the same numbers before.
        assert is_right(hasty, order, 0)
    assert not is_right(hasty, WaveOrder.FORWARD, 1)


def test_a_branch_that_is_passed_over_counts_as_in_llvm() -> None:
    arguments = [numbers(), np.zeros(64, np.uint32)]
    kernel = kernel_of(PASSED_OVER.format(passed_over="s_branch .Lfar"))
    done = kernel.run(arguments, (1,), asynchronous=True)
    assert done.event_count == 0
    assert (done.buffers[1] == numbers()).all()
    kernel = kernel_of(PASSED_OVER.format(passed_over="s_nop 0"))
    with pytest.raises(Fault, match="outside every argument's memory"):
        kernel.run(arguments, (1,), asynchronous=True)
