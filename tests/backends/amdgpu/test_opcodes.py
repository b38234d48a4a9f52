"""Opcodes that a target lacks before allocation are refused by name; llc says which they are."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.backends.amdgpu.one_instruction import kernel_of_opcode, module, with_instruction
from tests.sampling import in_turns
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, LlcFailed, run_llc
from verilocc_bench.errors import InputError
from verilocc_bench.machine.disassembly import refuse_undecodable
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_instructions import _table, targets_with

V, W, T, Q = "vgpr_32", "vreg_64_align2", "vreg_128_align2", "vreg_256_align2"
BEFORE = "".join(
    f"    %{number}:{name} = IMPLICIT_DEF\n"
    for number, name in enumerate((V, V, W, W, T, Q, T, Q, "sreg_32", "sgpr_256", "sgpr_128"))
)
LACKING = Path(__file__).with_name("lacking_opcodes.txt").read_text()
INSTRUCTIONS = {
    re.sub(r"^.* = |(?<=\w) .*", "", line): line
    for line in LACKING.splitlines()
    if line and not line.startswith("#")
}

SAMPLE = 60
# Their operands are more than classes say: constants of certain values, calls, stack objects.
SPECIAL = re.compile(
    r"SI_\w+|INLINEASM\w*|ADJCALLSTACK\w+|\w+F64\w*_dpp|V_DIV_SCALE\w+|V_WRITELANE_B32"
    r"|S_CBRANCH_(I_FORK|VCC\w+)|S_MOVREL\w+|S_SETPC_B64\w*|(ENTER|EXIT)_STRICT_\w+|BUNDLE|DBG_\w+"
)


def refusal(kernel: str, arch: str) -> InputError | None:
    """What reading refuses a kernel for, or None."""
    parsed = parse_mir(module([kernel]), "x.mir")
    try:
        normalize_machine_function(parsed.functions[0], parsed, get_target(arch), source="x.mir")
    except InputError as error:
        return error
    return None


def is_code(kernels: Sequence[str], arch: str) -> bool:
    """True if llc makes code of kernels, which the disassembler knows."""
    try:
        refuse_undecodable(run_llc(module(kernels), arch, "obj", LLC_OPTIONS), arch)
    except LlcFailed:
        return False
    except InputError as error:
        if "cannot decode" in error.message:
            return False
        raise
    return True


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("opcode", INSTRUCTIONS)
def test_opcodes_that_a_target_lacks_are_refused_by_name(opcode: str, arch: str) -> None:
    kernel = with_instruction("k", INSTRUCTIONS[opcode], BEFORE)
    error = refusal(kernel, arch)
    assert error is not None
    assert error.message == f"{arch} has no {opcode} in machine IR before allocation"
    lines = module([kernel]).split("\n")
    assert (error.source, lines[(error.line or 0) - 1].strip()) == ("x.mir", INSTRUCTIONS[opcode])


@pytest.mark.slow
@pytest.mark.parametrize(("opcode", "arch"), in_turns(INSTRUCTIONS, ["gfx90a", "gfx942"]))
def test_llc_makes_no_code_of_them(opcode: str, arch: str, llc: object) -> None:
    before = BEFORE + "    $m0 = IMPLICIT_DEF\n"
    assert not is_code([with_instruction("k", INSTRUCTIONS[opcode], before)], arch)


def test_phis_are_of_an_earlier_stage() -> None:
    error = refusal(with_instruction("k", f"%20:{V} = PHI %0, %bb.0", BEFORE), "gfx942")
    assert error is not None
    assert error.message == "PHI: expected MIR from llc -stop-before=greedy"


@pytest.mark.parametrize(
    ("opcode", "arch", "other"),
    [
        ("V_MAC_F32_e32", "gfx942", "gfx90a"),
        ("IMAGE_LOAD_V1_V1_gfx90a", "gfx942", "gfx90a"),
        ("V_LSHL_ADD_U64_e64", "gfx90a", "gfx942"),
        ("V_SMFMAC_F32_16X16X32_F16_e64", "gfx90a", "gfx942"),
    ],
)
def test_opcodes_of_the_other_target_are_told_as_such(opcode: str, arch: str, other: str) -> None:
    kernel = kernel_of_opcode("k", opcode)
    assert kernel is not None
    error = refusal(kernel, arch)
    assert error is not None
    assert error.message.endswith(f"{opcode} is an instruction of {other}, not of {arch}")
    assert refusal(kernel, other) is None


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_llc_makes_code_of_the_opcodes_of_the_table(arch: str, llc: object) -> None:
    """A sample of each kind: with an encoding, selected as it is encoded, expanded by LLVM."""
    chance = random.Random(7)
    kinds: dict[tuple[bool, str], list[str]] = {}
    for opcode, entry in _table().items():
        if arch in entry.targets and not SPECIAL.fullmatch(opcode):
            kinds.setdefault((bool(entry.encodings), opcode.split("_")[0]), []).append(opcode)
    chosen = [chance.choice(sorted(opcodes)) for _, opcodes in sorted(kinds.items())]
    others = sorted(opcode for opcodes in kinds.values() for opcode in opcodes)
    chosen += chance.sample(others, SAMPLE - len(chosen))
    kernels = [kernel_of_opcode(f"k{number}", opcode) for number, opcode in enumerate(chosen)]
    made = [kernel for kernel in kernels if kernel is not None]
    assert len(made) == SAMPLE
    assert [error for each in made if (error := refusal(each, arch))] == []
    assert is_code(made, arch)
    assert all(arch in targets_with(opcode) for opcode in chosen)
