"""The output of `nvdisasm -c -hex`, whole and damaged."""

from pathlib import Path

import pytest

from verilocc_bench.backends.nvidia.architectures import KNOWN
from verilocc_bench.backends.nvidia.records import RegisterReference, SassGuard
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.errors import InputError, RejectedKernel

KERNEL = Path(__file__).with_name("listings").joinpath("gemm.sass").read_text()


def disassembly(instruction: str) -> str:
    """A function of this instruction alone."""
    return (
        '\t.target\tsm_80\n\t.section\t.text.f,"ax",@progbits\n'
        '\t.sectioninfo\t@"SHI_REGISTERS=8"\n.size f,(.L_x_9 - f)\nf:\n'
        f".L_x_0:\n.L_x_3:\n        /*0000*/     {instruction} ;  /* 0x0000000000000000 */\n"
        "                    /* 0x0000000000000000 */\n.L_x_9:\n"
    )


def test_a_function() -> None:
    (function,) = parse_sass(KERNEL)
    assert (function.name, function.register_count) == ("gemm", 130)
    assert dict(function.labels) == {
        "gemm": 0, ".text.gemm": 0, ".L_x_16": 3, ".L_x_3": 7, ".L_x_17": 9
    }  # fmt: skip
    assert [i.address for i in function.instructions] == list(range(0, 0x90, 16))
    opcodes = [i.opcode for i in function.instructions]
    assert opcodes == ["MOV", "IADD3", "STL", "STG.E.128", "BRA", "LDS", "EXIT", "BRA", "NOP"]


def test_an_instruction() -> None:
    instruction = parse_sass(KERNEL)[0].instructions[1]
    assert instruction.line == 18
    assert instruction.operands == ("R2", "P0", "R79", "0x1", "R2")
    assert instruction.guard == SassGuard("P", 1, True)
    assert instruction.definitions == (
        RegisterReference("R", 2, 1, 0),
        RegisterReference("P", 0, 1, 1),
    )
    assert instruction.uses == (RegisterReference("R", 79, 1, 2), RegisterReference("R", 2, 1, 4))
    assert instruction.encoding == 0x000FC8000791E002_00005C004F027A10
    assert instruction.target is None


def test_guards_targets_comments_and_hidden_pairs() -> None:
    _, _, spill, store, loop, never, end, _, _ = parse_sass(KERNEL)[0].instructions
    assert spill.operands == ("[R1+0x4]", "R2")
    assert store.uses[-1] == RegisterReference("UR", 8, 2, -1)
    assert (loop.guard, loop.target) == (SassGuard("UP", 0, True), ".L_x_16")
    assert (never.guard, never.never) == (None, True)
    assert (end.guard, end.never) == (None, False)


def test_several_sections() -> None:
    second = "".join(KERNEL.splitlines(keepends=True)[5:]).replace("gemm", "attention")
    assert [f.name for f in parse_sass(KERNEL + second)] == ["gemm", "attention"]


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        (".target\tsm_80", ".target\tsm_75", 1, f"expected .target {KNOWN}, not"),
        ("\t.target\tsm_80", "", 7, "expected .target before the sections"),
        ('\t.section\t.text.gemm,"ax",@progbits', "", 8, "expected a section"),
        (".text.gemm,", ".nv.info,", 7, "expected an instruction"),
        ('\t.sectioninfo\t@"SHI_REGISTERS=130"', "", 7, "SHI_REGISTERS"),
        ("/*0020*/", "/*0030*/", 20, "expected address 0x0020"),
        ("/*0010*/", "/*0018*/", 18, "expected address 0x0010"),
        ("/* 0x000fc8000791e002 */", "", 19, "expected the high 64 bits"),
        ("/* 0x00005c004f027a10 */", "", 18, "expected an instruction with its encoding"),
        ("SpillRefill", "Surprise", 20, "expected the comment"),
        ("0x1, R2", "0x1, R2.FOO", 18, "expected an operand"),
        ("0x1, R2", "0x1,, R2", 18, "expected an operand"),
        ("@!P1", "@!P7", 18, "expected an instruction"),
        ("`(.L_x_3)", "`(.L_x_4)", 32, "expected the label .L_x_4"),
        (".L_x_3:", ".L_x_16:", 31, "expected each label once"),
        (".L_x_17:\n", "", 12, "expected the label .L_x_17"),
        (".L_x_16:", "what is this", 22, "expected an instruction"),
        ("EXIT ;", "EXIT", 29, "expected an instruction"),
    ],
)
def test_damaged_text_is_an_error_at_its_line(old: str, new: str, line: int, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        parse_sass(KERNEL.replace(old, new, 1), "gemm.sass")
    assert (caught.value.source, caught.value.line) == ("gemm.sass", line)


def test_any_truncation_is_an_error() -> None:
    lines = KERNEL.splitlines(keepends=True)
    for count in range(len(lines)):
        with pytest.raises(InputError, match="expected"):
            parse_sass("".join(lines[:count]))


def test_instructions_after_the_end_are_an_error() -> None:
    tail = "        /*0090*/  NOP;  /* 0x0000000000007918 */\n  /* 0x000fc00000000000 */\n"
    with pytest.raises(InputError, match="no instruction after the end"):
        parse_sass(KERNEL + tail)


def test_a_rejection_names_opcode_address_and_function() -> None:
    with pytest.raises(RejectedKernel) as caught:
        parse_sass(KERNEL.replace("STG.E.128", "STG.E.256"))
    assert caught.value.kind == "unknown-opcode"
    for word in ("STG.E.256", "0x0030", "gemm"):
        assert word in caught.value.reason
