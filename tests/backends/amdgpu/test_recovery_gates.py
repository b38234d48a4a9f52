"""What recovered code must pass, with a pretended llc: which code, which words, which kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from verilocc_bench.backends.amdgpu.recovery import gates
from verilocc_bench.backends.amdgpu.recovery.gates import check_encoding, check_virtual_registers
from verilocc_bench.backends.amdgpu.recovery.records import CodeBlock, RecoveredInstruction
from verilocc_bench.backends.amdgpu.recovery.recover import RecoveredCode
from verilocc_bench.backends.amdgpu.tools import LlcFailed
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.machine.code_object import Descriptor

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
STATE = Descriptor(*range(23))  # type: ignore[arg-type]
RECOVERED = RecoveredCode("k", "gfx942", "virtual", (), BLOCKS, 4, STATE)
MADE = SimpleNamespace(kernel=lambda name: SimpleNamespace(name=name, descriptor=STATE))
Call = tuple[str, str, str, tuple[str, ...]]


def pretend(
    monkeypatch: pytest.MonkeyPatch, made: list[RecoveredInstruction], fails: str = ""
) -> list[Call]:
    """Puts an llc in place that writes this code, or fails for one kind of output."""
    calls: list[Call] = []

    def run_llc(*call: Any) -> bytes:
        calls.append(call)
        if call[2] == fails:
            raise LlcFailed("the words of a tool")
        return b"object"

    def write_assignment(*parts: object) -> object:
        assert parts == ("virtual", "machine", "normalized", "label")
        if fails == "write":
            raise InputError("the words of a tool", line=3)
        return SimpleNamespace(text="physical")

    stand_ins: dict[str, Any] = {
        "run_llc": run_llc,
        "write_assignment": write_assignment,
        "load_code_object": {(b"object",): MADE},
        "section_of": {(b"object", ".text"): b"prelcode"},
        "read_instructions": {(b"code", "gfx942", 4): made},
    }
    for name, each in stand_ins.items():
        answer = (lambda *key, known=each: known[key]) if isinstance(each, dict) else each
        monkeypatch.setattr(gates, name, answer)
    return calls


def others() -> int:
    parts: Any = ("machine", "normalized", "label")
    return check_encoding(RECOVERED, *parts)


def test_what_llc_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pretend(monkeypatch, OWN)
    check_virtual_registers(RECOVERED)
    assert others() == 0
    calls_of_both = [("physical", "gfx942", "asm", CHECK), ("physical", "gfx942", "obj", EMIT)]
    assert calls == [("virtual", "gfx942", "asm", CHECK), *calls_of_both]


@pytest.mark.parametrize("fails", ["write", "asm", "obj"])
def test_what_llc_refuses(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, OWN, fails)
    with pytest.raises(RejectedKernel) as caught:
        others()
    assert (caught.value.kind, caught.value.reason) == ("llc-physical", "the words of a tool")
    if fails == "asm":
        with pytest.raises(RejectedKernel) as caught:
            check_virtual_registers(RECOVERED)
        assert (caught.value.kind, caught.value.reason) == ("llc-virtual", "the words of a tool")


def made(place: int, *new: Any, **target: Any) -> list[RecoveredInstruction]:
    return [*OWN[:place], instruction(*new, **target), *OWN[place + 1 :]]


JUMP, SHORT = (16, "s_cbranch 2", "S_CBRANCH"), "s_cbranch 2, at 0x10: "
LONGER = [
    instruction(4, "v_add", encoding="v_add_e64"),
    instruction(12, "v_mul", encoding="v_mul_e64"),
    instruction(20, "s_cbranch 3", "S_CBRANCH", target=12),
    instruction(24, "s_branch 1", "S_BRANCH", target=28),
    instruction(28, "s_endpgm"),
]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        # Code behind the last instruction is filling.
        ([*OWN, instruction(28, "s_nop 0")], 0),
        # Another encoding of a text moves what follows, and jumps with it.
        (LONGER, 2),
        # Where the opcode is another, the text says where a jump leads.
        (made(2, 16, "s_cbranch 2", "S_CBRANCH_LONG", "long", target=24), 1),
        (made(3, 20, "s_branch 7", "S_BRANCH", target=24), 0),
        (OWN[:-1], "4 instructions for 5"),
        (made(1, 8, "v_sub"), "v_mul, at 0x8: llc makes v_sub"),
        (made(4, 24, "s_trap"), "s_endpgm, at 0x18: llc makes s_trap"),
        (made(3, 20, "s_nop 1", "S_NOP"), "s_branch 1, at 0x14: llc makes s_nop 1"),
        (made(2, *JUMP, target=4), f"{SHORT}leads elsewhere"),
        (made(2, *JUMP, target=96), f"{SHORT}leads elsewhere"),
        (made(2, *JUMP), f"{SHORT}leads elsewhere"),
    ],
)
def test_code_that_llc_makes(
    code: list[RecoveredInstruction], found: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other encodings are counted, other code is refused."""
    pretend(monkeypatch, code)
    if isinstance(found, int):
        assert others() == found
        return
    with pytest.raises(RejectedKernel) as caught:
        others()
    assert (caught.value.kind, caught.value.reason) == ("other-code", found)
