"""The words of the prompt format `text-notes`: one token each.

`C_v3` is a mention of a virtual register of three VGPRs, `X_v3` its first in the text, `Y_v3`
a place where some of its lanes are given back. `H_v4` begins a list of free blocks of four
VGPRs, `U_v4` asks for its new head, `P_v4` looks into it, and `F_v4` puts a block on it.
`+2` is a distance from the register that follows.
"""

from __future__ import annotations

from functools import cache

from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.prompts.notes.words import (
    CROSSED,
    DRY,
    FILES_OF_KIND,
    KNOWN,
    NAMES,
    NEW,
    PAD,
    REGISTERS,
    SAY,
    SHAPES,
    WINDOW,
    shape_of,
)

END, MORE = "-", "+"
"""What stands after the last block of a list: there is none, or there are more."""

SIZES: dict[str, tuple[int, ...]] = {
    "v": (1, 2, 4, 8, 16),
    "a": (1, 2, 4, 8, 16),
    "s": (1, 2, 4, 8, 16),
    "R": (1, 2, 4),
    "UR": (1, 2, 4),
    "P": (1,),
    "UP": (1,),
}
"""The sizes of free blocks, by file. A block begins at a multiple of its size."""

WIDEST = 16


@cache
def text_vocabulary() -> tuple[str, ...]:
    """All words, in the order of their tokens."""
    words = [PAD, WINDOW, DRY, SAY, END, MORE, KNOWN, NEW, CROSSED, "C", "X"]
    words += [
        f"{role}_{kind}{width}"
        for role in "CXY"
        for kind, widths in SHAPES.items()
        for width in widths
        if width <= WIDEST
    ]
    words += [f"{role}_{file}{k}" for role in "HUPF" for file, ks in SIZES.items() for k in ks]
    words += [f"+{distance}" for distance in range(1, WIDEST)]
    words += NAMES
    words += [f"{file}{number}" for file, count in REGISTERS.items() for number in range(count)]
    return tuple(words)


def text_shape_of(register_class: RegisterClass) -> str:
    """How the notes spell a class. Raises InputError for one that the words cannot speak of."""
    shape = shape_of(register_class)
    if register_class.width > WIDEST:
        raise InputError(
            f"the prompt format text-notes has no word for class {register_class.name}"
        )
    return shape


def lists_of(shape: str) -> list[tuple[str, int]]:
    """(file, size) of the lists where one of this shape may take a block, as they are asked."""
    kind = shape.rstrip("0123456789")
    width = int(shape[len(kind) :])
    files = FILES_OF_KIND.get(kind, (kind,))
    return [(file, size) for file in files for size in SIZES[file] if size >= width]
