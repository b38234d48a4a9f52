"""Operands in the disassembler's notation: registers, constants, and what is done to them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from verilocc_bench.machine.fields import (
    ABSOLUTE,
    ACCUMULATORS,
    EXEC,
    FLAT_SCRATCH,
    M0,
    NEGATE,
    SCC,
    SIGN_EXTEND,
    VCC,
    VECTOR,
)

_REGISTER = re.compile(r"(?P<file>[sva]|ttmp)(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])\Z")
_NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1), "src_scc": (SCC, 1),
    "flat_scratch": (FLAT_SCRATCH, 2), "flat_scratch_lo": (FLAT_SCRATCH, 1),
    "flat_scratch_hi": (FLAT_SCRATCH + 1, 1),
    "xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1),
}  # fmt: skip
_FLOATS = {
    "0.5": 0.5, "-0.5": -0.5, "1.0": 1.0, "-1.0": -1.0, "2.0": 2.0, "-2.0": -2.0, "4.0": 4.0,
    "-4.0": -4.0, "0.15915494": 0.15915494309189535, "0.15915494309189532": 0.15915494309189535,
    "0.1592": 0.15915494309189535,
}  # fmt: skip
_AROUND = (
    ("neg(", ")", NEGATE), ("|", "|", ABSOLUTE), ("abs(", ")", ABSOLUTE),
    ("sext(", ")", SIGN_EXTEND),
)  # fmt: skip
_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)\Z")
_FILES = {"s": 0, "v": VECTOR, "a": VECTOR + ACCUMULATORS, "ttmp": 108}
_SIZES = {"s": 102, "v": 256, "a": 256, "ttmp": 16}


class UnknownOperand(ValueError):
    """An operand in a notation that is not known here."""


@dataclass(frozen=True, slots=True)
class CodeOperand:
    """A register (its place and width), or a constant (`text` in the disassembler's words).

    `modifiers` are bits of fields.*_MODIFIERS.
    """

    place: int | None
    width: int
    text: str
    modifiers: int = 0

    @property
    def is_vector(self) -> bool:
        """True for VGPRs and AGPRs."""
        return self.place is not None and self.place >= VECTOR


def parse_operand(text: str) -> CodeOperand:
    """An operand. Raises UnknownOperand for a notation that is not known."""
    modifiers = 0
    inner = text
    if inner.startswith("-") and not _INTEGER.match(inner) and inner not in _FLOATS:
        modifiers, inner = NEGATE, inner[1:]
    for opening, closing, bit in _AROUND:
        if inner.startswith(opening) and inner.endswith(closing):
            modifiers |= bit
            inner = inner[len(opening) : -len(closing)]
    match = _REGISTER.match(inner)
    if match is not None:
        file = match["file"]
        first = int(match["one"] or match["first"])
        last = int(match["one"] or match["last"])
        if not first <= last < _SIZES[file]:
            raise UnknownOperand(text)
        return CodeOperand(_FILES[file] + first, last - first + 1, inner, modifiers)
    if inner in _NAMED:
        place, width = _NAMED[inner]
        return CodeOperand(place, width, inner, modifiers)
    if _INTEGER.match(inner) or inner in _FLOATS:
        return CodeOperand(None, 0, inner, modifiers)
    raise UnknownOperand(text)


def constant_bits(text: str, kind: str) -> int:
    """A constant as the instruction sees it; `kind` is b16, b32, b64 or f64.

    An inline number of floating point takes the operand's own format. A literal
    of 32 bits is the high half of an f64.
    """
    if text in _FLOATS:
        number = _FLOATS[text]
        if kind == "b16":
            return int.from_bytes(struct.pack("<e", number), "little")
        if kind == "b32":
            return int.from_bytes(struct.pack("<f", number), "little")
        return int.from_bytes(struct.pack("<d", number), "little")
    number_int = int(text, 0)
    is_inline = -16 <= number_int <= 64
    if kind == "f64" and not is_inline:
        return (number_int & 0xFFFF_FFFF) << 32 if number_int < 1 << 32 else number_int
    return number_int & (0xFFFF_FFFF if kind in {"b16", "b32"} else 0xFFFF_FFFF_FFFF_FFFF)
