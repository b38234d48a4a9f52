"""Operands that LLVM's tables do not allow, each beside one that they do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.backends.amdgpu.mir_texts import UNASSIGNED, normalized, refused
from verilocc_bench.targets.amdgpu_instructions import targets_with

LIVE = "    liveins: $vgpr0, $vgpr1, $agpr0, $sgpr4, $sgpr5, $sgpr6_sgpr7, $vcc, $scc\n"
FAULTS = Path(__file__).with_name("operand_faults.txt").read_text()
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
