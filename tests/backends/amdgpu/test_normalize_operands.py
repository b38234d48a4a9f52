"""What becomes of machine instructions: halves of registers, ties, bundles, flow, budgets."""

from __future__ import annotations

import re

import pytest

from tests.backends.amdgpu.mir_texts import LIVE, UNASSIGNED, lines, mir, normalized
from verilocc_bench.backends.amdgpu.machine import is_ignored
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.targets.amdgpu import MASK_MARK

SIX = "_".join(f"sub{lane}_lo16_sub{lane}_hi16" for lane in range(2, 8))
SEVEN = f"sub1_lo16_sub1_hi16_{SIX}"


def without_classes(line: str) -> str:
    return re.sub(r":[A-Z]+\d*", "", line)


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        # A definition of 16 bits keeps the other half of its unit, and so needs it.
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
        # A name with a hyphen, and one that looks like a half.
        ("undef %x-1.sub1:vreg_64_align2 = COPY $vgpr3", "%0.1!=COPY v3"),
        ("%x_lo16:vgpr_32 = KILL", "%0=KILL"),
        # Whole lanes, though LLVM spells their halves.
        (f"%0.{SEVEN}:vreg_256_align2 = COPY %1:areg_224_align2", "%0.1-7=COPY %1"),
        # A use of one half is a use of the unit.
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
        ("dead %0:sreg_64 = nuw nsw S_NOT_B64 killed $vcc", "%0=S_NOT_B64 vcc"),
        # Strings, and what stands behind the operands.
        ('INLINEASM &"a = b, :: \\\\", 1, 10, def %0:vgpr_32', "%0=INLINEASM"),
        ('INLINEASM &"a ; b", 1, 10, def %0:vgpr_32 ; of "%1"', "%0=INLINEASM"),
        ('INLINEASM &"", 0, 10, def %0:vgpr_32, 9, implicit undef $vgpr1(tied-def 3)',
         "%0=INLINEASM +v1!~0"),
        ("S_NOP 0 :: (load (s32) from %ir.a, addrspace 1)", "S_NOP"),
        ("S_NOP 0, implicit $exec, debug-location !9", "S_NOP"),
        ("%0:vgpr_32 = COPY $vgpr1 ; of %1, $vgpr2", "%0=COPY v1"),
        # LLVM knows it where the text does not say so.
        ("%0:vreg_64_align2 = V_QSAD_PK_U16_U8_e64 %1:vreg_64_align2, 0, %1, 0",
         "%0&=V_QSAD_PK_U16_U8 %1,%1"),
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
        # A constant of a register outside allocation is none.
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
    assert without_classes(lines(f"{LIVE}    {instruction}")[1]) == expected


def test_definitions_are_numbered_before_uses_and_registers_keep_their_names() -> None:
    found = normalized(
        "    KILL %9:vgpr_32\n    %7:vgpr_32 = KILL %foo:sreg_32, implicit-def %8:vgpr_32",
        UNASSIGNED,
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
    assert without_classes(lines(f"{LIVE}    {instruction}")[1]) == BUNDLES[instruction]


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
        # A branch ends a block only as the last instruction that is code.
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
    # They come in the order of the target's files.
    "stackPtrOffsetReg: '$sgpr32'\n  vgprForAGPRCopy: '$vgpr7'\n"
    "  sgprForEXECCopy: '$sgpr100_sgpr101'": "v7 s32 s[100:101]",
}


@pytest.mark.parametrize("info", RESERVED)
def test_reserved_registers(info: str) -> None:
    head = f"{UNASSIGNED}machineFunctionInfo:\n  {info}\n"
    function = normalized("    KILL", head).function
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
    ir = IR.format(attributes)
    function = normalized("    KILL", UNASSIGNED, ir, threads=threads).function
    assert {file.name: file.count for file in function.files} == {"vcc": 2, **files}


def test_kernels_lose_the_registers_of_flat_scratch() -> None:
    ir = IR.format('"amdgpu-waves-per-eu"="8" "amdgpu-flat-work-group-size"="1,64"')
    for head in ("", "machineFunctionInfo:\n  isEntryFunction: true\n"):
        function = normalized("    KILL", UNASSIGNED + head, ir, "gfx90a").function
        assert function.target == "gfx90a"
        assert {file.name: file.count for file in function.files} == {
            "v": 32, "a": 32, "s": 74, "vcc": 2,
        }  # fmt: skip


@pytest.mark.parametrize(("waves", "limit"), [("3,3", 3), ("1,8", None), ("2,7", 7), ("4", None)])
def test_the_upper_limit_of_waves_belongs_to_the_problem(waves: str, limit: int | None) -> None:
    ir = IR.format(f'"amdgpu-waves-per-eu"="{waves}" "amdgpu-flat-work-group-size"="1,256"')
    assert normalized("    KILL", UNASSIGNED, ir=ir).function.maximum_occupancy == limit


REFUSALS = [
    ("KILL %0.foo:vreg_64_align2", "unknown sub-register index 'foo'"),
    ("KILL %0.sub2:vreg_64_align2", "%0 has 2 lanes: no 'sub2'"),
    ("KILL %0.sub1:vgpr_32", "%0 has 1 lanes: no 'sub1'"),
    ("KILL $vgpr4_vgpr5.sub1_sub2", "$vgpr4_vgpr5 has no 'sub1_sub2'"),
    ("KILL $vgpr4_vgpr5.foo", "$vgpr4_vgpr5 has no 'foo'"),
    ("KILL %0", "%0 has no register class"),
    ("%0:no_class = KILL", "unknown register class 'no_class'"),
    *((f"KILL ${name}, %0:vgpr_32", f"unknown physical register ${name} on gfx942")
      for name in ("vgpr256", "vgpr01", "vgpr0_agpr1")),
    ("%0:vgpr_32 = KILL %1:vgpr_32(tied-def 1)", "tied to operand 1, no definition"),
    ("%0:vgpr_32 = KILL %1:vgpr_32(tied-def 3)", "tied to operand 3, no definition"),
    ("%0:vgpr_32 = KILL $vgpr1(tied-def 2)", "tied to operand 2, no definition"),
    ("S_NOP %0:vgpr_32(nonsense)", "unknown operand syntax '%0:vgpr_32(nonsense)'"),
    ("S_NOP %0:vgpr_32(tied-use 1)", "unknown operand syntax '%0:vgpr_32(tied-use 1)'"),
    ("S_NOP %0,%1(tied-def 0)", "expected ', ' between operands in '%0,%1(tied-def 0)'"),
    ("foo S_NOP", "expected an instruction, not 'foo S_NOP'"),
    ("S_NOP csr_amdgpu", "calls by S_NOP are not supported"),
    (f"S_NOP %bb.{'9' * 5000}", f"expected a block such as %bb.1, not '%bb.{'9' * 56}'"),
    ("S_NOP {\n      S_NOP", "expected '}' at the end of the bundle"),
    *((f"%0.{index}:vreg_1024_align2 = KILL", f"unknown sub-register index '{index}'")
      for index in ("sub01", "sub0_sub2", "sub0_sub1_lo16", "sub", "lo16_hi16", "sub32", SIX,
                    f"{SEVEN}_sub8")),
]  # fmt: skip
OTHER_REFUSALS = [
    ("    KILL", "machineFunctionInfo:\n  frameOffsetReg: '$nothing'\n", "", 2,
     "unknown physical register $nothing on gfx942"),
    ("    KILL %0", "registers:\n  - { id: 0, class: foo }\n", "", 4,
     "unknown register class 'foo'"),
    ("    KILL %0", "registers:\n  - { id: 0, class: vgpr_32, flags: [ WWM_REG ] }\n", "", 4,
     "%0: whole-wave-mode registers are not supported"),
    ("    liveins: $foo\n    KILL", "", "", 5, "unknown physical register $foo on gfx942"),
    ("    KILL\n    S_BRANCH %bb.7", "", "", 5, "there is no block bb.7"),
    ("  bb.0:", "", "", 6, "block bb.0 occurs twice"),
    ("    KILL", "", IR.format('"amdgpu-num-vgpr"="many"'), 8,
     "function 'f' has an attribute that is not a number: expected a number, not 'many'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "head", "ir", "line", "message"),
    [*((f"    KILL\n    {text}", "", "", 7, words) for text, words in REFUSALS), *OTHER_REFUSALS],
)
def test_refusals_name_the_line(body: str, head: str, ir: str, line: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        normalized(body, head + UNASSIGNED, ir)
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
        # A copy of EXEC lists it as defined, but does not change it.
        ("%0:sreg_64 = COPY $exec, implicit-def $exec", False),
    ],
)
def test_what_writes_exec_otherwise_than_its_opcode_tells(instruction: str, marked: bool) -> None:
    assert (f"{MASK_MARK} " in f"{lines(LIVE + '    ' + instruction)[1]} ") == marked
