"""Reading a label off machine IR: what corresponds, what vanished, what means a split."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.label import LiveRangesSplit, read_label
from verilocc_bench.backends.amdgpu.machine import MachineFunction, MachineModule
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.targets import get_target


def parse(body: str) -> MachineModule:
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    return parse_mir(f"---\nname: f\nbody: |\n  bb.0:\n{lines}...\n")


def label(before: str, after: str) -> dict[int, str]:
    module = parse(before)
    machine: MachineFunction = module.functions[0]
    normalized = normalize_machine_function(machine, module, get_target("gfx942"))
    found = read_label(machine, parse(after).functions[0], normalized)
    return {number: f"{r.file}{r.index}" for number, r in found.items()}


BEFORE = """
undef %0.sub0:vreg_64_align2 = V_MOV_B32_e32 1, implicit $exec
%0.sub1:vreg_64_align2 = V_MOV_B32_e32 2, implicit $exec
%1:vgpr_32 = COPY %0.sub1
GLOBAL_STORE_DWORD %0, %1, 0, 0, implicit $exec
"""


AFTER = """
renamable $vgpr4 = V_MOV_B32_e32 1, implicit $exec, implicit-def $vgpr4_vgpr5
renamable $vgpr5 = V_MOV_B32_e32 2, implicit $exec
renamable $vgpr1 = COPY $vgpr5
GLOBAL_STORE_DWORD killed renamable $vgpr4_vgpr5, killed renamable $vgpr1, 0, 0, implicit $exec
"""
COPIED = "renamable $vgpr1 = COPY $vgpr5\n"


def test_tuples_are_named_by_their_base_and_a_vanished_copy_was_an_identity() -> None:
    assert label(BEFORE, AFTER) == {0: "v4", 1: "v1"}
    vanished = AFTER.replace(COPIED, "").replace("$vgpr1", "$vgpr5")
    assert label(BEFORE, vanished) == {0: "v4", 1: "v5"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A copy that the function did not have.
        ("renamable $vgpr5 = V", "$vgpr9 = COPY $vgpr4\nrenamable $vgpr5 = V"),
        # The copy vanished, and was no identity.
        (COPIED, ""),
        # One register has two places.
        ("renamable $vgpr4 = ", "renamable $vgpr6 = "),
        # A spill, and a constant that was made again.
        (COPIED, f"{COPIED}SI_SPILL_V32_SAVE $vgpr1, %stack.0, $sgpr32, 0, implicit $exec\n"),
        (COPIED, "renamable $vgpr1 = V_MOV_B32_e32 2, implicit $exec\n"),
    ],
)
def test_anything_else_is_a_split(old: str, new: str) -> None:
    assert old in AFTER
    with pytest.raises(LiveRangesSplit):
        label(BEFORE, AFTER.replace(old, new))


def test_other_blocks_are_no_label() -> None:
    module = parse(BEFORE)
    normalized = normalize_machine_function(module.functions[0], module, get_target("gfx942"))
    other = parse_mir("---\nname: f\nbody: |\n  bb.0:\n  bb.1:\n...\n").functions[0]
    with pytest.raises(RejectedKernel, match="blocks"):
        read_label(module.functions[0], other, normalized)


def test_a_base_may_follow_from_a_vanished_copy_alone() -> None:
    before = "liveins: $vgpr3\n%0:vgpr_32 = COPY $vgpr3\n%1:vgpr_32 = COPY %0\nS_NOP 0, implicit %1"
    assert label(before, "S_NOP 0, implicit $vgpr3") == {0: "v3", 1: "v3"}
