"""Operands that LLVM's tables do not allow, each beside one that they do."""

from __future__ import annotations

import re

import pytest

from tests.backends.amdgpu.mir_texts import UNASSIGNED, normalized, refused
from verilocc_bench.targets.amdgpu_instructions import targets_with

LIVE = "    liveins: $vgpr0, $vgpr1, $agpr0, $sgpr4, $sgpr5, $sgpr6_sgpr7, $vcc, $scc\n"
FAULTS = """
# A vector register where an accumulator has to be, and the reverse.
%0:vgpr_32 = V_ACCVGPR_WRITE_B32_e64 1
  operand 0 of V_ACCVGPR_WRITE_B32_e64 is of class agpr_32: %0 of class vgpr_32 may be v0,
%0:agpr_32 = V_ACCVGPR_WRITE_B32_e64 1
%0:vgpr_32 = V_ADD_U32_e32 1, %1:agpr_32
  operand 2 of V_ADD_U32_e32 is of class vgpr_32: %1 of class agpr_32 may be a0,
%0:vgpr_32 = V_ADD_U32_e32 1, %1:vgpr_32
%0:vgpr_32 = V_ADD_U32_e32 1, $agpr0
  operand 2 of V_ADD_U32_e32 is of class vgpr_32: $agpr0 is not in it
%0:vgpr_32 = V_ADD_U32_e32 1, $vgpr0
# Either file is not enough where an instruction takes one.
DS_WRITE2_B32_gfx9 %0:vgpr_32, %1:av_32, %2:av_32, 0, 1, 0
  operand 1 of DS_WRITE2_B32_gfx9 is of class vgpr_32: %1 of class av_32 may be a0,
DS_WRITE2_B32_gfx9 %0:vgpr_32, %1:vgpr_32, %2:vgpr_32, 0, 1, 0
%0:agpr_32 = GLOBAL_ATOMIC_ADD_RTN %1:vreg_64_align2, %2:vgpr_32, 0, 1
  operand 0 of GLOBAL_ATOMIC_ADD_RTN is of class vgpr_32
%0:vgpr_32 = GLOBAL_ATOMIC_ADD_RTN %1:vreg_64_align2, %2:vgpr_32, 0, 1
# Scalar results of vector instructions, scalar instructions on vectors, special registers.
%0:sgpr_32 = V_ADD_U32_e32 1, %1:vgpr_32
  operand 0 of V_ADD_U32_e32 is of class vgpr_32: %0 of class sgpr_32 may be s0,
%0:sgpr_32 = V_READFIRSTLANE_B32 %1:vgpr_32
%0:sgpr_32 = S_ADD_I32 %1:vgpr_32, 1, implicit-def $scc
  operand 1 of S_ADD_I32 is of class sreg_32: %1 of class vgpr_32 may be v0,
%0:sgpr_32 = S_ADD_I32 %1:sreg_32, 1, implicit-def $scc
%0:vgpr_32 = V_ADD_U32_e32 1, $m0
  operand 2 of V_ADD_U32_e32 is of class vgpr_32: $m0 is not in it
%0:vgpr_32 = V_ADD_U32_e32 $m0, $vgpr0
# Widths and places in tuples.
%0:vgpr_32 = V_ADD_U32_e32 1, %1:vreg_64_align2
  %1 of class vreg_64_align2 may be v0 to 1, which is not in it
%0:vgpr_32 = V_ADD_U32_e32 1, %1.sub1:vreg_64_align2
%0:vreg_64_align2 = V_LSHLREV_B64_e64 1, %1.sub1_sub2:vreg_128_align2
  %1.sub1_sub2 of class vreg_128_align2 may be v1 to 2,
%0:vreg_64_align2 = V_LSHLREV_B64_e64 1, %1.sub2_sub3:vreg_128_align2
S_LOAD_DWORDX2_IMM %0:sreg_64, 0, 0
  S_LOAD_DWORDX2_IMM has 4 operands, not 3
%1:sreg_64_xexec = S_LOAD_DWORDX2_IMM %0:sreg_64, 0, 0
%0:av_128_align2 = IMAGE_LOAD_V4_V1_gfx90a %1:vgpr_32, %2:sgpr_256, 0, 0, 0, 0, 0, 0, 0
  operand 1 of IMAGE_LOAD_V4_V1_gfx90a is of class vgpr_32: %1 of class vgpr_32 may be v1
%0:av_128_align2 = IMAGE_LOAD_V4_V1_gfx90a %1.sub0:vreg_64_align2, %2:sgpr_256, 0, 0, 0, 0, 0, 0, 0
%0:vgpr_32 = V_INDIRECT_REG_READ_GPR_IDX_B32_V2 %1:vreg_64, %2:sreg_32, 0, implicit $exec
  %1 of class vreg_64 may be v1 to 2, which is not in it
%0:vgpr_32 = V_INDIRECT_REG_READ_GPR_IDX_B32_V2 %1:vreg_64_align2, %2:sreg_32, 0
# Numbers and kinds of operands.
%0:vgpr_32 = V_ADD_U32_e32 1, %1:vgpr_32, %2:vgpr_32
  V_ADD_U32_e32 has 3 operands, not 4
%0:vgpr_32 = V_ADD_U32_e32 1, %1:vgpr_32, implicit %2:vgpr_32
%0:vgpr_32, %1:vgpr_32 = V_ADD_U32_e32 1
  V_ADD_U32_e32 defines its first 1 operands
%0:vgpr_32 = V_ADD_U32_e32 1, %1:vgpr_32
V_ADD_U32_e32 %0:vgpr_32, 1, %1:vgpr_32
  V_ADD_U32_e32 defines its first 1 operands
V_CMP_EQ_U32_e32 1, %1:vgpr_32, implicit-def $vcc
S_NOP %0:sreg_32
  operand 0 of S_NOP cannot be a register: %0
S_NOP 0, implicit %0:sreg_32
# A register that one instruction defines twice.
%0:vgpr_32, %0 = V_SWAP_B32 %0, %0
  V_SWAP_B32 defines %0 twice
%0:vgpr_32, %1:vgpr_32 = V_SWAP_B32 %1, %0
%0.sub0:vreg_64_align2, %0.sub0 = V_SWAP_B32 %0.sub0, %0.sub0
  V_SWAP_B32 defines %0.sub0 twice
%0.sub0:vreg_64_align2, %0.sub1 = V_SWAP_B32 %0.sub1, %0.sub0
INLINEASM &"", 1, 10, def %0:vreg_64_align2, 10, def %0.sub1
  INLINEASM defines %0.sub1 twice
INLINEASM &"", 1, 10, def %0.sub0:vreg_64_align2, 10, def %0.sub1
INLINEASM &"", 1, 10, def %0.sub0:vreg_64_align2, 10, def %0.sub1, 10, def %0.sub0
  INLINEASM defines %0.sub0 twice
INLINEASM &"", 1, 10, def %0.sub0:vreg_64_align2, 10, def %0.sub1, 10, implicit-def %0
$vgpr0, $vgpr0 = V_SWAP_B32 $vgpr0, $vgpr0
  V_SWAP_B32 defines $vgpr0 twice
$vgpr0, $vgpr1 = V_SWAP_B32 $vgpr1, $vgpr0
INLINEASM &"", 1, 9, %0:vgpr_32, 10, def $sgpr4, 10, def $m0, 10, def $sgpr4_sgpr5
  INLINEASM defines $sgpr4_sgpr5 twice
INLINEASM &"", 1, 10, def $sgpr4, 10, def $m0, 10, def $m0, 10, def $sgpr5
# Registers that an instruction reads and writes without naming them.
V_CMP_EQ_U32_e32 1, %1:vgpr_32
  V_CMP_EQ_U32_e32 has an operand 'implicit-def $vcc'
V_CMP_EQ_U32_e32 1, %1:vgpr_32, implicit-def $vcc
V_CMP_EQ_U32_e32 1, %1:vgpr_32, implicit $vcc
  V_CMP_EQ_U32_e32 has an operand 'implicit-def $vcc'
V_CMP_EQ_U32_e32 1, %1:vgpr_32, implicit-def dead $vcc, implicit $exec
%0:vgpr_32 = V_CNDMASK_B32_e32 1, %2:vgpr_32, implicit $exec
  V_CNDMASK_B32_e32 has an operand 'implicit $vcc'
%0:vgpr_32 = V_CNDMASK_B32_e32 1, %2:vgpr_32, implicit $vcc
# Copies.
%0:vgpr_32 = COPY %1:vreg_64_align2
  COPY from %1 to %0: the widths differ
%0:vgpr_32 = COPY %1.sub1:vreg_64_align2
%0:sreg_64 = COPY $sgpr4
  COPY from $sgpr4 to %0: the w
%0:sreg_64 = COPY $sgpr6_sgpr7
%0.sub0_sub1:vreg_96_align2 = COPY $vgpr0
  COPY from $vgpr0 to %0.sub0_sub1: the widths differ
%0.sub2:vreg_96_align2 = COPY $vgpr0
%0:sreg_32 = COPY %1:vgpr_32
  COPY from the vector register %1 to the scalar one %0
%0:vgpr_32 = COPY %1:sreg_32
$m0 = COPY $agpr0
  COPY from the vector register $agpr0 to the scalar one $m0
%0:vgpr_32 = COPY $m0
%0:sreg_32 = COPY %1:av_32
  COPY from the vector register %1 to the scalar one %0
%0.lo16:vgpr_32 = COPY $sgpr4
%0:sreg_32 = COPY 1
  : COPY copies a register to another
%0:sreg_32 = COPY $scc
# The first source of a division's scale is one of the two others.
%0:vgpr_32, %1:sreg_64 = V_DIV_SCALE_F32_e64 0, %2:vgpr_32, 0, %3:vgpr_32, 0, %4:vgpr_32, 0, 0
  V_DIV_SCALE_F32_e64 scales one of its last two sources: %2 is another
%0:vgpr_32, %1:sreg_64 = V_DIV_SCALE_F32_e64 0, %2:vgpr_32, 0, %3:vgpr_32, 0, %2, 0, 0
%0:vgpr_32, %1:sreg_64 = V_DIV_SCALE_F32_e64 0, %2:vgpr_32, 0, 7, 0, 7, 0, 0
  scales one of its last two sources: %2 is another
%0:vgpr_32, %1:sreg_64 = V_DIV_SCALE_F32_e64 0, 7, 0, %3:vgpr_32, 0, 7, 0, 0
# One constant bus: what it carries.
%0:vgpr_32 = V_ADD3_U32_e64 %1:sreg_32, %2:sreg_32, %3:vgpr_32
  V_ADD3_U32_e64 reads %1 and %2: one scalar operand is allowed
%0:vgpr_32 = V_ADD3_U32_e64 %1:sreg_32, %1, %3:vgpr_32
%0:vgpr_32 = V_ADD3_U32_e64 %1.sub0:sreg_64, %1.sub1, %3:vgpr_32
  V_ADD3_U32_e64 reads %1.sub0 and %1.sub1: one
%0:vgpr_32 = V_ADD3_U32_e64 %1.sub0:sreg_64, %1.sub0, %3:vgpr_32
%0:vgpr_32 = V_ADD3_U32_e64 $sgpr4, %2:sreg_32, 1
  V_ADD3_U32_e64 reads $sgpr4 and %2: one
%0:vgpr_32 = V_ADD3_U32_e64 $sgpr4, $sgpr4, 1
%0:vgpr_32 = V_ADD3_U32_e64 $m0, %2:sreg_32, 1
  V_ADD3_U32_e64 reads $m0 and %2: one
%0:vgpr_32 = V_ADD3_U32_e64 $m0, %2:vgpr_32, 1
%0:vgpr_32 = V_CNDMASK_B32_e64 0, 0, 0, %1:sreg_32, %2:sreg_64_xexec
  V_CNDMASK_B32_e64 reads %1 and %2: one
%0:vgpr_32 = V_CNDMASK_B32_e64 0, 0, 0, %1:vgpr_32, %2:sreg_64_xexec
# VCC is read without being named.
%0:vgpr_32 = V_CNDMASK_B32_e32 %1:sreg_32, %2:vgpr_32, implicit $vcc
  V_CNDMASK_B32_e32 reads $vcc and %1: one
%0:vgpr_32 = V_CNDMASK_B32_e32 $vcc_lo, %2:vgpr_32, implicit $vcc
# A constant of the instruction is on the bus, too.
%0:vgpr_32 = V_FMAMK_F32 %1:sreg_32, 7, %2:vgpr_32
  V_FMAMK_F32 reads %1 beside its constant: one
%0:vgpr_32 = V_FMAMK_F32 %1:vgpr_32, 7, %2:vgpr_32
V_CMP_EQ_U32_e64 %1:sreg_32, %2:vgpr_32
  V_CMP_EQ_U32_e64 has 3 operands
%0:sreg_64 = V_CMP_EQ_U32_e64 %1:sreg_32, %2:vgpr_32
# Scalar instructions have no such limit, and M0 may select the lane of a write.
%0:vgpr_32 = V_WRITELANE_B32 %1:sreg_32, %2:sreg_32, %0
  V_WRITELANE_B32 reads %1 and %2: one
%0:vgpr_32 = V_WRITELANE_B32 %1:sreg_32, $m0, %0
%0:vgpr_32 = V_ADD_U32_e64 $sgpr4, $sgpr5, 0
  V_ADD_U32_e64 reads $sgpr4 and $sgpr5: one
%0:sreg_32 = S_ADD_U32 $sgpr4, $sgpr5, implicit-def $scc
"""
"""A wrong instruction, what is said of it, and one like it that is right."""
ROWS = [line.strip() for line in FAULTS.splitlines() if line and not line.startswith("#")]
CASES = list(zip(ROWS[::3], ROWS[1::3], ROWS[2::3], strict=True))


@pytest.mark.parametrize(("wrong", "words", "right"), CASES)
def test_operands(wrong: str, words: str, right: str) -> None:
    form = re.search(r"[A-Z]\w+", wrong)
    assert form is not None
    for arch in targets_with(form[0]):
        body = f"{LIVE}    S_NOP 0\n    {wrong}"
        assert refused(re.escape(words), body, UNASSIGNED, arch=arch) == 8
        normalized(f"{LIVE}    {right}", UNASSIGNED, arch=arch)


def test_members_of_bundles_are_instructions() -> None:
    bundle = "    BUNDLE {{\n      S_NOP 0\n      {}\n    }}"
    wrong, words, right = CASES[0]
    assert refused(re.escape(words), bundle.format(wrong)) == 7
    normalized(bundle.format(right))


def test_what_others_refuse_is_left_to_them() -> None:
    for operand, words in (
        ("%1.sub7:vreg_64_align2", "%1 has 2 lanes: no 'sub7'"),
        ("%1.sub1_sub2:vreg_64_align2", "%1 has 2 lanes: no 'sub1_sub2'"),
        ("%1.other:vreg_64_align2", "unknown sub-register index 'other'"),
        ("%1:other", "unknown register class 'other'"),
        ("%1", "%1 has no register class"),
        ("$other", r"unknown physical register \$other"),
    ):
        refused(words, f"    %0:vgpr_32 = V_ADD_U32_e32 1, {operand}")
        if "lanes" not in words:
            refused(words, f"    %0:vreg_64_align2 = COPY {operand}")
