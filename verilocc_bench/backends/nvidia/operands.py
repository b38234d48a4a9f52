"""Reads the printed operands of SASS: registers, predicates, addresses, numbers.

Source: CUDA Binary Utilities, "nvdisasm"; the forms are those that nvdisasm 13
prints for sm_80 and sm_90. Any other form is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from verilocc_bench.errors import InputError


class OperandKind(StrEnum):
    """The kinds of operands, with one letter each, so a pattern can match a list of operands.

    A register is `plain` without a sign, an absolute value or a part (`-R4`,
    `|R4|`, `R4.H1_H1`). Only a plain register can be defined.
    """

    REGISTER = "R"
    REGISTER_MODIFIED = "r"
    UNIFORM = "U"
    UNIFORM_MODIFIED = "u"
    PREDICATE = "P"
    PREDICATE_NEGATED = "p"
    UNIFORM_PREDICATE = "Q"
    UNIFORM_PREDICATE_NEGATED = "q"
    PREDICATE_FILE = "M"
    IMMEDIATE = "I"
    CONSTANT = "C"
    ADDRESS = "A"
    SPECIAL = "S"
    BARRIER = "B"
    SCOREBOARD = "K"
    LABEL = "L"
    REGISTER_AND_LABEL = "J"
    UNIFORM_AND_LABEL = "V"
    MATRIX_DESCRIPTOR = "G"


@dataclass(frozen=True, slots=True)
class AddressRegister:
    """A register of an address; `count` is None if the operation decides its width."""

    file: str
    index: int
    count: int | None


@dataclass(frozen=True, slots=True)
class SassOperand:
    """One operand.

    `file` and `index` name the register of a register operand; `index` is
    None for the constants RZ, URZ, PT and UPT. `address` are the registers of
    an address or of a constant's index, after a printed descriptor. `label` is the
    target of a branch. `value` is the number of an integer immediate.
    """

    kind: OperandKind
    file: str = ""
    index: int | None = None
    address: tuple[AddressRegister, ...] = ()
    label: str | None = None
    value: int | None = None


_REGISTER = re.compile(
    r"(-?\|?|~)(U?R)(\d{1,3}|Z)((?:\.(?:H0_H0|H1_H1|H0|H1|B[0-3]|ROW|COL|24))?)(\|?)"
    r"((?:\.(?:H0_H0|H1_H1))?)"
)
_PREDICATE = re.compile(r"(!?)(U?P)([0-6]|T)")
_INTEGER = re.compile(r"-?0x[0-9a-f]+|-?\d+")
_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[+-](?:INF|QNAN|SNAN)")
_CONSTANT = re.compile(
    r"(-?\|?|~)c\[0x[0-9a-f]+\](\[[^\[\]]+\])(?:\.(?:H0_H0|H1_H1|B[0-3]|H0|H1))?(\|?)"
)
# What the caches are to do, with the address that it is for, or behind a copy's operands.
_DESCRIPTOR = re.compile(r"desc\[UR(\d{1,2})\](\[[^\[\]]+\])?")
# The matrix in shared memory that a product of a warp group reads, by four uniform registers.
_MATRIX_DESCRIPTOR = re.compile(r"gdesc\[UR(\d{1,2})\](?:\.(?:tnsp|neg)[AB]+)*")
_ADDRESS_TERM = re.compile(r"(U?R)(\d{1,3}|Z)(\.64|\.U32|\.X4|\.X8|\.X16)?")
_OFFSET = re.compile(r"-?0x[0-9a-f]+")
_SPECIAL = re.compile(r"SRZ|SR_[A-Za-z0-9_]+(?:\.[XYZ])?")
_LABEL = re.compile(r"`\(([^()`]+)\)")
_REGISTER_AND_LABEL = re.compile(r"(U?R)(\d{1,3}) (?:`\(([^()`]+)\)|-?0x[0-9a-f]+)")
# The low or high half of a function's or a label's address, filled in by the linker.
_RELOCATION = re.compile(r"32@(?:lo|hi)\(\(?[^()]+\)?\)")
_LIMITS = {"R": 255, "UR": 63}  # the encodings of RZ and URZ


@lru_cache(maxsize=1 << 16)
def parse_operand(text: str) -> SassOperand:
    """The operand of a text without `.reuse`. Raises InputError without a place if unknown."""
    if (match := _REGISTER.fullmatch(text)) is not None:
        return _register(match, text)
    if (match := _PREDICATE.fullmatch(text)) is not None:
        return _predicate(match)
    if _INTEGER.fullmatch(text):
        return SassOperand(OperandKind.IMMEDIATE, value=int(text, 0))
    if _FLOAT.fullmatch(text) or _RELOCATION.fullmatch(text):
        return SassOperand(OperandKind.IMMEDIATE)
    if (match := _CONSTANT.fullmatch(text)) is not None:
        if ("|" in match[1]) != bool(match[3]):
            raise _unknown(text)
        return SassOperand(OperandKind.CONSTANT, address=_address(match[2], text))
    if text.startswith("["):
        return SassOperand(OperandKind.ADDRESS, address=_address(text, text))
    if (match := _DESCRIPTOR.fullmatch(text)) is not None:
        pair = AddressRegister("UR", _index("UR", match[1], text), 2)
        rest = _address(match[2], text) if match[2] else ()
        return SassOperand(OperandKind.ADDRESS, address=(pair, *rest))
    if (match := _MATRIX_DESCRIPTOR.fullmatch(text)) is not None:
        four = AddressRegister("UR", _index("UR", match[1], text), 4)
        return SassOperand(OperandKind.MATRIX_DESCRIPTOR, address=(four,))
    return _other(text)


def _unknown(text: str) -> InputError:
    return InputError(f"expected an operand of SASS, not {text[:60]!r}")


def _register(match: re.Match[str], text: str) -> SassOperand:
    sign, file, number, part, closing, tail = match.groups()
    if ("|" in sign) != bool(closing) or (part and tail) or (tail and not closing):
        raise _unknown(text)
    index = None if number == "Z" else _index(file, number, text)
    plain = not (sign or part)
    if file == "R":
        kind = OperandKind.REGISTER if plain else OperandKind.REGISTER_MODIFIED
    else:
        kind = OperandKind.UNIFORM if plain else OperandKind.UNIFORM_MODIFIED
    return SassOperand(kind, file, index)


def _index(file: str, number: str, text: str) -> int:
    index = int(number)
    if index >= _LIMITS[file]:
        raise InputError(f"expected a register below {file}{_LIMITS[file]}, not {text[:60]!r}")
    return index


def _predicate(match: re.Match[str]) -> SassOperand:
    negation, file, number = match.groups()
    index = None if number == "T" else int(number)
    if file == "P":
        kind = OperandKind.PREDICATE_NEGATED if negation else OperandKind.PREDICATE
    elif negation:
        kind = OperandKind.UNIFORM_PREDICATE_NEGATED
    else:
        kind = OperandKind.UNIFORM_PREDICATE
    return SassOperand(kind, file, index)


def _address(bracketed: str, text: str) -> tuple[AddressRegister, ...]:
    """The registers between the brackets: at most one R, then one UR, then an offset."""
    if not bracketed.endswith("]"):
        raise _unknown(text)
    registers: list[AddressRegister] = []
    seen: list[str] = []
    for term in bracketed[1:-1].split("+"):
        match = _ADDRESS_TERM.fullmatch(term)
        if match is None and not _OFFSET.fullmatch(term):
            raise _unknown(text)
        seen.append("offset" if match is None else match[1])
        if match is None or match[2] == "Z":
            continue
        count = None if match[3] is None else 2 if match[3] == ".64" else 1
        if match[1] == "UR" and count is not None:
            raise _unknown(text)
        registers.append(AddressRegister(match[1], _index(match[1], match[2], text), count))
    if seen != [part for part in ("R", "UR", "offset") if part in seen]:
        raise _unknown(text)
    return tuple(registers)


def _other(text: str) -> SassOperand:
    if (match := _LABEL.fullmatch(text)) is not None:
        return SassOperand(OperandKind.LABEL, label=match[1])
    if _SPECIAL.fullmatch(text):
        return SassOperand(OperandKind.SPECIAL)
    if re.fullmatch(r"B\d{1,2}", text):
        return SassOperand(OperandKind.BARRIER)
    if re.fullmatch(r"gsb0|SB[0-5]|\{[0-5](?:,[0-5])*\}", text):
        return SassOperand(OperandKind.SCOREBOARD)
    if text == "PR":
        return SassOperand(OperandKind.PREDICATE_FILE, "P")
    if (match := _REGISTER_AND_LABEL.fullmatch(text)) is not None:
        general = match[1] == "R"
        kind = OperandKind.REGISTER_AND_LABEL if general else OperandKind.UNIFORM_AND_LABEL
        return SassOperand(kind, match[1], _index(match[1], match[2], text), label=match[3])
    raise _unknown(text)
