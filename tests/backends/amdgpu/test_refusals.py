"""Machine functions that are refused by name: other architectures, other stages, callees."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function
from verilocc_bench.targets import get_target

ENTRY = "machineFunctionInfo:\n  isEntryFunction: true\n"
CALLEE = "machineFunctionInfo:\n  isEntryFunction: false\n"
CHAIN = "machineFunctionInfo: { isChainFunction: true }\n"
WHOLE_WAVE = "machineFunctionInfo:\n  isWholeWaveFunction: true\n"


def normalized(body: str, head: str = "", ir: str = "", arch: str = "gfx942") -> Function:
    module_text = f"--- |\n{ir}\n...\n" if ir else ""
    text = f"{module_text}---\nname: f\n{head}body: |\n  bb.0:\n{body}\n...\n"
    module = parse_mir(text, "x.mir")
    target = get_target(arch)
    machine = module.functions[0]
    return normalized_problem(text, machine, module, target, source="x.mir")[1].function


def refused(words: str, body: str, head: str = "", ir: str = "", arch: str = "gfx942") -> int:
    with pytest.raises(InputError, match=words) as caught:
        normalized(body, head, ir, arch)
    assert caught.value.source == "x.mir"
    assert caught.value.line is not None
    return caught.value.line


KERNEL = "    %0:vgpr_32 = IMPLICIT_DEF\n    S_ENDPGM 0"


@pytest.mark.parametrize(
    ("head", "ir", "body", "words"),
    [
        (CHAIN, "", KERNEL, "chain functions are not supported: isChainFunction"),
        (WHOLE_WAVE, "", KERNEL, "whole-wave functions are not supported: isWholeWaveFunction"),
        ("", "define amdgpu_cs_chain void @f() {", KERNEL, "convention amdgpu_cs_chain are not"),
        ("", "define amdgpu_cs_chain_preserve void @f() {", KERNEL, "chain_preserve are not"),
        ("", "define amdgpu_gfx_whole_wave void @f() {", KERNEL, "amdgpu_gfx_whole_wave are not"),
        ("", "", KERNEL.replace("S_ENDPGM 0", "S_SETPC_B64_return $sgpr30_sgpr31"), "_return"),
        (ENTRY, "", KERNEL.replace("S_ENDPGM 0", "S_SETPC_B64 $sgpr30_sgpr31"), "S_SETPC_B64"),
        (ENTRY, "", KERNEL.replace("S_ENDPGM 0", "SI_TCRETURN_GFX_WholeWave %0, @g, 0"), "Whole"),
    ],
)
def test_functions_that_end_in_other_ways(head: str, ir: str, body: str, words: str) -> None:
    refused(words, body, head, ir)


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
    body = KERNEL.replace("S_ENDPGM 0", "SI_RETURN implicit %0")
    last = normalized(body, head, ir).blocks[0].instructions[-1]
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
    ],
)
def test_calls_that_are_refused(call: str, words: str) -> None:
    body = f"    %0:sreg_64 = IMPLICIT_DEF\n    {call}\n    S_ENDPGM 0"
    assert refused(words, f"    S_NOP 0\n{body}") == refused(words, body) + 1


@pytest.mark.parametrize(
    ("end", "words"),
    [
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
def test_tail_calls_that_are_refused(end: str, words: str) -> None:
    line = refused(words, f"{TAIL_CALL}    {end}")
    assert refused(words, f"{TAIL_CALL}    S_NOP 0\n    {end}") == line + 1


TAIL_CALL = "    %0:ccr_sgpr_64 = IMPLICIT_DEF\n    %1:sreg_64 = IMPLICIT_DEF\n"


def test_tail_calls_that_are_read() -> None:
    for end in (
        "SI_TCRETURN %0, @g, 0, csr_amdgpu, implicit $vgpr0, implicit $exec, implicit %1",
        "SI_TCRETURN $sgpr4_sgpr5, @g, 0, csr_amdgpu_gfx90ainsts, implicit undef $agpr31",
    ):
        live = "    liveins: $vgpr0, $sgpr4_sgpr5\n"
        last = normalized(f"{live}{TAIL_CALL}    {end}").blocks[0].instructions[-1]
        assert last.opcode == "SI_TCRETURN"
        assert not last.destroys


@pytest.mark.parametrize(
    ("head", "ir", "body"),
    [
        ("", "", KERNEL),
        (ENTRY, "", KERNEL),
        # What LLVM goes by, where the two differ.
        (ENTRY, "define void @f() {", KERNEL),
        ("", "define amdgpu_kernel void @f() {", KERNEL),
        ("", "define dso_local spir_kernel void @f() {", KERNEL),
        ("", "define amdgpu_ps float @f() {", KERNEL),
        ("", "define void @g() {", KERNEL),
        ("", "", KERNEL.replace("S_ENDPGM 0", "SI_RETURN_TO_EPILOG %0")),
        # Jumps to a block of the function.
        ("", "", "    successors: %bb.0\n    S_SETPC_B64 %0:sreg_64"),
    ],
)
def test_kernels_of_every_kind(head: str, ir: str, body: str) -> None:
    assert len(normalized(body, head, ir).virtual_registers) == 1


@pytest.mark.parametrize(
    ("head", "body", "words"),
    [
        ("noVRegs: true\n", KERNEL, "assigned already"),
        ("", "    $vgpr1 = V_MOV_B32_e32 0, implicit $exec\n    S_ENDPGM 0", "assigned already"),
        ("isSSA: true\n", KERNEL, "SSA form"),
        ("", "    %0:vgpr_32 = V_FMAC_F32_e32 %1, %1, %1, implicit $mode", "operand 3 .* tied to"),
        ("", "    %0:vgpr_32 = V_FMAC_F32_e32 %1, %1, %0.sub0", "operand 3 of V_FMAC_F32_e32"),
        ("machineFunctionInfo:\n  wwmReservedRegs:\n    - '$vgpr2'\n", KERNEL, r"mode.*\$vgpr2"),
        ("machineFunctionInfo:\n  wwmReservedRegs: [ '$vgpr3' ]\n", KERNEL, r"mode.*\$vgpr3"),
    ],
)
def test_functions_from_another_stage(head: str, body: str, words: str) -> None:
    refused(words, body, head)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        # LLVM says so before it allocates, even where there is nothing to allocate.
        ("noVRegs: false\n", '    INLINEASM &"", 1, 12, implicit-def $vgpr5\n    S_ENDPGM 0'),
        ("", "    S_ENDPGM 0"),
        ("", "    $m0 = S_MOV_B32 0\n    S_ENDPGM 0, implicit $exec"),
        ("machineFunctionInfo:\n  wwmReservedRegs: []\n", KERNEL),
        ("", "    %0.sub0:vreg_64_align2 = V_FMAC_F32_e32 %1:vgpr_32, %1, %0.sub0"),
    ],
)
def test_functions_with_nothing_to_refuse(head: str, body: str) -> None:
    normalized(body, head)


@pytest.mark.parametrize(
    ("ir", "body", "arch", "words"),
    [
        ('target triple = "nvptx64-nvidia-cuda"', KERNEL, "gfx942", "this is for 'nvptx64"),
        ('define amdgpu_kernel void @f() "target-cpu"="gfx90a" {', KERNEL, "gfx942", "for gfx90a"),
        ("", "    %0:vreg_64_align2 = V_LSHL_ADD_U64_e64 %1, 3, %2", "gfx90a", "of gfx942, not of"),
        ("", "    BUFFER_WBINVL1_VOL implicit $exec", "gfx942", "of gfx90a, not of gfx942"),
        ("", "    S_WAIT_LOADCNT 0", "gfx942", "gfx942 has no S_WAIT_LOADCNT in machine IR"),
        (
            "",
            "    %0:vreg_64_align2 = V_LSHLREV_B64_e64 1, %1:vreg_64",
            "gfx942",
            "operand 2 of V_LSHLREV_B64_e64 is of class vs_64_align2: %1 of class vreg_64 may be "
            "v1 to 2, which is not in it",
        ),
        (
            "",
            "    %0:vreg_64_align2 = V_LSHLREV_B64_e64 1, %1.sub1_sub2:vreg_96_align2",
            "gfx942",
            r"%1.sub1_sub2 of class vreg_96_align2 may be v1 to 2, which",
        ),
        ("", "    %0:vreg_64 = V_MOV_B64_PSEUDO 1", "gfx90a", "%0 of class vreg_64 may be v1 to 2"),
    ],
)
def test_functions_for_another_architecture(ir: str, body: str, arch: str, words: str) -> None:
    refused(words, body, "", ir, arch)


@pytest.mark.parametrize(
    "body",
    [
        "    %0:vreg_64 = COPY %1:vreg_64_align2",
        "    %0:vreg_64_align2 = COPY %1.sub1_sub2:vreg_128_align2",
        "    S_NOP 0, implicit %0:vreg_64",
        "    %0:vreg_64_align2 = V_LSHLREV_B64_e64 %1.sub1:vreg_64, %2.sub2_sub3:vreg_128_align2",
        "    %0:vreg_64_align2 = V_MOV_B64_PSEUDO 1",
        "    %0:vreg_64 = AV_MOV_B64_IMM_PSEUDO 1",
    ],
)
def test_tuples_in_instructions_that_take_them(body: str) -> None:
    for arch in ("gfx90a", "gfx942"):
        normalized(body, arch=arch)


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("S_SETPC_B64 $sgpr30_sgpr31", "a function that ends in S_SETPC_B64 is not supported"),
        ("SI_TCRETURN_ISEL %1", "a function that ends in SI_TCRETURN_ISEL is not supported"),
        ("%0:vgpr_32 = PHI %1, %bb.0", "PHI: expected MIR from llc -stop-before=greedy"),
        ("%0:vgpr_32 = G_PHI %1, %bb.0", "PHI: expected MIR from llc -stop-before=greedy"),
        ("%0:vgpr_32 = STRICT_WWM %1", "whole-wave mode is not supported: STRICT_WWM"),
        ("S_WAIT_LOADCNT 0", "gfx942 has no S_WAIT_LOADCNT in machine IR before allocation"),
        (
            "BUFFER_WBINVL1_VOL implicit $exec",
            "expected MIR for gfx942: BUFFER_WBINVL1_VOL is an instruction of gfx90a, "
            "not of gfx942",
        ),
        (
            "%0:vgpr_32 = V_FMAC_F32_e32 %1, %1, %1",
            "operand 3 of V_FMAC_F32_e32 is tied to operand 0, and has another register: "
            "expected MIR from llc -stop-before=greedy",
        ),
    ],
)
def test_the_line_of_an_instruction(instruction: str, words: str) -> None:
    body = f"    %1:vgpr_32 = IMPLICIT_DEF\n    S_NOP 0\n    {instruction}"
    assert refused(f"^x.mir:7: {words}$", body) == 7


WITH_FEATURE = 'define amdgpu_kernel void @f() "target-features"="{}" {{'
WITH_ATTRIBUTE = 'define amdgpu_kernel void @f() "{}"="{}" {{'


@pytest.mark.parametrize(
    ("head", "ir", "words"),
    [
        ("", WITH_FEATURE.format("+wavefrontsize32"), r"feature \+wavefrontsize32 is not"),
        ("", WITH_FEATURE.format("+xnack,+wavefrontsize16"), r"\+wavefrontsize16 is not supported"),
        ("", WITH_FEATURE.format("+dynamic-vgpr"), r"\+dynamic-vgpr is not supported"),
        ("", WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", 16), "dynamic VGPRs are not"),
        ("machineFunctionInfo:\n  dynamicVGPRBlockSize: 32\n", "", "not supported: dynamicVGPRBl"),
        ("machineFunctionInfo:\n  ldsSize: 70000\n", "", "ldsSize is 70000: gfx942 has 65536"),
        ("machineFunctionInfo:\n  ldsSize: 65537\n", "", "ldsSize is 65537: gfx942 has 65536"),
        ("", WITH_ATTRIBUTE.format("amdgpu-lds-size", "70000,70000"), "amdgpu-lds-size is 70000"),
    ],
)
def test_what_the_architecture_lacks(head: str, ir: str, words: str) -> None:
    refused(words, KERNEL, head, ir)


@pytest.mark.parametrize(
    ("head", "ir"),
    [
        ("", WITH_FEATURE.format("-wavefrontsize32,+wavefrontsize64,-xnack,+sramecc")),
        ("", 'target triple = "amdgcn-amd-amdhsa"'),
        ("", WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", 0)),
        ("", WITH_ATTRIBUTE.format("amdgpu-dynamic-vgpr-block-size", "")),
        ("machineFunctionInfo:\n  dynamicVGPRBlockSize: false\n", ""),
        ("machineFunctionInfo:\n  dynamicVGPRBlockSize: 0\n", ""),
        ("machineFunctionInfo:\n  ldsSize: 65536\n", ""),
        ("machineFunctionInfo:\n  scratchSize: 70000\n", ""),
        ("", WITH_ATTRIBUTE.format("amdgpu-lds-size", "65536,65536")),
    ],
)
def test_what_the_architecture_has(head: str, ir: str) -> None:
    normalized(KERNEL, head, ir)


def test_a_text_of_no_file_is_called_mir() -> None:
    module = parse_mir(f"---\nname: f\n{CHAIN}body: |\n  bb.0:\n{KERNEL}\n...\n")
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
    assert normalized(KERNEL, ir=ir, arch=arch).file("s").count == scalars
