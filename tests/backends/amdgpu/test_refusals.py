"""Machine functions that are refused by name: other architectures, other stages, callees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.amdgpu.mir_texts import UNASSIGNED, mir, normalized, refused
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.targets import get_target

INFO = "machineFunctionInfo:\n  "
ENTRY = f"{INFO}isEntryFunction: true\n"
CALLEE = f"{INFO}isEntryFunction: false\n"
CHAIN = "machineFunctionInfo: { isChainFunction: true }\n"
KERNEL = "    %0:vgpr_32 = IMPLICIT_DEF\n    S_ENDPGM 0"
WITH_FEATURE = 'define amdgpu_kernel void @f() "target-features"="{}" {{'
WITH_ATTRIBUTE = 'define amdgpu_kernel void @f() "{}"="{}" {{'

REFUSED = Path(__file__).with_name("refused_instructions.txt").read_text()
LINES = [line.strip() for line in REFUSED.splitlines()[1:]]


def ending_in(instruction: str) -> str:
    return KERNEL.replace("S_ENDPGM 0", instruction)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        # Functions that end in other ways.
        ("chain functions are not supported: isChainFunction", {"head": CHAIN}),
        (
            "whole-wave functions are not supported: isWholeWaveFunction",
            {"head": f"{INFO}isWholeWaveFunction: true\n"},
        ),
        ("convention amdgpu_cs_chain are not", {"ir": "define amdgpu_cs_chain void @f() {"}),
        ("chain_preserve are not", {"ir": "define amdgpu_cs_chain_preserve void @f() {"}),
        ("amdgpu_gfx_whole_wave are not", {"ir": "define amdgpu_gfx_whole_wave void @f() {"}),
        ("_return", {"body": ending_in("S_SETPC_B64_return $sgpr30_sgpr31")}),
        ("S_SETPC_B64", {"head": ENTRY, "body": ending_in("S_SETPC_B64 $sgpr30_sgpr31")}),
        ("Whole", {"head": ENTRY, "body": ending_in("SI_TCRETURN_GFX_WholeWave %0, @g, 0")}),
        # From another stage.
        ("assigned already", {"head": "noVRegs: true\n"}),
        ("assigned already", {"body": "    $vgpr1 = V_MOV_B32_e32 0, implicit $exec"}),
        ("SSA form", {"head": "isSSA: true\n"}),
        (r"mode.*\$vgpr2", {"head": f"{INFO}wwmReservedRegs:\n    - '$vgpr2'\n"}),
        (r"mode.*\$vgpr3", {"head": f"{INFO}wwmReservedRegs: [ '$vgpr3' ]\n"}),
        # For another architecture.
        ("this is for 'nvptx64", {"ir": 'target triple = "nvptx64-nvidia-cuda"'}),
        ("for gfx90a", {"ir": WITH_ATTRIBUTE.format("target-cpu", "gfx90a")}),
        (
            "%0 of class vreg_64 may be v1 to 2",
            {"body": "    %0:vreg_64 = V_MOV_B64_PSEUDO 1", "arch": "gfx90a"},
        ),
        # What the architecture lacks.
        (r"feature \+wavefrontsize32 is not", {"ir": WITH_FEATURE.format("+wavefrontsize32")}),
        (
            r"\+wavefrontsize16 is not supported",
            {"ir": WITH_FEATURE.format("+xnack,+wavefrontsize16")},
        ),
        (r"\+dynamic-vgpr is not supported", {"ir": WITH_FEATURE.format("+dynamic-vgpr")}),
        (
            "dynamic VGPRs are not",
            {"ir": WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", 16)},
        ),
        ("not supported: dynamicVGPRBl", {"head": f"{INFO}dynamicVGPRBlockSize: 32\n"}),
        ("ldsSize is 65537: gfx942 has 65536", {"head": f"{INFO}ldsSize: 65537\n"}),
        (
            "amdgpu-lds-size is 70000",
            {"ir": WITH_ATTRIBUTE.format("amdgpu-lds-size", "70000,70000")},
        ),
    ],
)
def test_functions_that_are_refused(words: str, given: dict[str, str]) -> None:
    refused(words, **{"body": KERNEL, **given})


@pytest.mark.parametrize(
    ("head", "ir"),
    [
        (CALLEE, ""),
        (CALLEE, "define amdgpu_kernel void @f() {"),
        ("", "define void @f() {"),
        ("", "define fastcc void @f() {"),
        ("", "define amdgpu_gfx void @f() {"),
        ("", ""),
    ],
)
def test_functions_that_others_call_are_read(head: str, ir: str) -> None:
    body = ending_in("SI_RETURN implicit %0")
    last = normalized(body, head, ir).function.blocks[0].instructions[-1]
    assert (last.opcode, len(last.uses)) == ("SI_RETURN", 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("SI_CALL %0, @g, csr_amdgpu_other", "an unknown register mask: csr_amdgpu_other"),
        (f"SI_CALL %0, @g, csr_amdgpu_{'x' * 40}", f"mask: csr_amdgpu_{'x' * 29}$"),
        ("SI_CALL %0, @g, CustomRegMask($q)", "an unknown register mask"),
        ("SI_CALL_ISEL %0, @g, csr_amdgpu", "calls by SI_CALL_ISEL are not supported"),
        (
            "BUNDLE {\n      SI_CALL %0, @g, csr_amdgpu\n    }",
            ": a call in a bundle is not supported$",
        ),
        ("SI_TCRETURN %0, @g, 0", "an unknown register mask"),
        ("SI_TCRETURN %0, @g, 0, csr_amdgpu_other", "an unknown register mask"),
        # All of these may be registers that LLVM restores just before.
        ("SI_TCRETURN %1, @g, 0, csr_amdgpu", "SI_TCRETURN reads %1, which may be"),
        ("SI_TCRETURN_GFX %0, @g, 0, csr_amdgpu_si_gfx", "SI_TCRETURN_GFX reads %0"),
        ("SI_TCRETURN $sgpr30_sgpr31, @g, 0, csr_amdgpu", r"reads \$sgpr30_sgpr31"),
        ("SI_TCRETURN %0, @g, 0, csr_amdgpu, implicit $vgpr40", r"reads \$vgpr40"),
        ("SI_TCRETURN %0, @g, 0, csr_amdgpu, implicit %1, implicit $vgpr40", r"reads \$vgpr40"),
        ("SI_TCRETURN %0, @g, 0, csr_amdgpu_gfx90ainsts, implicit $agpr32", r"\$agpr32"),
    ],
)
def test_calls_that_are_refused(call: str, words: str) -> None:
    line = refused(words, f"{CALLEES}    {call}")
    assert refused(words, f"{CALLEES}    S_NOP 0\n    {call}") == line + 1


CALLEES = "    %0:ccr_sgpr_64 = IMPLICIT_DEF\n    %1:sreg_64 = IMPLICIT_DEF\n"


def test_tail_calls_that_are_read() -> None:
    for end in (
        "SI_TCRETURN %0, @g, 0, csr_amdgpu, implicit $vgpr0, implicit $exec, implicit %1",
        "SI_TCRETURN $sgpr4_sgpr5, @g, 0, csr_amdgpu_gfx90ainsts, implicit undef $agpr31",
    ):
        live = "    liveins: $vgpr0, $sgpr4_sgpr5\n"
        last = normalized(f"{live}{CALLEES}    {end}").function.blocks[0].instructions[-1]
        assert last.opcode == "SI_TCRETURN"
        assert not last.destroys


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"head": ENTRY},
        # What LLVM goes by, where the two differ.
        {"head": ENTRY, "ir": "define void @f() {"},
        {"ir": "define amdgpu_kernel void @f() {"},
        {"ir": "define dso_local spir_kernel void @f() {"},
        {"ir": "define amdgpu_ps float @f() {"},
        {"ir": "define void @g() {"},
        {"body": ending_in("SI_RETURN_TO_EPILOG %0")},
        {"head": f"{INFO}wwmReservedRegs: []\n"},
        # What the architecture has.
        {"ir": WITH_FEATURE.format("-wavefrontsize32,+wavefrontsize64,-xnack,+sramecc")},
        {"ir": 'target triple = "amdgcn-amd-amdhsa"'},
        {"ir": WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", 0)},
        {"ir": WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", "")},
        {"head": f"{INFO}dynamicVGPRBlockSize: false\n"},
        {"head": f"{INFO}dynamicVGPRBlockSize: 0\n"},
        {"head": f"{INFO}ldsSize: 65536\n"},
        {"head": f"{INFO}scratchSize: 70000\n"},
        {"ir": WITH_ATTRIBUTE.format("amdgpu-lds-size", "65536,65536")},
    ],
)
def test_kernels_of_every_kind(given: dict[str, Any]) -> None:
    function = normalized(**{"body": KERNEL, **given}).function
    assert len(function.virtual_registers) == 1


@pytest.mark.parametrize(
    ("head", "body"),
    [
        # LLVM says so before it allocates, even where there is nothing to allocate.
        (UNASSIGNED, '    INLINEASM &"", 1, 12, implicit-def $vgpr5\n    S_ENDPGM 0'),
        ("", "    S_ENDPGM 0"),
        ("", "    $m0 = S_MOV_B32 0\n    S_ENDPGM 0, implicit $exec"),
        ("", "    %0.sub0:vreg_64_align2 = V_FMAC_F32_e32 %1:vgpr_32, %1, %0.sub0"),
        # Tuples in instructions that take them.
        ("", "    %0:vreg_64 = COPY %1:vreg_64_align2"),
        ("", "    %0:vreg_64_align2 = COPY %1.sub1_sub2:vreg_128_align2"),
        ("", "    S_NOP 0, implicit %0:vreg_64"),
        ("", "    %0:vreg_64_align2 = V_LSHLREV_B64_e64 %1.sub1:vreg_64, %2:vreg_64_align2"),
        ("", "    %0:vreg_64_align2 = V_MOV_B64_PSEUDO 1"),
        ("", "    %0:vreg_64 = AV_MOV_B64_IMM_PSEUDO 1"),
    ],
)
def test_functions_with_nothing_to_refuse(head: str, body: str) -> None:
    for arch in ("gfx90a", "gfx942"):
        normalized(body, head, arch=arch)


@pytest.mark.parametrize(("instruction", "words"), [*zip(LINES[::2], LINES[1::2], strict=True)])
def test_the_line_of_an_instruction(instruction: str, words: str) -> None:
    body = f"    %1:vgpr_32 = IMPLICIT_DEF\n    S_NOP 0\n    {instruction}"
    assert refused(f"^x.mir:7: {words}$", body) == 7


def test_a_branch_to_what_is_no_successor() -> None:
    last = "S_CBRANCH_SCC1 %bb.2, implicit undef $scc"
    body = f"    successors: %bb.1\n    {last}\n  bb.1:\n    S_ENDPGM 0\n  bb.2:\n    S_ENDPGM 0"
    refused("bb.0 leads to bb.2, which its successors lack$", body, UNASSIGNED)


def test_the_base_pointer_of_a_frame_that_is_said_to_be_aligned() -> None:
    for attribute, reserved in (('"stackrealign"', [34]), ("", [])):
        ir = f"define void @f() {attribute} {{\n  ret void\n}}"
        function = normalized(KERNEL, "fixedStack: [ { id: 0 } ]\n", ir).function
        assert [units.first for units in function.reserved] == reserved


def test_a_text_of_no_file_is_called_mir() -> None:
    module = parse_mir(mir(KERNEL, CHAIN))
    with pytest.raises(InputError, match="isChainFunction") as caught:
        normalize_machine_function(module.functions[0], module, get_target("gfx942"))
    assert caught.value.source == "<mir>"


@pytest.mark.parametrize(("arch", "scalars"), [("gfx90a", 76), ("gfx942", 74)])
def test_the_budget_is_that_of_the_architecture(arch: str, scalars: int) -> None:
    """Where nothing needs flat scratch, gfx90a reserves two scalar registers fewer."""
    ir = (
        "define amdgpu_kernel void @f() #0 { ret void }\n"
        'attributes #0 = { "amdgpu-no-flat-scratch-init" "amdgpu-waves-per-eu"="8" }'
    )
    assert normalized(KERNEL, ir=ir, arch=arch).function.file("s").count == scalars
