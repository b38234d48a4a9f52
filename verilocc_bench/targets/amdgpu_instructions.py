"""The opcodes of machine IR that gfx90a and gfx942 have before allocation, with their operands.

`amdgpu_instructions.json` lists the opcodes of LLVM 22's machine IR, the targets that
have them, the assembler's names of their encodings, and the register classes of their
operands. Opcodes without an encoding are those that LLVM expands after allocation.
`make register-classes` generates it from LLVM's own tables, and the tests compare it
with them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_OPERAND = re.compile(r"(\*|-|\w+)(&?)(?:=(\d+))?")
_ENTRY = re.compile(r"(\w+)(?:@(\w+))?(?::(.+))?")
_BOTH = ("gfx90a", "gfx942")


@dataclass(frozen=True, slots=True)
class OperandForm:
    """One operand; `class_name` is LLVM's name in lower case.

    `class_name` is None where no register can stand, and `*` where every one can.
    """

    class_name: str | None
    early_clobber: bool
    tied_to: int | None


@dataclass(frozen=True, slots=True)
class InstructionForm:
    """The operands of an opcode of machine IR; the first `definitions` of them are written.

    Implicit registers have LLVM's names in lower case, such as `exec`. Further explicit
    operands may follow where `takes_more` is true. Of the sources on the constant bus,
    `constants` are always there.
    """

    definitions: int
    operands: tuple[OperandForm, ...]
    implicit_definitions: tuple[str, ...]
    implicit_uses: tuple[str, ...]
    may_load: bool
    may_store: bool
    takes_more: bool
    reads_constant_bus: bool
    constants: int

    @property
    def early_clobbers(self) -> tuple[int, ...]:
        """The definitions that must not share a register with a use, numbered from 0."""
        return tuple(place for place, each in enumerate(self.operands) if each.early_clobber)

    @property
    def ties(self) -> tuple[tuple[int, int], ...]:
        """The tied (use, definition) pairs."""
        pairs = [(place, each.tied_to) for place, each in enumerate(self.operands)]
        return tuple((use, definition) for use, definition in pairs if definition is not None)


@dataclass(frozen=True, slots=True)
class EncodedOpcode:
    """An opcode of machine IR that has a given encoding."""

    name: str
    form: InstructionForm


@dataclass(frozen=True, slots=True)
class _Entry:
    targets: tuple[str, ...]
    encodings: tuple[str, ...]
    form: str


@cache
def _table() -> dict[str, _Entry]:
    """The entry of each opcode."""
    text = files("verilocc_bench.targets").joinpath("amdgpu_instructions.json").read_text()
    groups: dict[str, str] = json.loads(text)
    table: dict[str, _Entry] = {}
    for form, entries in groups.items():
        for word in entries.split():
            match = _ENTRY.fullmatch(word)
            assert match is not None, word
            opcode, only, endings = match.groups()
            encodings = tuple(
                ending[1:] if ending.startswith("!") else opcode + ending
                for ending in (endings.split(",") if endings else ())
            )
            table[opcode] = _Entry((only,) if only else _BOTH, encodings, form)
    return table


@cache
def _opcodes_by_encoding() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for opcode, entry in _table().items():
        for encoding in entry.encodings:
            found[encoding] = (*found.get(encoding, ()), opcode)
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
    return InstructionForm(
        definitions=int(count),
        operands=tuple(operands),
        implicit_definitions=tuple(defined.split()),
        implicit_uses=tuple(used.split()),
        may_load="L" in marks,
        may_store="S" in marks,
        takes_more="M" in marks,
        reads_constant_bus="B" in marks,
        constants=int("K" in marks),
    )


def targets_with(opcode: str) -> tuple[str, ...]:
    """The targets that have an opcode of machine IR before allocation, by name."""
    entry = _table().get(opcode)
    return () if entry is None else entry.targets


@cache
def instruction_form(opcode: str) -> InstructionForm | None:
    """The operands of an opcode, the same on all targets; None for an unknown opcode."""
    entry = _table().get(opcode)
    return None if entry is None else _form(entry.form)


@cache
def early_clobbers(opcode: str) -> tuple[int, ...]:
    """The early clobbers among an opcode's definitions; none for an unknown opcode."""
    form = instruction_form(opcode)
    return () if form is None else form.early_clobbers


@cache
def opcodes_encoded_as(encoding: str) -> tuple[EncodedOpcode, ...]:
    """The opcodes of machine IR that are encoded as `encoding`, such as `V_ADD_U32_e64_gfx9`.

    An encoding has several if one of them ties operands that another one leaves free.
    Empty for an unknown encoding.
    """
    found = _opcodes_by_encoding().get(encoding, ())
    return tuple(EncodedOpcode(name, _form(_table()[name].form)) for name in found)
