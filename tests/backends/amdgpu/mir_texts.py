"""Machine functions as text, and what becomes of them."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.ir import print_function
from verilocc_bench.targets import get_target

UNASSIGNED = "noVRegs: false\n"
"""Without virtual registers, and without this, a function counts as one that is allocated."""
LIVE = (
    "    liveins: $vgpr0, $vgpr1, $vgpr2, $vgpr3, $vgpr4_vgpr5_vgpr6_vgpr7, $vgpr9, $sgpr0_sgpr1, "
    "$sgpr2_sgpr3, $vcc\n"
)


def mir(body: str, head: str = "", ir: str = "") -> str:
    """A file with one function: its first block's lines and further blocks, and its other keys."""
    return (f"--- |\n{ir}\n...\n" if ir else "") + (
        f"---\nname: f\n{head}body: |\n  bb.0:\n{body}\n...\n"
    )


def normalized(
    body: str, head: str = "", ir: str = "", arch: str = "gfx942", threads: int | None = None
) -> NormalizedMachineFunction:
    text = mir(body, head, ir)
    module = parse_mir(text, "x.mir")
    return normalized_problem(
        text, module.functions[0], module, get_target(arch), max_threads=threads, source="x.mir"
    )[0]


def lines(body: str, head: str = "") -> list[str]:
    """The normalized text from its first block on."""
    text = print_function(normalized(body, head + UNASSIGNED).function)
    return text[text.index("bb0") :].splitlines()


def refused(words: str, body: str, head: str = "", ir: str = "", arch: str = "gfx942") -> int:
    """The line of the error of this pattern."""
    with pytest.raises(InputError, match=words) as caught:
        normalized(body, head, ir, arch)
    assert caught.value.source == "x.mir"
    assert caught.value.line is not None
    return caught.value.line
