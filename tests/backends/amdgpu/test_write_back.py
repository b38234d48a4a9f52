"""Assignments in the machine IR of gfx90a and gfx942, judged by llc."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.backends.amdgpu.machine_ir import ROWS, Kernel, answer_of, kernel_of, load
from tests.sampling import few_rows
from verilocc_bench.backends.amdgpu.label import read_label
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import LlcFailed, run_llc
from verilocc_bench.backends.amdgpu.write_back import write_assignment
from verilocc_bench.dataset import Row

pytestmark = pytest.mark.slow

Llc = Callable[..., str]
every_row = pytest.mark.parametrize(
    "row", few_rows(ROWS), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
GREEDY = ("-O3", "-x", "mir", "-start-before=greedy")


def instructions(assembly: str) -> list[str]:
    lines = [line.partition(";")[0].strip() for line in assembly.splitlines()]
    return [line for line in lines if line and not line.startswith(".") and not line.endswith(":")]


@every_row
def test_llvms_own_assignment_gives_llvms_own_assembly(row: Row, llc: Llc) -> None:
    # The label is that of another release, and of LLVM's memory, which knows more than its
    # text: this llc may assign otherwise. Its own assignment is what it can be held to.
    kernel = load(row)
    after = parse_mir(llc(kernel.text, row.arch, *GREEDY, "-stop-after=virtregrewriter,2"))
    own = read_label(kernel.machine, after.functions[0], kernel.normalized)
    lowered = write_assignment(kernel.text, kernel.machine, kernel.normalized, own)
    assembly = run_llc(lowered.text, row.arch, "asm").decode()
    expected = llc(kernel.text, row.arch, *GREEDY)
    assert instructions(assembly) == instructions(expected)
    assert assembly == expected  # the metadata, too
    assert lowered.inserted == 0
    code = [i for block in kernel.machine.blocks for i in block.instructions]
    assert lowered.instructions + lowered.identity_copies == len(code)


@every_row
def test_llvm_makes_machine_code_of_every_valid_answer(row: Row, llc: Llc) -> None:
    kernel = load(row)
    for model in ("compiler", "linear-scan", "graph-coloring"):
        lowered = kernel.lower(answer_of(kernel, model, row))
        assert run_llc(lowered.text, row.arch, "obj").startswith(b"\x7fELF")


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_equal_input_gives_equal_files(arch: str, llc: Llc, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    row = next(row for row in ROWS if row.arch == arch)
    kernel = load(row)
    lowered = kernel.lower(answer_of(kernel, "linear-scan"))
    first = run_llc(lowered.text, arch, "obj")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert kernel.lower(answer_of(kernel, "linear-scan")) == lowered
    assert run_llc(lowered.text, arch, "obj") == first
    assert str(tmp_path).encode() not in first
    assert not list(tmp_path.iterdir())


def test_the_machine_verifier_is_heard(llc: Llc) -> None:
    row = ROWS[0]
    kernel = load(row)
    text = kernel.lower(answer_of(kernel, "linear-scan")).text
    broken = text.replace("renamable $vgpr1 = ", "renamable $agpr1 = ", 1)
    assert broken != text
    with pytest.raises(LlcFailed, match=r"llc: Bad machine code: .*; - basic block: %bb") as error:
        run_llc(broken, row.arch, "asm")
    assert "0x" not in str(error.value)
    with pytest.raises(LlcFailed, match="error"):
        run_llc("nonsense", row.arch, "asm")


def small(body: str, *classes: str, stack: str = "") -> Kernel:
    """A function of one block, or of as many as the body has."""
    rows = "".join(f"  - {{ id: {n}, class: {name} }}\n" for n, name in enumerate(classes))
    text = (
        "--- |\n  define amdgpu_kernel void @k() #0 {\n    ret void\n  }\n"
        '  attributes #0 = { "amdgpu-flat-work-group-size"="1,64" }\n...\n'
        "---\nname: k\ntracksRegLiveness: true\nnoPhis: true\nisSSA: false\nnoVRegs: false\n"
        f"registers:\n{rows}liveins:\n  - {{ reg: '$vgpr0', virtual-reg: '%0' }}\n{stack}"
        "machineFunctionInfo:\n  isEntryFunction: true\n"
        "  scratchRSrcReg: '$sgpr96_sgpr97_sgpr98_sgpr99'\n  stackPtrOffsetReg: '$sgpr32'\n"
        "  argumentInfo:\n    privateSegmentBuffer: { reg: '$sgpr0_sgpr1_sgpr2_sgpr3' }\n"
        "    privateSegmentWaveByteOffset: { reg: '$sgpr17' }\n"
        f"body: |\n{body}...\n"
    )
    return kernel_of(text, "gfx90a")


def body_of(text: str) -> list[str]:
    return [line.strip() for line in text.partition("body:")[2].splitlines()[1:] if line.strip()]


LANES = """  bb.0:
    liveins: $vgpr0

    %0:vgpr_32(s32) = COPY $vgpr0
    DBG_VALUE %0, $noreg
    undef %1.sub0:vreg_64_align2 = V_MOV_B32_e32 1, implicit $exec, debug-location !3
    %2:vgpr_32 = COPY undef %1.sub1
    %2:vgpr_32 = COPY %0, implicit $exec
    S_NOP 0, implicit %1, implicit undef %1.sub1, implicit %1.sub1
    dead %3:sreg_64 = V_CMP_EQ_U32_e64 killed %2, %1.sub0, implicit $exec
    ; a comment
  bb.1:
    S_NOP 0, implicit %1, implicit %0
    S_ENDPGM 0
"""


def test_operands_copies_and_marks() -> None:
    kernel = small(LANES, "vgpr_32", "vreg_64_align2", "vgpr_32", "sreg_64")
    names = {"%0": "v0", "%1": "v2", "%2": "v3", "%3": "vcc"}
    by_text = {name: f"%{n}" for n, name in enumerate(kernel.normalized.original_names)}
    lowered = kernel.lower({by_text[name]: where for name, where in names.items()})
    assert body_of(lowered.text) == [
        "bb.0:",
        "successors: %bb.1",
        "liveins: $vgpr0",
        "renamable $vgpr2 = V_MOV_B32_e32 1, implicit $exec, debug-location !3",
        "renamable $vgpr3 = KILL undef renamable $vgpr3",
        "renamable $vgpr3 = COPY renamable $vgpr0, implicit $exec",
        "S_NOP 0, implicit renamable $vgpr2_vgpr3, implicit undef renamable $vgpr3, "
        "implicit renamable $vgpr3",
        "dead renamable $vcc = V_CMP_EQ_U32_e64 renamable $vgpr3, renamable $vgpr2, implicit $exec",
        "bb.1:",
        "liveins: $vgpr0, $vgpr2, $vgpr3",
        "S_NOP 0, implicit renamable $vgpr2_vgpr3, implicit renamable $vgpr0",
        "S_ENDPGM 0",
        "...",
    ]
    head = lowered.text.partition("body:")[0]
    assert "registers:       []" in head
    assert "noVRegs:         true" in head
    assert "- { reg: '$vgpr0' }" in head
    assert "class:" not in head
    assert lowered.identity_copies == 2
    assert lowered.registers == {"v": 4, "a": 0, "s": 0, "vcc": 2}


def test_what_was_never_written_is_undefined() -> None:
    body = (
        "  bb.0:\n    liveins: $vgpr0\n\n    %0:vgpr_32 = COPY $vgpr0\n"
        "    S_NOP 0, implicit %1, implicit %2.sub1, implicit %0\n    S_ENDPGM 0\n"
    )
    kernel = small(body, "vgpr_32", "vgpr_32", "sreg_64")
    lowered = kernel.lower({"%0": "v1", "%1": "v0", "%2": "s4"})
    assert "S_NOP 0, implicit renamable $vgpr0, implicit renamable undef $sgpr5" in lowered.text
    lowered = kernel.lower({"%0": "v1", "%1": "v2", "%2": "s4"})
    assert "implicit renamable undef $vgpr2" in lowered.text


def test_halves_and_bundles() -> None:
    body = (
        "  bb.0:\n    liveins: $vgpr0\n\n    %0:vgpr_32 = COPY $vgpr0\n"
        "    undef %1.lo16:vgpr_32 = COPY %0.hi16\n"
        "    BUNDLE implicit-def %1, implicit %0 {\n"
        "      %1:vgpr_32 = V_MOV_B32_e32 %0, implicit $exec\n"
        "      %1:vgpr_32 = COPY internal %1\n    }\n"
        "    S_NOP 0, implicit %1, implicit undef $vgpr0_vgpr1.sub1\n    S_ENDPGM 0\n"
    )
    lowered = small(body, "vgpr_32", "vgpr_32").lower({"%0": "v0", "%1": "v5"})
    assert body_of(lowered.text)[2:9] == [
        "renamable $vgpr5_lo16 = COPY renamable $vgpr0_hi16",
        "BUNDLE implicit-def renamable $vgpr5, implicit renamable $vgpr0 {",
        "renamable $vgpr5 = V_MOV_B32_e32 renamable $vgpr0, implicit $exec",
        "renamable $vgpr5 = COPY internal renamable $vgpr5",
        "}",
        "S_NOP 0, implicit renamable $vgpr5, implicit undef $vgpr1",
        "S_ENDPGM 0",
    ]


def test_live_registers_go_around_loops(llc: Llc) -> None:
    body = """  bb.0:
    successors: %bb.1
    liveins: $vgpr0

    %0:vgpr_32 = COPY $vgpr0
    %1:vgpr_32 = V_MOV_B32_e32 0, implicit $exec
  bb.1:
    successors: %bb.1, %bb.2
    %1:vgpr_32 = V_ADD_U32_e32 %0, %1, implicit $exec
    %2:sreg_64 = V_CMP_GT_U32_e64 9, %1, implicit $exec
    $vcc = COPY %2
    S_CBRANCH_VCCNZ %bb.1, implicit $vcc
  bb.2:
    S_NOP 0, implicit %1
    S_ENDPGM 0
"""
    lowered = small(body, "vgpr_32", "vgpr_32", "sreg_64").lower(
        {"%0": "v3", "%1": "v1", "%2": "s0"}
    )
    found = re.findall(r"(bb\.\d|liveins): ?(.*)", lowered.text.partition("body:")[2])
    live = [names for key, names in found if key == "liveins"]
    assert live == ["$vgpr0", "$vgpr1, $vgpr3", "$vgpr1"]
    assert "s_cbranch_vccnz" in run_llc(lowered.text, "gfx90a", "asm").decode()
