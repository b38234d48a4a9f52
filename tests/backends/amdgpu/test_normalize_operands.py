"""What becomes of machine instructions: halves of registers, ties, bundles, flow, budgets."""

from __future__ import annotations

import pytest

from tests.backends.amdgpu.test_mir_syntax import LIVE, mir
from verilocc_bench.backends.amdgpu.machine import is_ignored
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu import MASK_MARK


def normalized(
    body: str, head: str = "", ir: str = "", arch: str = "gfx942", threads: int | None = None
) -> NormalizedMachineFunction:
    # Without virtual registers a function counts as one whose registers are assigned.
    text = mir(body, f"{head}noVRegs: false\n" if "noVRegs" not in head else head)
    text = (f"--- |\n{ir}\n...\n" if ir else "") + text
    module = parse_mir(text, "x.mir")
    normalized, _ = normalized_problem(
        text, module.functions[0], module, get_target(arch), max_threads=threads, source="x.mir"
    )
    return normalized


def lines(body: str, head: str = "") -> list[str]:
    """The instructions, without the classes of their registers."""
    text = print_function(normalized(body, head).function)
    for name in (":V16", ":V2", ":V4", ":V", ":S2", ":S", ":G"):
        text = text.replace(name, "")
    return text[text.index("bb0") :].splitlines()


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        # KILL definition of 16 bits keeps the other half of its unit, and so needs it.
        ("%0.lo16:vgpr_32 = COPY $vgpr3", "%0=COPY +%0,v3"),
        ("%0.hi16:vgpr_32 = COPY $vgpr3", "%0=COPY +%0,v3"),
        ("%0.sub1_lo16:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY +%0.1,v3"),
        ("%0.sub1_hi16:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY +%0.1,v3"),
        ("$vgpr5_lo16 = COPY $vgpr3", "v5=COPY +v5,v3"),
        ("$vgpr5_hi16 = COPY $vgpr3", "v5=COPY +v5,v3"),
        # Not where it says that the rest holds nothing, nor where it writes all of it.
        ("undef %0.lo16:vgpr_32 = COPY $vgpr3", "%0!=COPY v3"),
        ("undef %0.sub1_hi16:vreg_64_align2 = COPY $vgpr3", "%0.1!=COPY v3"),
        ("%0.sub1:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY v3"),
        ("$vgpr5 = COPY $vgpr3", "v5=COPY v3"),
        # KILL use of one half is a use of the unit.
        ("KILL %0.hi16:vgpr_32, $vgpr5_lo16", "KILL %0,v5"),
        # Sub-registers of physical tuples.
        ("KILL $vgpr4_vgpr5_vgpr6_vgpr7.sub1_sub2", "KILL v[5:6]"),
        ("KILL $vgpr4_vgpr5.sub0, $vgpr4_vgpr5.sub1", "KILL v4,v5"),
        ("KILL %0.sub2_sub3:vreg_128_align2", "KILL %0.2-3"),
        # Flags that matter; others and what is no register do not.
        ("early-clobber %0:vgpr_32 = KILL undef %1:vgpr_32, 7, implicit %2:vgpr_32",
         "%0&=KILL %1!,+%2"),
        ("dead %0:vgpr_32 = nuw KILL killed %1:vgpr_32, @symbol, 0x1f", "%0=KILL %1"),
        ("%0:vgpr_32 = KILL $exec, implicit $m0, implicit-def $scc, implicit-def $vcc",
         "%0,+vcc=KILL"),
        # Encodings are no part of the opcode.
        ("%0:vgpr_32 = V_ADD_F32_e64 0, 1, 0, %1:vgpr_32, 0, 0", "%0=V_ADD_F32 %1"),
        ("%0:vgpr_32 = V_ADD_F32_e32 1, %1:vgpr_32", "%0=V_ADD_F32 %1"),
        ("%0:vgpr_32 = DS_READ_B32_gfx9 %1:vgpr_32, 0, 0", "%0=DS_READ_B32 %1"),
        ("%0:vreg_512_align2 = V_MFMA_F32_32X32X8F16_vgprcd_e64 %1:vreg_64_align2, %1, 0, 0, 0, 0",
         "%0&=V_MFMA_F32_32X32X8F16 %1,%1"),
        # Ties count all operands of the text; one to what no class holds ties nothing.
        ("%0:vgpr_32 = KILL 1, %1:vgpr_32(tied-def 0)", "%0=KILL %1~0"),
        ("%0:vgpr_32, %2:vgpr_32 = KILL 1, %1:vgpr_32(tied-def 1)", "%0,%1=KILL %2~1"),
        ("$scc, %2:vgpr_32 = KILL 1, %1:vgpr_32(tied-def 1)", "%0=KILL %1~0"),
        ("$scc, %2:vgpr_32 = KILL 1, %1:vgpr_32(tied-def 0)", "%0=KILL %1"),
        # KILL constant of a register outside allocation is none.
        ("%0:sreg_32 = S_MOV_B32 7", "%0=S_MOV_B32"),
        ("%0:sreg_32 = S_MOV_B32 $m0", "%0=S_MOV_B32.outside"),
        ("%0:sreg_32 = S_MOV_B32 7, implicit $m0", "%0=S_MOV_B32"),
        ("%0:vgpr_32 = V_MOV_B32_e32 7, implicit $exec", "%0=V_MOV_B32"),
        ("%0:sreg_64 = S_MOV_B64 $exec", "%0=S_MOV_B64.outside"),
        ("%0:sreg_64 = COPY $exec", "%0=COPY"),
        # What writes EXEC in another way than its name tells is marked.
        ("$exec = S_AND_B64 $exec, %0:sreg_64, implicit-def $scc", "S_AND_B64 %0"),
        ("$exec = S_AND_B64 %1:sreg_64, %0:sreg_64, implicit-def $scc",
         "S_AND_B64.exec %0,%1"),
    ],
)  # fmt: skip
def test_one_instruction(instruction: str, expected: str) -> None:
    assert lines(f"{LIVE}    {instruction}")[1] == expected


def test_definitions_are_numbered_before_uses_and_registers_keep_their_names() -> None:
    found = normalized(
        "    KILL %9:vgpr_32\n    %7:vgpr_32 = KILL %foo:sreg_32, implicit-def %8:vgpr_32"
    )
    assert found.name == "f"
    assert found.original_names == ("%9", "%7", "%8", "%foo")
    assert [c.name for c in found.function.virtual_registers] == ["V", "V", "V", "S"]


BUNDLES = {
    # The head repeats what its members say, and is left out there; what it alone says stays.
    "BUNDLE implicit-def %0:vgpr_32, implicit $vgpr1, implicit $vgpr9 {\n"
    "      %0:vgpr_32 = KILL $vgpr1\n    }": "%0=BUNDLE +v9,v1",
    # Reads of what the bundle defined are none; definitions before a later read are early.
    "BUNDLE {\n      %0:vgpr_32 = KILL $vgpr1\n      %1:vgpr_32 = KILL internal %0\n"
    "      %2:vgpr_32 = KILL $vgpr2\n    }": "%0&,%1&,%2=BUNDLE v1,v2",
    "BUNDLE {\n      %0:vgpr_32 = KILL $vgpr1\n      %1:vgpr_32 = KILL internal %0\n    }": (
        "%0,%1=BUNDLE v1"
    ),
    # Ties count the operands of their own member.
    "BUNDLE {\n      %0:vgpr_32 = KILL %1:vgpr_32(tied-def 0), 7\n"
    "      %2:vgpr_32 = KILL 1, %3:vgpr_32(tied-def 0)\n    }": "%0&,%1=BUNDLE %2~0,%3~1",
    # The ties of operands that the head alone names count the head's own operands.
    "BUNDLE implicit-def %0:vgpr_32, implicit-def %1:vgpr_32, implicit %2:vgpr_32(tied-def 1) {\n"
    "      %0:vgpr_32 = KILL $vgpr1\n    }": "+%0,%1=BUNDLE +%2~0,v1",
    # The numbers of each member's operands are its own.
    "BUNDLE {\n      %0:vgpr_32 = KILL %1:vgpr_32(tied-def 0)\n      KILL %2:vgpr_32\n"
    "      %3:vgpr_32, %4:vgpr_32 = KILL %5:vgpr_32(tied-def 1)\n    }": (
        "%0&,%1,%2=BUNDLE %3~0,%4,%5~2"
    ),
    "BUNDLE {\n      %0:vgpr_32, %1:vgpr_32 = KILL %2:vgpr_32(tied-def 1)\n"
    "      %3:vgpr_32 = KILL\n    }": "%0,%1,%2=BUNDLE %3~1",
    "BUNDLE {\n      early-clobber %0:vgpr_32 = KILL %1:vgpr_32\n    }": "%0&=BUNDLE %1",
    # Sub-registers tell operands apart.
    "BUNDLE implicit-def %0.sub0:vreg_64_align2, implicit-def %0.sub1 {\n"
    "      %0.sub1:vreg_64_align2 = KILL\n    }": "+%0.0,%0.1=BUNDLE",
}


@pytest.mark.parametrize("instruction", BUNDLES)
def test_bundles(instruction: str) -> None:
    assert lines(f"{LIVE}    {instruction}")[1] == BUNDLES[instruction]


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        # Where successors are named they count; unnamed ones follow from the code.
        ("    successors: %bb.1, %bb.2\n    KILL\n  bb.1:\n  bb.2:",
         ["bb0->bb1,bb2", "bb1->bb2", "bb2"]),
        ("    KILL\n  bb.5:\n    S_ENDPGM 0\n  bb.3:\n    S_BRANCH %bb.5",
         ["bb0->bb1", "bb1", "bb2->bb1"]),
        ("    S_CBRANCH_SCC1 %bb.2\n  bb.1:\n    S_ENDPGM_SAVED\n  bb.2:\n    S_ENDPGM 0",
         ["bb0->bb2,bb1", "bb1", "bb2"]),
        ("    S_CBRANCH_SCC1 %bb.1\n  bb.1:", ["bb0->bb1", "bb1"]),
        ("    S_CBRANCH_SCC1 %bb.2\n    S_BRANCH %bb.1\n  bb.1:\n    S_ENDPGM 0\n  bb.2:",
         ["bb0->bb2,bb1", "bb1", "bb2"]),
        # KILL branch ends a block only as the last instruction that is code.
        ("    S_BRANCH %bb.0\n    KILL\n  bb.1:", ["bb0->bb0,bb1", "bb1"]),
        ("    S_BRANCH %bb.0\n    DBG_VALUE $noreg\n    CFI_INSTRUCTION 0\n  bb.1:",
         ["bb0->bb0", "bb1"]),
        ("    DBG_VALUE %bb.1\n    S_BRANCH %bb.0\n  bb.1:", ["bb0->bb0", "bb1"]),
        ("    BUNDLE {\n      KILL %bb.1\n    }\n    S_BRANCH %bb.0\n  bb.1:",
         ["bb0->bb1,bb0", "bb1"]),
    ],
)  # fmt: skip
def test_successors(body: str, blocks: list[str]) -> None:
    assert [line for line in lines(body) if line.startswith("bb")] == blocks


def test_notes_are_no_instructions() -> None:
    body = "    DBG_VALUE $vgpr1\n    KILL\n    LIFETIME_END %stack.0\n    PSEUDO_PROBE 1, 2, 0, 0"
    assert lines(body) == ["bb0", "KILL"]
    module = parse_mir(mir(body))
    assert [is_ignored(i) for i in module.functions[0].blocks[0].instructions] == [
        True, False, True, True,
    ]  # fmt: skip


def test_live_ins_come_in_the_order_of_files_each_once() -> None:
    body = (
        "    liveins: $sgpr4_sgpr5, $vgpr0, $vcc, $exec, $agpr2, $vgpr1, $vgpr0, $sgpr4\n    KILL"
    )
    assert lines(body)[0] == "bb0(v0,v1,a2,s4,s[4:5],vcc)"


RESERVED = {
    "scratchRSrcReg: '$sgpr96_sgpr97_sgpr98_sgpr99'": "s[96:99]",
    "frameOffsetReg: '$sgpr33'": "s33",
    "stackPtrOffsetReg: '$sgpr32'": "s32",
    "sgprForEXECCopy: '$sgpr100_sgpr101'": "s[100:101]",
    "longBranchReservedReg: '$sgpr90_sgpr91'": "s[90:91]",
    "vgprForAGPRCopy: '$vgpr7'": "v7",
    "frameOffsetReg: '$fp_reg'": None,
    "frameOffsetReg: ''": None,
    "otherReg: '$sgpr33'": None,
    "wwmReservedRegs: []": None,
    # What lies beyond the budget needs no reserve: 1,024 threads have 64 VGPRs and 64 AGPRs.
    "vgprForAGPRCopy: '$vgpr64'": None,
    "vgprForAGPRCopy: '$vgpr63'": "v63",
    "vgprForAGPRCopy: '$vgpr62_vgpr63_vgpr64_vgpr65'": "v[62:63]",
}


@pytest.mark.parametrize("info", RESERVED)
def test_reserved_registers(info: str) -> None:
    function = normalized("    KILL", f"machineFunctionInfo:\n  {info}\n").function
    text = print_function(function).splitlines()
    found = [line.removeprefix("reserved ") for line in text if line.startswith("reserved")]
    assert found == ([] if RESERVED[info] is None else [RESERVED[info]])


IR = """define amdgpu_kernel void @f() #0 {{
}}
attributes #0 = {{ {} }}
"""


@pytest.mark.parametrize(
    ("attributes", "threads", "files"),
    [
        ("", None, {"v": 64, "a": 64, "s": 102, "vcc": 2}),
        ("", 256, {"v": 256, "a": 256, "s": 102, "vcc": 2}),
        ("", 512, {"v": 128, "a": 128, "s": 102, "vcc": 2}),
        ('"amdgpu-flat-work-group-size"="1,256"', None, {"v": 256, "a": 256, "s": 102, "vcc": 2}),
        ('"amdgpu-flat-work-group-size"="1,256"', 1024, {"v": 64, "a": 64, "s": 102, "vcc": 2}),
        ('"target-cpu"="gfx942" "amdgpu-agpr-alloc"="0"', None, {"v": 128, "a": 0, "s": 102}),
    ],
)
def test_budgets_follow_from_attributes(
    attributes: str, threads: int | None, files: dict[str, int]
) -> None:
    function = normalized("    KILL", ir=IR.format(attributes), threads=threads).function
    assert {file.name: file.count for file in function.files} == {"vcc": 2, **files}


def test_kernels_lose_the_registers_of_flat_scratch() -> None:
    ir = IR.format('"amdgpu-waves-per-eu"="8" "amdgpu-flat-work-group-size"="1,64"')
    for head in ("", "machineFunctionInfo:\n  isEntryFunction: true\n"):
        function = normalized("    KILL", head, ir, "gfx90a").function
        assert function.target == "gfx90a"
        assert {file.name: file.count for file in function.files} == {
            "v": 32, "a": 32, "s": 74, "vcc": 2,
        }  # fmt: skip


@pytest.mark.parametrize(("waves", "limit"), [("3,3", 3), ("1,8", None), ("2,7", 7), ("4", None)])
def test_the_upper_limit_of_waves_belongs_to_the_problem(waves: str, limit: int | None) -> None:
    ir = IR.format(f'"amdgpu-waves-per-eu"="{waves}" "amdgpu-flat-work-group-size"="1,256"')
    assert normalized("    KILL", ir=ir).function.maximum_occupancy == limit


REFUSALS = {
    "reserved unknown": (
        "    KILL", "machineFunctionInfo:\n  frameOffsetReg: '$nothing'\n", "", 2,
        "unknown physical register $nothing on gfx942",
    ),
    "sub-register": (
        "    KILL %0.foo:vreg_64_align2", "", "", 6, "unknown sub-register index 'foo'",
    ),
    "lanes": (
        "    KILL\n    KILL %0.sub2:vreg_64_align2", "", "", 7, "%0 has 2 lanes: no 'sub2'",
    ),
    "physical lanes": (
        "    KILL $vgpr4_vgpr5.sub1_sub2", "", "", 6, "$vgpr4_vgpr5 has no 'sub1_sub2'",
    ),
    "physical index": ("    KILL $vgpr4_vgpr5.foo", "", "", 6, "$vgpr4_vgpr5 has no 'foo'"),
    "no class": ("    KILL\n    KILL %0", "", "", 7, "%0 has no register class"),
    "class": (
        "    KILL\n    KILL %0", "registers:\n  - { id: 0, class: foo }\n", "", 4,
        "unknown register class 'foo'",
    ),
    "physical": ("    KILL $vgpr256, %0:vgpr_32", "", "", 6,
                 "unknown physical register $vgpr256 on gfx942"),
    "live-in": (
        "    liveins: $foo\n    KILL", "", "", 5, "unknown physical register $foo on gfx942",
    ),
    "no block": ("    KILL\n    S_BRANCH %bb.7", "", "", 5, "there is no block bb.7"),
    "tie": (
        "    KILL\n    %0:vgpr_32 = KILL %1:vgpr_32(tied-def 1)", "", "", 7,
        "tied to operand 1, no definition",
    ),
    "number": (
        "    KILL", "", IR.format('"amdgpu-num-vgpr"="many"'), 8,
        "function 'f' has an attribute that is not a number: expected a number, not 'many'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_line(name: str) -> None:
    body, head, ir, line, message = REFUSALS[name]
    with pytest.raises(InputError) as caught:
        normalized(body, head, ir)
    error = caught.value
    assert (error.source, error.line, error.message) == ("x.mir", line, message)


@pytest.mark.parametrize(
    ("instruction", "marked"),
    [
        ("$exec = S_AND_B64 $sgpr0_sgpr1, $sgpr2_sgpr3, implicit-def $scc", True),
        ("$exec = S_AND_B64 $exec, $sgpr2_sgpr3, implicit-def $scc", False),
        ("$exec = S_AND_B64 $sgpr0_sgpr1, $exec, implicit-def $scc", False),
        ("$exec = S_AND_B64_term $exec, $sgpr2_sgpr3, implicit-def $scc", False),
        ("$exec = S_AND_B64_term $sgpr0_sgpr1, $sgpr2_sgpr3, implicit-def $scc", True),
        ("$exec = S_OR_B64 $sgpr0_sgpr1, $sgpr2_sgpr3, implicit-def $scc", True),
        ("$exec = S_OR_B64 $exec, $sgpr2_sgpr3, implicit-def $scc", False),
        # Of a difference only the first operand may be EXEC.
        ("$exec = S_ANDN2_B64 $exec, $sgpr2_sgpr3, implicit-def $scc", False),
        ("$exec = S_ANDN2_B64 $sgpr2_sgpr3, $exec, implicit-def $scc", True),
        ("$exec = S_ANDN2_B64_term $exec, $sgpr2_sgpr3, implicit-def $scc", False),
        ("$exec = COPY $sgpr0_sgpr1", True),
        # KILL copy of EXEC lists it as defined, but does not change it.
        ("%0:sreg_64 = COPY $exec, implicit-def $exec", False),
    ],
)
def test_what_writes_exec_otherwise_than_its_opcode_tells(instruction: str, marked: bool) -> None:
    opcode = normalized(f"{LIVE}    {instruction}\n").function.blocks[0].instructions[0].opcode
    assert opcode.endswith(MASK_MARK) == marked
