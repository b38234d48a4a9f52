"""Code and life ranges of a cubin from one run of nvdisasm, which takes long to begin.

Where nvdisasm prints encodings, too, the marks stand beside the second line of each instruction.
And it leaves out the NOPs at the end of a section: they come from the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECTION = re.compile(r"^(?=//-+ \.text\.(\S+) +-+$)", re.MULTILINE)
_RULE = re.compile(r"// \+-")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,8})\*/ .*(?=/\* 0x)")
_NOP = bytes.fromhex("1879000000000000 0000000000c00f00")
_NOP_LINES = "        /*{:04x}*/ NOP; /* 0x0000000000007918 */", "        /* 0x000fc00000000000 */"


def parted(text: str, code: Mapping[str, bytes]) -> tuple[str, str] | None:
    """What `nvdisasm -c -hex` and `nvdisasm -c -lrm narrow` print, out of what both print together.

    `code` has the sections that count by name. None where one lacks other instructions than NOPs.
    """
    head, *sections = _SECTION.split(text)
    listings, ranges = head.splitlines(), head.splitlines()
    for name, section in zip(sections[::2], sections[1::2], strict=True):
        found = _parted(section.splitlines(), code.get(name, b""))
        if found is None:
            return None
        listings += found[0]
        ranges += found[1]
    return "\n".join(listings), "\n".join(ranges)


def _parted(lines: list[str], code: bytes) -> tuple[list[str], list[str]] | None:
    listing: list[str] = []
    ranges: list[str] = []
    column = address = end = 0
    begun = ""  # an instruction whose second line has not come
    for line in lines:
        if not column and (rule := _RULE.search(line)):
            column = rule.start()
        words = line[:column].rstrip() if column else line
        if words or not column:
            listing.append(words)
        if begun:
            ranges.append(begun.ljust(column) + line[column:])
            begun, end = "", len(listing)
        elif instruction := _INSTRUCTION.match(words):
            if int(instruction[1], 16) != address:
                return None
            begun = instruction[0]
            address += len(_NOP)
        else:
            ranges.append(line)
    left_out = range(address, len(code), len(_NOP))
    if any(code[place : place + len(_NOP)] != _NOP for place in left_out):
        return None
    listing[end:end] = [each.format(place) for place in left_out for each in _NOP_LINES]
    return listing, ranges
