"""The body of a machine function as `mir_gate` reads it: line by line, operand by operand."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.printed_body import (
    BodyReader,
    PrintedBlock,
    PrintedInstruction,
    PrintedRegister,
    merged_bundle,
    physical_units,
)
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits


def blocks(text: str, first: int = 0) -> list[PrintedBlock]:
    return BodyReader(text.split("\n"), first).blocks()


def instruction(line: str) -> PrintedInstruction:
    (block,) = blocks(f"  bb.0:\n    {line}")
    (found,) = block.lines
    return found


FLAGS = ("defined", "undef", "early", "implicit", "internal", "half")


def spelled(place: int, register: PrintedRegister) -> str:
    flags = "".join(f"{name} " for name in FLAGS if getattr(register, name))
    kind = "%" if register.virtual else "$"
    lanes = "" if register.lanes is None else "[{}:{}]".format(*register.lanes)
    tie = "" if register.tied is None else f" tied to {register.tied}"
    return f"{place} {flags}{kind}{register.name}{lanes}{tie}"


def operands(read: PrintedInstruction) -> list[str]:
    return [spelled(*each) for each in read.registers]


@pytest.mark.parametrize(
    ("line", "opcode", "expected"),
    [
        ("%1:vgpr_32 = COPY $vgpr0", "COPY", ["0 defined %1", "1 $vgpr0"]),
        ("dead %1:vgpr_32, renamable $vcc = nsw V_X killed %2, 7, %3", "V_X",
         ["0 defined %1", "1 defined $vcc", "2 %2", "4 %3"]),
        ("undef %0.sub1:vreg_64 = V_X %0.sub0_sub1, %a-b", "V_X",
         ["0 defined undef %0[1:1]", "1 %0[0:2]", "2 %a-b"]),
        ("V_X implicit-def $vgpr0, implicit undef $vgpr1, internal %2", "V_X",
         ["0 defined implicit $vgpr0", "1 undef implicit $vgpr1", "2 internal %2"]),
        ("early-clobber %0 = V_X undef %1(tied-def 0)", "V_X",
         ["0 defined early %0", "1 undef %1 tied to 0"]),
        ("%0 = V_X %1(tied-def 10)(s32)", "V_X", ["0 defined %0", "1 %1 tied to 10"]),
        # LLVM knows it where the text does not say so.
        ("%0 = V_QSAD_PK_U16_U8_e64 %1", "V_QSAD_PK_U16_U8_e64", ["0 defined early %0", "1 %1"]),
        ("V_QSAD_PK_U16_U8_e64", "V_QSAD_PK_U16_U8_e64", []),
        # Halves of a lane.
        ("%0.lo16 = V_X %1.sub2_hi16, %2.sub1_lo16_sub1_hi16", "V_X",
         ["0 defined half %0[0:1]", "1 half %1[2:1]", "2 %2[1:1]"]),
        ("$vgpr1_lo16 = V_X $vgpr2_hi16", "V_X",
         ["0 defined half $vgpr1_lo16", "1 half $vgpr2_hi16"]),
        # What names no register.
        ("V_X %bb.3, %stack.0, %fixed-stack.1, %const.2, %ir.p, %subreg.sub0, @g, 0, %4", "V_X",
         ["8 %4"]),
        ("V_X blockaddress(@f, %ir-block.b), <0, %2>, %1", "V_X", ["2 %1"]),
        ("V_X target-flags(amdgpu-rel32-lo) @g + 4, $vgpr1", "V_X", ["1 $vgpr1"]),
        ('INLINEASM &"a, $vgpr7 = ; %bb.1", 1, $vgpr1', "INLINEASM", ["2 $vgpr1"]),
        # What stands behind the operands.
        ("V_X %1 :: (load (s32) from %ir.p, align $vgpr9)", "V_X", ["0 %1"]),
        ("V_X %1 ; of %2, $vgpr2", "V_X", ["0 %1"]),
        ("V_X %1;of %2", "V_X", ["0 %1"]),
        ("V_X /* of %2, %3 */ %1", "V_X", ["0 %1"]),
        ("V_X %1, debug-location !DILocation(line: 1, scope: !2)", "V_X", ["0 %1"]),
        ("V_X %1, debug-instr-number 2, $vgpr1", "V_X", ["0 %1"]),
        ("V_X %1, mmra !3, $vgpr1", "V_X", ["0 %1"]),
    ],
)  # fmt: skip
def test_one_instruction(line: str, opcode: str, expected: list[str]) -> None:
    found = instruction(line)
    assert (found.number, found.opcode, operands(found)) == (2, opcode, expected)


def test_blocks_and_masks_that_an_instruction_names() -> None:
    assert instruction("S_CBRANCH_VCCNZ %bb.12, %bb.3").targets == (12, 3)
    call = instruction("SI_CALL %0, @g, csr_amdgpu, 7, $vgpr1")
    assert (call.mask, call.targets, operands(call)) == ("csr_amdgpu", (), ["0 %0", "4 $vgpr1"])
    mask = "CustomRegMask($vgpr0,$vgpr1)"
    assert instruction(f"SI_CALL {mask}, $vgpr2").mask == mask
    assert instruction("S_NOP 0").mask == ""


def test_what_is_no_instruction() -> None:
    with pytest.raises(InputError) as caught:
        instruction("%0:vgpr_32 = " + "7" * 60)
    words = f"expected an instruction, not '%0:vgpr_32 = {'7' * 47}'"
    assert (caught.value.message, caught.value.line) == (words, 2)


BODY = """\
  bb.7.entry (align 4):
    successors: %bb.3(0x40000000), %bb.9(0x40000000), %bb.3
    liveins: $vgpr0, $sgpr4_sgpr5:0x3
    liveins: $vcc

    ; a comment about $vgpr1
    # another
    S_NOP 0
    X_NOP 0
    DBG_VALUE %1, $noreg, 0
    CFI_INSTRUCTION undefined $vgpr40
    BUNDLE implicit-def $vgpr7 {
      ; of $vgpr2

      $vgpr7 = V_X %1
      # of $vgpr3
      X_Y internal $vgpr7
    }
    S_BRANCH %bb.3

  bb.3:
    successors:
  bb.9:
...
  bb.11:
"""


def test_the_blocks_of_a_body() -> None:
    found = blocks(f"name: f\n{BODY}", 1)
    assert [(each.number, each.line, each.successors, each.live_ins) for each in found] == [
        (7, 2, (3, 9), ("vgpr0", "sgpr4_sgpr5", "vcc")), (3, 22, (), ()), (9, 24, None, ()),
    ]  # fmt: skip
    assert [(each.number, each.opcode) for each in found[0].lines] == [
        (9, "S_NOP"), (10, "X_NOP"), (13, "BUNDLE"), (20, "S_BRANCH"),
    ]  # fmt: skip
    bundle = found[0].lines.pop(2)
    assert operands(bundle) == ["0 defined implicit $vgpr7"]
    assert [(each.number, each.opcode, operands(each)) for each in bundle.members] == [
        (16, "V_X", ["0 defined $vgpr7", "1 %1"]), (18, "X_Y", ["0 internal $vgpr7"]),
    ]  # fmt: skip
    assert not any(each.members for each in found[0].lines)
    # A body may end with its text.
    assert [each.number for each in blocks(" bb.0:\n\n bb.1:")] == [0, 1]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # A definition is an early clobber if a later member reads anything from outside.
        (["BUNDLE implicit-def $vgpr1, implicit $exec", "$vgpr1 = V_X 0", "V_Y 0"],
         ["1 implicit $exec", "2 defined $vgpr1"]),
        (["BUNDLE", "$vgpr1 = V_X %1", "%2 = V_Y internal $vgpr1"],
         ["1 defined $vgpr1", "2 %1", "3 defined %2"]),
        (["BUNDLE", "$vgpr1 = V_X 0", "V_Y %2"], ["1 defined early $vgpr1", "2 %2"]),
        (["BUNDLE", "V_Y %2", "early-clobber $vgpr1 = V_X 0"],
         ["1 %2", "2 defined early $vgpr1"]),
        # Ties count the operands from the first.
        (["BUNDLE %9, %8", "%0 = V_X 0, %1(tied-def 0)", "%2 = V_Y %3(tied-def 0)"],
         ["0 %9", "1 %8", "2 defined early %0", "4 %1 tied to 2", "5 defined %2",
          "6 %3 tied to 5"]),
        # What the head says of a member's register, or of other lanes of it.
        (["BUNDLE %0.sub0, %0.sub1, $vgpr0", "V_X %0.sub0, undef $vgpr0"],
         ["1 %0[1:1]", "2 %0[0:1]", "3 undef $vgpr0"]),
    ],
)  # fmt: skip
def test_a_bundle_as_one_instruction(lines: list[str], expected: list[str]) -> None:
    head, *members = lines
    read = merged_bundle(instruction("\n      ".join([f"{head} {{", *members, "}"])))
    assert (read.number, read.opcode, operands(read)) == (2, "BUNDLE", expected)


def test_units_of_physical_registers() -> None:
    expected = {
        "vgpr0": ("v", 0, 1), "vgpr255": ("v", 255, 1), "agpr102_agpr103": ("a", 102, 2),
        "sgpr100_sgpr101": ("s", 100, 2), "sgpr101": ("s", 101, 1), "vgpr3_lo16": ("v", 3, 1),
        "vgpr3_hi16": ("v", 3, 1), "vcc": ("vcc", 0, 2), "vcc_lo": ("vcc", 0, 1),
        "vcc_hi": ("vcc", 1, 1),
    }  # fmt: skip
    for name, units in expected.items():
        assert physical_units(name) == FixedUnits(*units)
    for name in ("sgpr102", "sgpr103", "exec", "ttmp4", "xvgpr4", ""):
        assert physical_units(name) is None
