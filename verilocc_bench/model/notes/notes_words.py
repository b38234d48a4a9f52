"""The words of a model that keeps notes: one token each.

`N7` is a name, drawn anew for each window. `C_v3` is a mention of a virtual register of three
VGPRs, `X_v3` its first in the text, `Y_v3` a place where some of its lanes are given back. `H_v4`
begins a list of free blocks of four VGPRs, `U_v4` asks for its new head, `P_v4` looks into it, and
`F_v4` puts a block on it. `+2` is a distance from the register that follows.
"""

from __future__ import annotations

from functools import cache

from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass

PAD, WINDOW, DRY, SAY = "<pad>", "W", "D", "SAY"
KNOWN, NEW, CROSSED = "k", "n", "x"

END, MORE = "-", "+"
"""What stands after the last block of a list: there is none, or there are more."""

NAMES = tuple(f"N{number}" for number in range(96))

REGISTERS = {"v": 256, "a": 256, "s": 104, "R": 255, "UR": 63, "P": 7, "UP": 7}
"""The files of which words speak, and how many registers of each have a word."""

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

SHAPES: dict[str, tuple[int, ...]] = {
    "v": tuple(range(1, WIDEST + 1)),
    "a": tuple(range(1, WIDEST + 1)),
    "av": tuple(range(1, WIDEST + 1)),
    "s": (*range(1, 13), 16),
    "R": (1, 2, 3, 4),
    "UR": (1, 2, 3, 4),
    "P": (1,),
    "UP": (1,),
}
"""The widths of the virtual registers that can be spoken of, by the files they may take."""

_KINDS = {
    ("v",): "v",
    ("a",): "a",
    ("v", "a"): "av",
    ("s",): "s",
    ("s", "vcc"): "s",
    ("R",): "R",
    ("UR",): "UR",
    ("P",): "P",
    ("UP",): "UP",
}

FILES_OF_KIND = {"av": ("v", "a")}
"""The files of a kind of shape where they are not the one that is called so."""


@cache
def vocabulary() -> tuple[str, ...]:
    """All words, in the order of their tokens."""
    words = [PAD, WINDOW, DRY, SAY, END, MORE, KNOWN, NEW, CROSSED, "C", "X"]
    words += [
        f"{role}_{kind}{width}"
        for role in "CXY"
        for kind, widths in SHAPES.items()
        for width in widths
    ]
    words += [f"{role}_{file}{k}" for role in "HUPF" for file, ks in SIZES.items() for k in ks]
    words += [f"+{distance}" for distance in range(1, WIDEST)]
    words += NAMES
    words += [f"{file}{number}" for file, count in REGISTERS.items() for number in range(count)]
    return tuple(words)


@cache
def token_numbers() -> dict[str, int]:
    """The token of each word."""
    return {word: number for number, word in enumerate(vocabulary())}


def register_word(file: str, number: int) -> str:
    """The word of a register."""
    return f"{file}{number}"


def shape_of(register_class: RegisterClass) -> str:
    """How the notes spell a class: the files that it may take, and its width.

    Raises InputError for a class that the words have no way to speak of.
    """
    kind = _KINDS.get(register_class.files)
    if kind is None or register_class.width not in SHAPES[kind]:
        raise InputError(
            f"the prompt format text-notes has no word for class {register_class.name}"
        )
    return f"{kind}{register_class.width}"


def lists_of(shape: str) -> list[tuple[str, int]]:
    """(file, size) of the lists where one of this shape may take a block, as they are asked."""
    kind = shape.rstrip("0123456789")
    width = int(shape[len(kind) :])
    files = FILES_OF_KIND.get(kind, (kind,))
    return [(file, size) for file in files for size in SIZES[file] if size >= width]
