"""Code objects back into machine IR: small kernels of our own, assembled by llvm-mc."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.backends.amdgpu.machine_ir import ROWS, answer_of, load
from tests.machine.assembly import assembled
from verilocc_bench.allocators import BUILT_IN, Request, answer_from_assignment
from verilocc_bench.backends.amdgpu.kernel import (
    MachineKernel,
    read_kernel,
    read_kernels,
    recovered_kernel,
)
from verilocc_bench.backends.amdgpu.lower import write_answer
from verilocc_bench.backends.amdgpu.recovery.recover import recover_kernel
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, run_llc
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.cli import main
from verilocc_bench.edits import Answer, assignment_alone
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.execution.executed_answers import AnswerExecutor
from verilocc_bench.ir import PhysicalRegister
from verilocc_bench.machine.code_object import load_code_object
from verilocc_bench.machine.execution import load_kernel
from verilocc_bench.verification import FastVerifier

pytestmark = pytest.mark.slow

START = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_load_dword s8, s[0:1], 0x10
    v_and_b32_e32 v0, 0x3ff, v0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
"""
# Every lane adds s8 times; the odd ones go on under their own mask.
LOOP = f"""
    {START}
    global_load_dword v2, v1, s[4:5]
    v_mov_b32_e32 v3, 0
    s_mov_b32 s9, 0
    s_waitcnt vmcnt(0)
again:
    v_add_u32_e32 v3, v3, v2
    s_add_u32 s9, s9, 1
    s_cmp_lt_u32 s9, s8
    s_cbranch_scc1 again
    v_and_b32_e32 v4, 1, v0
    v_cmp_eq_u32_e32 vcc, 1, v4
    s_and_saveexec_b64 s[10:11], vcc
    s_cbranch_execz rest
    v_mul_u32_u24_e32 v5, 3, v3
    v_add_u32_e32 v3, 7, v5
rest:
    s_mov_b64 exec, s[10:11]
    global_store_dword v1, v3, s[6:7]
    s_endpgm
"""


@cache
def read(body: str, items: int = 64) -> MachineKernel:
    return read_kernel(assembled(body, items=items), Path("kernel.o"), ReadOptions())


def storing(code: str, register: str = "v3", items: int = 64) -> MachineKernel:
    """A kernel that stores what code makes of its arguments."""
    store = f"s_waitcnt vmcnt(0)\nglobal_store_dword v1, {register}, s[6:7]\ns_endpgm"
    return read(f"{START}{code}\n{store}", items)


def own_register(line: str) -> str:
    return line.partition(" = ")[0]


def lines_of(kernel: MachineKernel, opcode: str) -> list[str]:
    return [line.strip() for line in kernel.code.text.split("\n") if f" {opcode} " in f"{line} "]


def test_the_own_registers_are_the_label() -> None:
    kernel = read(LOOP)
    assert kernel.name == "k"
    assert kernel.label is not None
    assert FastVerifier(kernel.problem).verify(kernel.label).valid
    lowered = write_answer(kernel, Answer(kernel.label))
    assert "$vgpr5 = V_MUL_U32_U24_e32 3, " in lowered.text
    assert "S_AND_SAVEEXEC_B64 $vcc" in lowered.text
    header = kernel.problem.normalized.split("bb0", maxsplit=1)[0]
    assert "registers v:256 a:256 s:102" not in header  # 128 registers leave room for 4 waves
    assert "registers v:64 a:64" in header


def numbers_left_by(data: bytes) -> np.ndarray:  # type: ignore[type-arg]
    given = np.arange(64, dtype=np.uint32) * 5 + 1
    arguments = [given, np.zeros(64, np.uint32), np.int32(4)]
    left = load_kernel(data).run(arguments, (1,)).buffers[1]
    assert left is not None
    return left


@pytest.mark.parametrize("shift", [0, 20])
def test_other_registers_compute_the_same(shift: int) -> None:
    data, kernel = assembled(LOOP), read(LOOP)
    files = {"v": shift, "s": 4 * (shift // 2)}
    recovered = recover_kernel(data, load_code_object(data).kernel())
    bases = [recovered.bases[int(name[1:])] for name in kernel.original_names]
    moved = {n: PhysicalRegister(b.file, b.index + files[b.file]) for n, b in enumerate(bases)}
    answer = answer_from_assignment(kernel.problem, moved)
    assert FastVerifier(kernel.problem).verify(answer).valid
    text = write_answer(kernel, Answer(answer)).text
    made = run_llc(text, "gfx942", "obj", LLC_OPTIONS)
    expected = (np.arange(64) * 5 + 1) * 4
    expected = np.where(np.arange(64) % 2, 3 * expected + 7, expected)
    assert numbers_left_by(data).tolist() == expected.tolist()
    assert numbers_left_by(made).tolist() == expected.tolist()


def test_a_write_under_a_mask_keeps_the_other_lanes() -> None:
    kernel = read(LOOP)
    (line,) = lines_of(kernel, "V_ADD_U32_e32 7,") or [""]
    match = re.match(r"(%\d+) = V_ADD_U32_e32 7, %\d+, implicit \$exec, implicit (%\d+)$", line)
    assert match is not None, line
    assert match[1] == match[2]
    (temporary,) = lines_of(kernel, "V_MUL_U32_U24_e32")
    assert temporary.count("%") == 2  # nobody reads its other lanes


def test_reading_other_lanes_sees_what_the_mask_hides() -> None:
    code = """
        v_mov_b32_e32 v3, 5
        v_cmp_eq_u32_e32 vcc, 1, v0
        s_and_saveexec_b64 s[10:11], vcc
        v_mov_b32_e32 v3, 9
        v_readlane_b32 s12, v3, 7
        v_mov_b32_e32 v4, s12
    """
    moves = lines_of(storing(code, "v4"), "V_MOV_B32_e32")
    assert own_register(moves[0]) == own_register(moves[1])
    assert moves[1].count("%") == 2  # the definition, and the lanes that stay


PARTS = [
    "v_add_f32_sdwa {}, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD "
    "src1_sel:DWORD",
    "v_mad_f16 {}, v0, v1, v1 op_sel:[0,0,0,1]",
    "v_mad_u16 {}, v0, v1, v1",
    "v_fma_f16 {}, v0, v1, v1",
    "v_med3_i16 {}, v0, v1, v1",
    "v_pk_fmac_f16 {}, v0, v1",
    "v_cvt_pkaccum_u8_f32 {}, v0, v1",
    "global_load_short_d16_hi {}, v1, s[4:5]",
    "v_mov_b32_dpp {}, v1 row_shr:1 row_mask:0xf bank_mask:0xf",
]


def test_instructions_that_write_a_part_read_the_rest() -> None:
    each = "v_mov_b32_e32 {0}, 5\n{1}\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, {0}, s[6:7]\n"
    code = "".join(each.format(f"v1{n}", part.format(f"v1{n}")) for n, part in enumerate(PARTS))
    kernel = storing(code, "v10")
    lines = lines_of(kernel, "V_MOV_B32_e32")
    assert len(lines) == len(PARTS)
    body = kernel.code.text.split("body:", maxsplit=1)[1]
    for register in map(own_register, lines):
        _, changed = re.findall(rf"^    {register} = .*", body, re.MULTILINE)
        assert changed.count(register) == 2, changed
        assert f"undef {register}" not in changed


ONE_OF_EACH = """
    v_mov_b32_dpp v10, v1 row_ror:1 row_mask:0xf bank_mask:0xf
    v_cvt_f32_f16_sdwa v11, v1 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:WORD_1
    s_movk_i32 s9, -64
    s_addk_i32 s9, -3
    s_cmpk_eq_u32 s9, 0xfff0
    s_cselect_b32 s9, s9, 0
    v_mov_b32_e32 v12, s9
    global_store_byte v1, v10, s[6:7]
    global_store_byte v1, v11, s[6:7]
    global_store_byte v1, v12, s[6:7]
    s_load_dwordx2 s[0:1], s[0:1], 0x0
"""


@pytest.mark.parametrize(
    ("opcode", "words"),
    [
        # A shift that fills every lane reads nothing old.
        ("V_MOV_B32_dpp", r"^(%\d+) = V_MOV_B32_dpp undef \1\(tied-def 0\), "),
        # A load of several registers may be done again, if it left its address as it was.
        ("S_LOAD_DWORDX4_IMM", "^early-clobber %"),
        ("S_LOAD_DWORDX2_IMM", "^%"),
        # A whole register that is said to stay is tied and undef.
        ("V_CVT_F32_F16_sdwa", r"^(%\d+) = .*implicit undef \1\(tied-def 0\)$"),
        # Short constants have a sign, if the instruction reads them so.
        ("S_MOVK_I32", "S_MOVK_I32 -64$"),
        ("S_CMPK_EQ_U32", r", 65520, implicit-def \$scc"),
        # What nothing wrote.
        ("GLOBAL_STORE_DWORD_SADDR", "undef %"),
    ],
)
def test_one_line(opcode: str, words: str) -> None:
    (line,) = lines_of(storing(ONE_OF_EACH), opcode)
    assert re.search(words, line), line


def test_waves_with_fewer_work_items_than_lanes() -> None:
    """A register of theirs has lanes that their own instructions never write."""
    turned = "v_mov_b32_e32 v4, 0\nv_mov_b32_dpp v4, v1 row_ror:8 row_mask:0xf bank_mask:0xf"
    wide = "s_or_saveexec_b64 s[10:11], -1\n{}\ns_mov_b64 exec, s[10:11]\n"
    whole = wide.format("v_mov_b32_e32 v3, 0") + "v_xor_b32_e32 v3, v1, v1\n"
    whole += wide.format("v_readlane_b32 s12, v3, 40") + "v_mov_b32_e32 v3, s12"
    for items, undef, kept in ((64, True, False), (96, False, True)):
        kernel = storing(f"{turned}\nglobal_store_dword v1, v4, s[6:7]\n{whole}", items=items)
        (line,) = lines_of(kernel, "V_MOV_B32_dpp")
        assert ("undef" in line) == undef
        (line,) = lines_of(kernel, "V_XOR_B32_e32")
        assert line.endswith(f", implicit {own_register(line)}") == kept


def test_a_register_that_one_path_writes_is_defined_on_the_other() -> None:
    kernel = storing("s_cmp_eq_u32 s8, 0\ns_cbranch_scc1 there\nv_mov_b32_e32 v3, 3\nthere:")
    (line,) = lines_of(kernel, "IMPLICIT_DEF")
    (written,) = lines_of(kernel, "V_MOV_B32_e32")
    assert own_register(line) == own_register(written)


def test_conditions_live_through_blocks() -> None:
    kernel = storing("""
        s_cmp_eq_u32 s8, 3
        s_cbranch_execz there
        v_mov_b32_e32 v1, 3
    there:
        s_cselect_b32 s9, s8, 7
        v_mov_b32_e32 v3, s9
    """)
    assert kernel.code.text.count("liveins: $scc") == 2


def test_operands_tie_registers_into_tuples() -> None:
    kernel = read(f"""
        {START}
        global_load_dwordx4 v[4:7], v1, s[4:5]
        s_waitcnt vmcnt(0)
        v_pk_mul_f32 v[6:7], v[6:7], v[4:5]
        v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], 0
        global_store_dwordx4 v1, a[0:3], s[6:7]
        s_endpgm
    """)
    assert "V4.2-3" not in kernel.problem.normalized.split("bb0", maxsplit=1)[0]
    (load,) = lines_of(kernel, "GLOBAL_LOAD_DWORDX4_SADDR")
    (store,) = lines_of(kernel, "GLOBAL_STORE_DWORDX4_SADDR")
    register = own_register(load)
    (product,) = lines_of(kernel, "V_PK_MUL_F32")
    assert f"{register}.sub2_sub3, 8, {register}.sub0_sub1" in product
    assert ":: (load (s128), addrspace 1)" in load
    assert ":: (store (s32), addrspace 1)" in store
    assert {"v4", "a0"} <= set((kernel.label or {}).values())


def rejection(data: bytes) -> RejectedKernel:
    with pytest.raises(RejectedKernel) as found:
        recover_kernel(data, load_code_object(data).kernel())
    return found.value


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("s_set_gpr_idx_on s2, gpr_idx(SRC0)\ns_endpgm", "indexed-registers"),
        ("s_setpc_b64 s[2:3]", "computed-jump"),
        ("s_getpc_b64 s[4:5]\ns_endpgm", "computed-jump"),
        ("scratch_load_dword v1, off, s2\ns_endpgm", "scratch-memory"),
        (".long 0xffffffff\ns_endpgm", "undecodable"),
        ("s_branch 100\ns_endpgm", "control-flow"),
        ("s_nop 0", "control-flow"),
        (".long 0x7e020000\ns_endpgm", "undecodable"),  # v_nop with bits of a destination
        (".long 0xbe8000ff\n.long 1\ns_endpgm", "operand-form"),  # the long form of a constant
        ("v_mov_b32_e32 v100, 0\nv_accvgpr_write_b32 a1, v0\ns_endpgm", "register-division"),
    ],
)
def test_kernels_are_rejected_by_name(body: str, kind: str) -> None:
    assert rejection(assembled(body)).kind == kind


def test_both_readers_tell_the_reason() -> None:
    data = assembled("s_nop 0")
    reason = rejection(data).reason
    assert [*read_kernels(data, Path("kernel.o"), ReadOptions())] == [("k", reason)]
    with pytest.raises(InputError, match=r"^kernel\.o: "):
        read_kernel(data, Path("kernel.o"), ReadOptions())


@pytest.mark.parametrize(
    "option", [".amdhsa_user_sgpr_count 8", ".amdhsa_system_sgpr_workgroup_info 1"]
)
def test_unknown_arguments_are_refused(option: str) -> None:
    assert rejection(assembled("s_endpgm", options=option)).kind == "argument-registers"


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.exhaustive), 3])
def test_ids_of_work_items_share_a_register(count: int) -> None:
    data = assembled("s_endpgm", options=f".amdhsa_system_vgpr_workitem_id {count - 1}")
    kernel = read_kernel(data, Path("kernel.o"), ReadOptions())
    made = load_code_object(run_llc(kernel.code.text, "gfx942", "obj", LLC_OPTIONS)).kernel()
    assert made.descriptor.work_item_dimensions == count


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (".amdhsa_float_round_mode_32 3", "float mode: 243, llc makes 240"),
        (".amdhsa_fp16_overflow 1", "clamps overflow: True, llc makes False"),
    ],
)
def test_what_llc_cannot_be_told_of_the_state_at_entry_is_refused(option: str, said: str) -> None:
    with pytest.raises(InputError, match=f"the descriptor's {said}"):
        read_kernel(assembled("s_endpgm", options=option), Path("kernel.o"), ReadOptions())


def test_a_compiled_kernel_is_recovered_and_computes_the_same_in_other_registers() -> None:
    row = next(row for row in ROWS if row.kernel == "gemm_reduce_partials" and row.arch == "gfx942")
    compiled = load(row)
    label = answer_of(compiled, "compiler", row)
    data = run_llc(compiled.lower(label).text, row.arch, "obj", LLC_OPTIONS)
    code = load_code_object(data).kernel()
    assert code.descriptor.preload_length  # its first arguments come in registers
    kernel, other_encodings = recovered_kernel(data, code, "kernel.o")
    assert other_encodings == 0
    assert kernel.problem.function.instruction_count > 100
    assert len(kernel.original_names) == pytest.approx(row.n_virtual_registers, rel=0.05)
    assert kernel.label is not None
    other = BUILT_IN["linear-scan"].allocate(Request(kernel.problem))
    for answer in (Answer(kernel.label), Answer(assignment_alone(other))):
        executor = AnswerExecutor.of_row(kernel, row)
        assert executor.lds_bytes == 0  # it has no share of LDS
        executed = executor.execute(answer, with_bits=False)
        assert executed.outcome == "right numbers", executed.why


@pytest.mark.parametrize(
    ("words", "others"),
    [(".long 0xc0004240\n.long 0x10000000", 0), (".long 0xc0000240\n.long 0x00000008", 1)],
    ids=["as llc writes it", "as the assembler writes it"],
)
def test_a_second_encoding_of_one_text_is_counted(words: str, others: int) -> None:
    # s_load_dword s9, s[0:1], s8: the offset has two places.
    data = assembled(f"{words}\ns_endpgm")
    kernel, found = recovered_kernel(data, load_code_object(data).kernel(), "kernel.o")
    assert "S_LOAD_DWORD_SGPR" in kernel.problem.normalized
    assert found == others


def test_another_architecture_is_refused() -> None:
    data = assembled(LOOP)
    with pytest.raises(InputError, match="expected code for gfx90a, this is for gfx942"):
        read_kernel(data, Path("kernel.o"), ReadOptions("gfx90a"))


def test_the_command_line_takes_code_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = tmp_path / "kernel.co", tmp_path / "answer.json"
    code.write_bytes(assembled(LOOP))
    assert main(["normalize", str(code)]) == 0
    assert capsys.readouterr().out.startswith("verilocc-bench 1\ntarget gfx942\n")
    assert main(["normalize", str(code), "--list"]) == 0
    assert re.search(r"^k +yes ", capsys.readouterr().out, re.M)
    assert main(["allocate", str(code), "--model", "linear-scan", "-o", str(answer)]) == 0
    assert main(["verify", str(code), str(answer)]) == 0
    assert main(["lower", str(code), str(answer), "-o", str(tmp_path / "new.o")]) == 0
    assert main(["compare", str(code), str(answer)]) == 0
    assert numbers_left_by((tmp_path / "new.o").read_bytes()).tolist() == (
        numbers_left_by(code.read_bytes()).tolist()
    )
