"""The line of a register class in the header of the normalized text, printed and parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from verilocc_bench.errors import InputError
from verilocc_bench.ir.registers import BaseRange, RegisterClass, RegisterFile

MAXIMUM_WIDTH = 128
"""The accumulator of a product of a warp group with 256 columns has as many registers."""

_RANGE = re.compile(r"([A-Za-z]+)(?:\[(\d{1,4})-(\d{1,4})\])?(?:/(\d{1,3}))?", re.ASCII)
_WIDTH = re.compile(r"[1-9]\d{0,2}", re.ASCII)


def format_class(register_class: RegisterClass, files: dict[str, RegisterFile]) -> str:
    """A class in the form of its header line: `V2 2 v/2`, `V.2 1 v[0-127]`."""
    parts = [register_class.name, str(register_class.width)]
    for legal in register_class.ranges:
        text = legal.file
        room = files[legal.file].count - register_class.width
        if not (legal.first == 0 and room >= 0 and legal.last == room - room % legal.step):
            text += f"[{legal.first}-{legal.last}]"
        if legal.step != 1:
            text += f"/{legal.step}"
        parts.append(text)
    return " ".join(parts)


def parse_class(text: str, files: Mapping[str, RegisterFile]) -> RegisterClass:
    """The class of a header line such as `V2 2 v/2`. It may have any name.

    Raises InputError for any other text, for bases beyond the files, and for bases of one
    file that are not in order, each once.
    """
    parts = text.split(" ")
    if len(parts) < 2 or not _WIDTH.fullmatch(parts[1]) or int(parts[1]) > MAXIMUM_WIDTH:
        raise InputError(f"expected a class such as 'V2 2 v/2', not {text[:40]!r}")
    name, width = parts[0], int(parts[1])
    ranges: list[BaseRange] = []
    ends: dict[str, int] = {}
    for part in parts[2:]:
        match = _RANGE.fullmatch(part)
        if match is None or match[1] not in files or match[4] == "0":
            raise InputError(f"expected bases such as v/2 or v[0-127], not {part[:40]!r}")
        step = int(match[4] or 1)
        room = files[match[1]].count - width
        first = int(match[2] or 0)
        last = int(match[3]) if match[3] else room - room % step
        if first > last or (last - first) % step:
            raise InputError(f"expected bases from the first to the last, not {part[:40]!r}")
        if first <= ends.get(match[1], -1):
            raise InputError(f"expected the bases of {match[1]} in order, each once: {text[:40]!r}")
        ends[match[1]] = last
        ranges.append(BaseRange(match[1], first, last, step))
    return RegisterClass(name, width, tuple(ranges))
