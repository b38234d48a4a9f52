"""The AMDGPU instructions that gfx90a and gfx942 encode, with their operands.

`amdgpu_instructions.json` lists the opcodes of LLVM 22's machine IR, the assembler's
names of their encodings, and the register classes of their operands.
`make register-classes` generates it from LLVM's own tables, and the tests compare it
with them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_OPERAND = re.compile(r"(-|\w+)(&?)(?:=(\d+))?")


@dataclass(frozen=True, slots=True)
class OperandForm:
    """One operand; `class_name` is LLVM's name in lower case, None where no register can stand."""

    class_name: str | None
    early_clobber: bool
    tied_to: int | None


@dataclass(frozen=True, slots=True)
class InstructionForm:
    """The operands of an opcode of machine IR; the first `definitions` of them are written.

    Implicit registers have LLVM's names in lower case, such as `exec`.
    """

    definitions: int
    operands: tuple[OperandForm, ...]
    implicit_definitions: tuple[str, ...]
    implicit_uses: tuple[str, ...]
    may_load: bool
    may_store: bool


@dataclass(frozen=True, slots=True)
class EncodedOpcode:
    """An opcode of machine IR that has a given encoding."""

    name: str
    form: InstructionForm


@cache
def _table() -> dict[str, tuple[tuple[str, str], ...]]:
    """(opcode, form as text) of each encoding."""
    text = files("verilocc_bench.targets").joinpath("amdgpu_instructions.json").read_text()
    groups: dict[str, str] = json.loads(text)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for form, entries in groups.items():
        for entry in entries.split():
            opcode, _, endings = entry.partition(":")
            for ending in endings.split(","):
                name = ending[1:] if ending.startswith("!") else opcode + ending
                found[name] = (*found.get(name, ()), (opcode, form))
    return found


@cache
def _form(text: str) -> InstructionForm:
    first, defined, used, marks = text.split("|")
    count, *words = first.split(" ")
    operands = []
    for word in words:
        match = _OPERAND.fullmatch(word)
        assert match is not None, word
        class_name = None if match[1] == "-" else match[1].lower()
        tied_to = None if match[3] is None else int(match[3])
        operands.append(OperandForm(class_name, bool(match[2]), tied_to))
    implicit = tuple(defined.split()), tuple(used.split())
    return InstructionForm(int(count), tuple(operands), *implicit, "L" in marks, "S" in marks)


@cache
def opcodes_encoded_as(encoding: str) -> tuple[EncodedOpcode, ...]:
    """The opcodes of machine IR that are encoded as `encoding`, such as `V_ADD_U32_e64_gfx9`.

    An encoding has several if one of them ties operands that another one leaves free.
    Empty for an unknown encoding.
    """
    return tuple(EncodedOpcode(name, _form(form)) for name, form in _table().get(encoding, ()))
