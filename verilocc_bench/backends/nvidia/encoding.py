"""The bit field of each register that an instruction refers to.

The opcode of an instruction, the low 12 bits of its word and its printed operands
select its line of the table (encoding_table). The line counts only if every field
holds exactly the printed number, and PT for every omitted predicate. So a wrong
line leads to a RejectedKernel, not to a wrong patch. `proof` still proves
afterwards that the right bits were patched.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from verilocc_bench.backends.nvidia.encoding_table import (
    ENCODINGS,
    NO_THIRD_SLOT,
    REUSE,
    SECOND_SLOT,
    THIRD_SLOT_AT_32,
)
from verilocc_bench.backends.nvidia.flow import opcode_stem
from verilocc_bench.backends.nvidia.operands import SassOperand, parse_operand
from verilocc_bench.backends.nvidia.records import RegisterReference, SassInstruction
from verilocc_bench.backends.nvidia.webs import GUARD
from verilocc_bench.errors import RejectedKernel

REUSE_BITS = range(122, 126)
"""One bit for each operand slot; no known instruction uses the last."""

_OPCODE_BITS = 0xFFF
_FORM_BITS = 0xE00
_WIDTHS = {"R": 8, "UR": 6, "P": 3, "UP": 3}
_GUARD_BIT = 12
_PREDICATE_BITS = frozenset({68, 77, 81, 84, 87})
_REGISTER_KINDS = "RrUuJV"
_PREDICATE_KINDS = "PpQq"
_ELEMENT = re.compile(
    r"(?:-|(?P<inverted>~)?(?P<predicate>p)?(?P<bit>\d+)"
    r"|\[(?P<general>\d+)?(?:\+(?P<uniform>\d+))?\])(?P<optional>\?)?"
)
_REUSE = frozenset(REUSE.split())


@dataclass(frozen=True, slots=True)
class BitField:
    """`width` bits of the word from bit `start` on; `inverted` ones hold the complement."""

    start: int
    width: int
    inverted: bool = False

    @property
    def mask(self) -> int:
        """The field's bits, in the word."""
        return ((1 << self.width) - 1) << self.start

    def read(self, word: int) -> int:
        """The value of the field."""
        return ((word ^ self._complement) & self.mask) >> self.start

    def write(self, word: int, value: int) -> int:
        """The word with `value` in the field. The value must fit."""
        assert 0 <= value < 1 << self.width
        return word & ~self.mask | value << self.start ^ self._complement

    @property
    def _complement(self) -> int:
        return self.mask if self.inverted else 0


@dataclass(frozen=True, slots=True)
class _Element:
    """The places of the registers of one printed operand of these kinds.

    `bit` is the place of a register or a predicate; `general` and `uniform` are the
    places of the R and the UR of an address.
    """

    kind: str
    bit: int | None = None
    general: int | None = None
    uniform: int | None = None
    optional: bool = False
    inverted: bool = False


_Alignment = tuple[tuple[_Element, ...], tuple[BitField, ...]]
"""The element of each printed operand, and the fields of the omitted predicates."""


def register_fields(instruction: SassInstruction) -> Mapping[int, BitField]:
    """The field of each reference that is not fixed, by its number (see webs.ReferenceKey).

    Raises RejectedKernel (`unknown-encoding`) for an instruction that the table
    does not cover.
    """
    elements = _elements(instruction)
    operands = [parse_operand(text) for text in instruction.operands]
    fields: dict[int, BitField] = {}
    if instruction.guard is not None:
        fields[GUARD] = BitField(_GUARD_BIT, 3)
        if fields[GUARD].read(instruction.encoding) != instruction.guard.index:
            raise _uncovered(instruction)
    for number, reference in enumerate((*instruction.definitions, *instruction.uses)):
        if reference.fixed:
            continue
        bit = _bit(reference, elements, operands)
        if bit is None:
            raise _uncovered(instruction)
        inverted = reference.operand >= 0 and elements[reference.operand].inverted
        field = BitField(bit, _WIDTHS[reference.file], inverted)
        if field.read(instruction.encoding) != reference.first:
            raise _uncovered(instruction)
        fields[number] = field
    return fields


def reuse_fields(instruction: SassInstruction) -> Mapping[int, BitField]:
    """The field of each general register that is read through an operand slot, by slot.

    Only operations that can keep their operands have slots.
    """
    stem = opcode_stem(instruction.opcode)
    if stem not in _REUSE:
        return {}
    code = instruction.encoding & _OPCODE_BITS
    fields: dict[int, BitField] = {}
    count = len(instruction.definitions)
    for number, field in register_fields(instruction).items():
        if number >= count and field.width == _WIDTHS["R"]:
            slot = _slot(code, field.start)
            if slot is not None and not (slot == 2 and stem in NO_THIRD_SLOT):
                fields[slot] = field
    return fields


def reuse_mask(slot: int) -> int:
    """The bit of the word that marks the operand of a slot as kept."""
    return 1 << REUSE_BITS[slot]


def _slot(code: int, bit: int) -> int | None:
    if bit == 64:
        return 1 if code & _FORM_BITS in SECOND_SLOT else 2
    if bit == 32:
        return 2 if code in THIRD_SLOT_AT_32 else 1
    return 0 if bit == 24 else None


def _uncovered(instruction: SassInstruction) -> RejectedKernel:
    text = " ".join((instruction.opcode, ", ".join(instruction.operands))).strip()
    code = f"{instruction.encoding & _OPCODE_BITS:#05x}"
    return RejectedKernel(
        "unknown-encoding",
        f"address {instruction.address:#06x}: {text} ({code}) is not in the table of encodings",
    )


def _bit(
    reference: RegisterReference, elements: tuple[_Element, ...], operands: list[SassOperand]
) -> int | None:
    """The first bit of the field of a reference."""
    if reference.operand < 0:
        # The hidden pair stands at the place of the address's uniform register.
        bits = [element.uniform for element in elements if element.uniform is not None]
        return bits[0] if len(bits) == 1 else None
    element = elements[reference.operand]
    if operands[reference.operand].address:
        return element.general if reference.file == "R" else element.uniform
    return element.bit


def _elements(instruction: SassInstruction) -> tuple[_Element, ...]:
    """The only alignment of the table's lines with the operands that agrees with the word."""
    operands = tuple(parse_operand(text) for text in instruction.operands)
    kinds = "".join(operand.kind for operand in operands)
    word = instruction.encoding
    found: set[tuple[_Element, ...]] = set()
    for elements, absent in _alignments(
        instruction.opcode, instruction.architecture, word & _OPCODE_BITS, kinds
    ):
        if all(each.read(word) == 7 for each in absent) and all(
            _agrees(element, operand, word)
            for element, operand in zip(elements, operands, strict=True)
        ):
            found.add(elements)
    if len(found) != 1:
        raise _uncovered(instruction)
    return found.pop()


def _agrees(element: _Element, operand: SassOperand, word: int) -> bool:
    """True if the word holds the registers of an operand, or their constants, in its fields."""
    if operand.address:
        return all(
            bit is not None and BitField(bit, _WIDTHS[register.file]).read(word) == register.index
            for register in operand.address
            for bit in [element.general if register.file == "R" else element.uniform]
        )
    if element.bit is None:
        return operand.index is None
    field = BitField(element.bit, _WIDTHS[operand.file], element.inverted)
    constant = (1 << field.width) - 1
    return field.read(word) == (constant if operand.index is None else operand.index)


@lru_cache(maxsize=1 << 14)
def _alignments(opcode: str, architecture: str, code: int, kinds: str) -> tuple[_Alignment, ...]:
    modifiers = {*opcode.split(".")[1:], architecture}
    lines = _lines().get((opcode_stem(opcode), code), ())
    special = [elements for modifier, elements in lines if modifier in modifiers]
    plain = [elements for modifier, elements in lines if not modifier]
    return tuple(
        alignment for elements in special or plain for alignment in _align(elements, kinds)
    )


def _align(elements: tuple[_Element, ...], kinds: str) -> Iterator[_Alignment]:
    """The ways to omit optional elements so that each operand has one of its kind."""
    if not elements:
        if not kinds:
            yield (), ()
        return
    first, rest = elements[0], elements[1:]
    if kinds and kinds[0] in first.kind:
        for chosen, absent in _align(rest, kinds[1:]):
            yield (first, *chosen), absent
    if first.optional:
        field = () if first.bit is None else (BitField(first.bit, _WIDTHS["P"], first.inverted),)
        for chosen, absent in _align(rest, kinds):
            yield chosen, (*field, *absent)


@cache
def _lines() -> Mapping[tuple[str, int], list[tuple[str, tuple[_Element, ...]]]]:
    """(modifier, elements) of each line of the table, by the opcode's stem and the word's code."""
    lines: dict[tuple[str, int], list[tuple[str, tuple[_Element, ...]]]] = defaultdict(list)
    for line in ENCODINGS.strip().splitlines():
        if not line:
            continue
        head, _, tail = line.partition(":")
        elements = tuple(_element(word) for word in tail.split())
        for opcode, *codes in map(str.split, head.split(",")):
            stem, _, modifier = opcode.partition("*")
            for code in codes:
                lines[stem, int(code, 16)].append((modifier, elements))
    return dict(lines)


def _element(text: str) -> _Element:
    match = _ELEMENT.fullmatch(text)
    assert match is not None, text
    optional, inverted = (match[name] is not None for name in ("optional", "inverted"))
    bit, general, uniform = (
        None if match[name] is None else int(match[name]) for name in ("bit", "general", "uniform")
    )
    if text.startswith("["):
        kind = "ACG"
    elif bit is None:
        kind = "ICSBKLMA"
    elif match["predicate"] is not None or bit in _PREDICATE_BITS:
        kind = _PREDICATE_KINDS
    else:
        kind = _REGISTER_KINDS
    return _Element(kind, bit, general, uniform, optional, inverted)
