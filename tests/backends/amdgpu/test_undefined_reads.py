"""Physical registers that an instruction reads: live-ins, or defined before on some path."""

from __future__ import annotations

import pytest

from tests.backends.amdgpu.mir_texts import UNASSIGNED, normalized, refused

SUM = "    %1:vgpr_32 = V_ADD_U32_e32 %0, %0, implicit $exec\n    S_ENDPGM 0, implicit %1"
CALL = "    %9:sreg_64 = IMPLICIT_DEF\n    $sgpr30_sgpr31 = SI_CALL %9, @g, csr_amdgpu"
LOOP = """    liveins: $vgpr0
    S_BRANCH %bb.1
  bb.1:
    %0:vgpr_32 = COPY {}
    $vgpr5 = COPY %0
    S_CBRANCH_SCC1 %bb.1
  bb.2:
    S_ENDPGM 0, implicit %0"""


@pytest.mark.parametrize(
    ("wrong", "register", "line", "right"),
    [
        (f"    %0:vgpr_32 = COPY $vgpr0\n{SUM}", "vgpr0", 6, "    liveins: $vgpr0\n{}"),
        (f"    S_NOP 0\n    %0:vgpr_32 = COPY $agpr3\n{SUM}", "agpr3", 7,
         "    liveins: $agpr3\n{}"),
        ("    S_NOP 0, implicit $vcc_hi", "vcc_hi", 6, "    liveins: $vcc\n{}"),
        ("    KILL $sgpr4_sgpr5", "sgpr4_sgpr5", 6, "    $sgpr5 = S_MOV_B32 0\n{}"),
        ("    KILL $vgpr1", "vgpr1", 6, "    $vgpr1_vgpr2 = IMPLICIT_DEF\n{}"),
        # After a call that destroys it.
        (f"    $vgpr1 = IMPLICIT_DEF\n{CALL}\n    KILL $vgpr1", "vgpr1", 9,
         f"    $vgpr40 = IMPLICIT_DEF\n{CALL}\n    KILL $vgpr40"),
        (f"    $vgpr1 = IMPLICIT_DEF\n{CALL}\n    KILL $vgpr1", "vgpr1", 9,
         f"    $vgpr1 = IMPLICIT_DEF\n{CALL}, implicit-def $vgpr1\n    KILL $vgpr1"),
        # A definition on one path is enough, also around a loop.
        (LOOP.format("$vgpr6"), "vgpr6", 9, LOOP.format("$vgpr5")),
        ("    S_BRANCH %bb.1\n  bb.1:\n    KILL $vgpr0", "vgpr0", 8,
         "    $vgpr0 = IMPLICIT_DEF\n    $vgpr1 = IMPLICIT_DEF\n{}"),
        # Notes and blocks that no path leads to say nothing of what follows.
        ("    DBG_VALUE $vgpr0\n    KILL $vgpr1", "vgpr1", 7, "    $vgpr1 = IMPLICIT_DEF\n{}"),
        ("    S_BRANCH %bb.2\n  bb.1:\n    KILL $vgpr0\n  bb.2:\n    KILL $vgpr1", "vgpr1", 10,
         "    liveins: $vgpr1\n{}"),
        # An instruction defines more than one.
        ("    KILL $vgpr1", "vgpr1", 6,
         "    liveins: $vgpr0\n    $vgpr1, $vgpr0 = V_SWAP_B32 $vgpr0, undef $vgpr1\n{}"),
        # Members of bundles.
        ("    BUNDLE {\n      KILL $vgpr1\n    }", "vgpr1", 7,
         "    BUNDLE {\n      $vgpr1 = IMPLICIT_DEF\n      KILL internal $vgpr1\n    }"),
    ],
)  # fmt: skip
def test_reads_of_what_nothing_defines(wrong: str, register: str, line: int, right: str) -> None:
    words = rf"^x.mir:{line}: \${register} is read, but is neither a live-in nor defined before"
    assert refused(words, wrong, UNASSIGNED) == line
    normalized(right.replace("{}", wrong), UNASSIGNED)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", "    S_NOP 0, implicit $exec, implicit $m0, implicit $scc"),
        ("", "    S_NOP 0, implicit undef $vgpr0"),
        ("", "    S_NOP 0\n    DBG_VALUE $vgpr0\n    S_ENDPGM 0"),
        ("", "    S_ENDPGM 0\n  bb.1:\n    KILL $vgpr0"),
        # What LLVM keeps for itself holds what LLVM puts there.
        ("machineFunctionInfo:\n  stackPtrOffsetReg: '$sgpr32'\n", "    KILL $sgpr32"),
        ("machineFunctionInfo:\n  stackPtrOffsetReg: '$sgpr32'\n", f"{CALL}\n    KILL $sgpr32"),
    ],
)
def test_reads_that_are_allowed(head: str, body: str) -> None:
    normalized(body, f"{UNASSIGNED}{head}")


def test_another_register_that_llvm_keeps_is_not_enough() -> None:
    head = f"{UNASSIGNED}machineFunctionInfo:\n  stackPtrOffsetReg: '$sgpr32'\n"
    refused(r"\$sgpr33 is read", "    KILL $sgpr33", head)
