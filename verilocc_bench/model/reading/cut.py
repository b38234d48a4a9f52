"""Cuts out of the normalized text what the format `reading` shows a model.

A function becomes a plain dictionary: the budget's counts, the physical registers that the text
names, in its order, the class that the header gives first, and by line its distinct names in the
order of the text, with the class where the text has one; the blocks with their successors.
Nothing but the text is read.
"""

from __future__ import annotations

import re
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.reading.conversation import FILES, INDEX, is_mark

NAMED_AS = {**{file: file for file in FILES}, "R": "v", "UR": "a", "P": "s", "UP": "u"}
"""The conversation's names of files; those of NVIDIA stand as AMD's."""
_BLOCK = re.compile(r"bb(\d+)(?:\((.*)\))?(?:->(.*))?$")
_LINE = re.compile(r"(?:@!?(\S+) )?(?:(\S*)=)?(\S+)(?: ([^^]*))?(?: ?\^m\d+)?$")
_NAME = re.compile(r"%(\d+)(?::([^!&~]+))?")
_UNITS = re.compile(r"([A-Za-z]+)(?:(\d+)|\[(\d+):(\d+)\])$")


def cut(text: str) -> dict[str, Any]:
    """The dictionary of a text. Raises InputError if there is no word for some class or line."""
    head, _, body = text.partition("\nbb0")
    classes: dict[str, str] = {}
    budget: dict[str, int] = {}
    fixed: list[str] = []
    files: dict[str, str] = {}
    for line in head.splitlines():
        first, *words = line.split()
        if first == "registers":
            for word in words:
                file, _, count = word.partition(":")
                if file in NAMED_AS:
                    files[NAMED_AS[file]] = file
                    budget[NAMED_AS[file]] = int(count)
        elif first in ("reserved", "mask"):
            fixed += [unit for word in words for unit in units_of(word)]
        elif first == "class":
            bases = re.findall(r"[a-zA-Z]+", " ".join(words[2:]))
            of = sorted({NAMED_AS.get(base, base) for base in bases})
            classes[words[0]] = " ".join([words[1], *of])
            if not is_mark(classes[words[0]]):
                raise InputError(f"the format `reading` has no word for class {words[0]}")
    lines: list[list[Any]] = []
    blocks: list[list[Any]] = []
    for line in f"bb0{body}".splitlines():
        if block := _BLOCK.match(line):
            after = [int(number) for number in re.findall(r"\d+", block[3] or "")]
            blocks.append([len(lines), int(block[1]), after])
            fixed += [unit for word in (block[2] or "").split(",") for unit in units_of(word)]
            continue
        parts = _LINE.match(line)
        if parts is None:
            raise InputError(f"the format `reading` cannot cut the line {line!r}")
        names: dict[int, Any] = {}
        for operand in ",".join(filter(None, (parts[1], parts[2], parts[4]))).split(","):
            fixed += units_of(operand)
            if name := _NAME.search(operand):
                number = int(name[1])
                names.setdefault(number, [number, _class(name[2], classes)] if name[2] else number)
        lines.append(list(names.values()))
    # One that leads nowhere goes to the end: each text begins with the line of a block.
    blocks[0][2] = blocks[0][2] or [1 + max(block[1] for block in blocks)]
    return {
        "budget": budget,
        "fixed": [unit for unit in fixed if unit in INDEX],
        "default": next(iter(classes.values())),
        "lines": lines,
        "blocks": blocks,
        "registers": files,
    }


def _class(spelled: str, classes: dict[str, str]) -> str:
    """The class that stands before some lanes; its name may have dots, as theirs."""
    found = [name for name in classes if f"{spelled}.".startswith(f"{name}.")]
    return classes[max(found, key=len)]


def units_of(word: str) -> list[str]:
    """The physical registers that a word of the text names, one by one."""
    units = _UNITS.match(word.strip("+!&@").split("~")[0])
    if units is None or units[1] not in NAMED_AS:
        return []
    first, last = (int(units[2]),) * 2 if units[2] else (int(units[3]), int(units[4]))
    return [f"{NAMED_AS[units[1]]}{unit}" for unit in range(first, last + 1)]
