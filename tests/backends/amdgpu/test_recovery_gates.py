"""What recovered code must pass, with a pretended llc: which code, which words, which kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from verilocc_bench.backends.amdgpu.recovery import gates
from verilocc_bench.backends.amdgpu.recovery.gates import (
    check_encoding,
    check_virtual_registers,
)
from verilocc_bench.backends.amdgpu.recovery.records import CodeBlock, RecoveredInstruction
from verilocc_bench.backends.amdgpu.recovery.recover import RecoveredCode
from verilocc_bench.backends.amdgpu.tools import LlcFailed
from verilocc_bench.errors import InputError, RejectedKernel

CHECK = ("-run-pass=none", "-verify-machineinstrs")
EMIT = ("-O3", "-start-after=branch-relaxation")


def instruction(
    address: int, text: str, opcode: str = "V", encoding: str = "", target: int | None = None
) -> RecoveredInstruction:
    word = (encoding or text).encode()
    form: Any = None
    return RecoveredInstruction(address, text, word, opcode, form, (), target, False, False)


OWN = [
    instruction(4, "v_add"),
    instruction(8, "v_mul"),
    instruction(16, "s_cbranch 2", "S_CBRANCH", target=8),
    instruction(20, "s_branch 1", "S_BRANCH", target=24),
    instruction(24, "s_endpgm"),
]
BLOCKS = (CodeBlock(tuple(OWN[:3]), ()), CodeBlock(tuple(OWN[3:]), ()))
RECOVERED = RecoveredCode("k", "gfx942", "virtual", (), BLOCKS, 4)
Call = tuple[str, str, str, tuple[str, ...]]


def pretend(
    monkeypatch: pytest.MonkeyPatch, made: list[RecoveredInstruction], fails: str = ""
) -> list[Call]:
    """Puts an llc in place that writes this code, or fails for one kind of output."""
    calls: list[Call] = []

    def run_llc(*call: Any) -> bytes:
        calls.append(call)
        if call[2] == fails:
            raise LlcFailed("the words of llc")
        return b"object"

    def write_assignment(*parts: object) -> object:
        assert parts == ("virtual", "machine", "normalized", "label")
        if fails == "write":
            raise InputError("the words of write_back", line=3)
        return SimpleNamespace(text="physical")

    def read_instructions(*code: object) -> list[RecoveredInstruction]:
        assert code == (b"code", "gfx942", 4)
        return made

    def section_of(*section: object) -> bytes:
        assert section == (b"object", ".text")
        return b"prelcode"

    for stand_in in (run_llc, write_assignment, read_instructions, section_of):
        monkeypatch.setattr(gates, stand_in.__name__, stand_in)
    return calls


def others() -> int:
    parts: Any = ("machine", "normalized", "label")
    return check_encoding(RECOVERED, *parts)


def test_what_llc_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pretend(monkeypatch, OWN)
    check_virtual_registers(RECOVERED)
    assert others() == 0
    assert calls == [
        ("virtual", "gfx942", "asm", CHECK),
        ("physical", "gfx942", "asm", CHECK),
        ("physical", "gfx942", "obj", EMIT),
    ]


@pytest.mark.parametrize("fails", ["write", "asm", "obj"])
def test_what_llc_refuses(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, OWN, fails)
    words = "the words of write_back" if fails == "write" else "the words of llc"
    with pytest.raises(RejectedKernel) as caught:
        others()
    assert (caught.value.kind, caught.value.reason) == ("llc-physical", words)
    if fails == "asm":
        with pytest.raises(RejectedKernel) as caught:
            check_virtual_registers(RECOVERED)
        assert (caught.value.kind, caught.value.reason) == ("llc-virtual", words)


def made(place: int, new: RecoveredInstruction) -> list[RecoveredInstruction]:
    return [*OWN[:place], new, *OWN[place + 1 :]]


LONGER = [
    instruction(4, "v_add", encoding="v_add_e64"),
    instruction(12, "v_mul", encoding="v_mul_e64"),
    instruction(20, "s_cbranch 3", "S_CBRANCH", target=12),
    instruction(24, "s_branch 1", "S_BRANCH", target=28),
    instruction(28, "s_endpgm"),
    instruction(32, "s_nop 0"),
]


@pytest.mark.parametrize(
    ("code", "count"),
    [
        # Code behind the last instruction is filling.
        ([*OWN, instruction(28, "s_nop 0")], 0),
        # Another encoding of a text moves what follows, and jumps with it.
        (LONGER, 2),
        # An address says nothing where the opcode is another: the text does.
        (made(2, instruction(16, "s_cbranch 2", "S_CBRANCH_LONG", "long", target=24)), 1),
        # How far a jump leads is written in its text and its bytes.
        (made(3, instruction(20, "s_branch 7", "S_BRANCH", target=24)), 0),
    ],
)
def test_other_encodings_are_counted(
    code: list[RecoveredInstruction], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, code)
    assert others() == count


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (OWN[:-1], "4 instructions for 5"),
        (made(1, instruction(8, "v_sub")), "v_mul, at 0x8: llc makes v_sub"),
        (made(4, instruction(24, "s_trap")), "s_endpgm, at 0x18: llc makes s_trap"),
        (made(3, instruction(20, "s_nop 1", "S_NOP")), "s_branch 1, at 0x14: llc makes s_nop 1"),
        (
            made(2, instruction(16, "s_cbranch 2", "S_CBRANCH", target=4)),
            "s_cbranch 2, at 0x10: leads elsewhere",
        ),
        (
            made(2, instruction(16, "s_cbranch 2", "S_CBRANCH", target=96)),
            "s_cbranch 2, at 0x10: leads elsewhere",
        ),
        (
            made(2, instruction(16, "s_cbranch 2", "S_CBRANCH")),
            "s_cbranch 2, at 0x10: leads elsewhere",
        ),
    ],
)
def test_other_code_is_refused(
    code: list[RecoveredInstruction], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, code)
    with pytest.raises(RejectedKernel) as caught:
        others()
    assert (caught.value.kind, caught.value.reason) == ("other-code", words)
