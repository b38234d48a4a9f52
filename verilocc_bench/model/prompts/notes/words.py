"""The words of the prompt format `notes`: one token each.

A *block* is a run of free registers whose length is a power of two and whose
first register is a multiple of that length; it is named by its first register.
The notes keep one list of blocks for each file and length. Words that belong to
a list end in its name, such as `v4` for blocks of four VGPRs:

    L_v4   the list, at the head of a window
    U_v4   what is first in the list after a block was taken from it
    P_v4   a look into the list, because the shorter lists had nothing
    S_v4   a block that is left over of a longer one
    F_v4   a block that becomes free

`C_v3` is a mention of a virtual register of three VGPRs, `X_v3` its first in the
text, `H_v3` where it is written anew. `N7` is a name, drawn anew for each window. A
register that is lent, because what it is promised to holds nothing for a while, is called
`hv4` in place of v4, and has lists of its own; `C_hv3` is one that may borrow.
"""

from __future__ import annotations

from functools import cache

from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass

PAD, WINDOW, DRY, SAY = "<pad>", "W", "D", "SAY"
EMPTY, MORE, CLOSE = "-", "+", "."
KNOWN, NEW, CROSSED = "k", "n", "x"

NAMES = tuple(f"N{number}" for number in range(96))

BLOCK_LENGTHS: dict[str, tuple[int, ...]] = {
    "v": (1, 2, 4, 8, 16, 32),
    "a": (1, 2, 4, 8, 16, 32),
    "s": (1, 2, 4, 8, 16),
    "R": (1, 2, 4),
    "UR": (1, 2, 4),
    "P": (1,),
    "UP": (1,),
    "hv": (1, 2, 4, 8, 16, 32),
    "hs": (1, 2, 4, 8, 16),
    "hR": (1, 2, 4),
    "hP": (1,),
}
"""The lengths of the lists of each file, shortest first."""

_REGISTERS = {"v": 256, "a": 256, "s": 104, "R": 255, "UR": 63, "P": 7, "UP": 7}

LENT = {"v": "hv", "s": "hs", "R": "hR", "P": "hP"}
"""What the notes call the file of registers that are lent, of each that lends."""

OWN = {lent: file for file, lent in LENT.items()}

_SHAPES: dict[str, tuple[int, ...]] = {
    "v": (*range(1, 17), 32),
    "a": (*range(1, 17), 32),
    "av": (*range(1, 17), 32),
    "s": (*range(1, 13), 16),
    "R": (1, 2, 3, 4),
    "UR": (1, 2, 3, 4),
    "P": (1,),
    "UP": (1,),
    "hv": (*range(1, 17), 32),
    "hav": (*range(1, 17), 32),
    "hs": (*range(1, 13), 16),
    "hR": (1, 2, 3, 4),
    "hP": (1,),
}
"""The widths of the virtual registers that can be spoken of, by the files they may take."""

_FILES = {
    "av": ("v", "a"),
    "hv": ("hv", "v"),
    "hav": ("hv", "v", "a"),
    "hs": ("hs", "s"),
    "hR": ("hR", "R"),
    "hP": ("hP", "P"),
}

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


@cache
def vocabulary() -> tuple[str, ...]:
    """All words, in the order of their tokens."""
    words = [PAD, WINDOW, DRY, SAY, EMPTY, MORE, CLOSE, KNOWN, NEW, CROSSED, "C", "X"]
    words += [f"{role}_{kind}{w}" for role in "CXH" for kind, ws in _SHAPES.items() for w in ws]
    words += [f"{role}_{f}{n}" for role in "LUPSF" for f, ns in BLOCK_LENGTHS.items() for n in ns]
    words += NAMES
    words += [f"{file}{number}" for file, count in _REGISTERS.items() for number in range(count)]
    words += [f"{h}{number}" for file, h in LENT.items() for number in range(_REGISTERS[file])]
    return tuple(words)


def register_word(file: str, number: int) -> str:
    """The word of a register."""
    return f"{file}{number}"


def block_length(width: int) -> int:
    """The least power of two that holds `width` registers."""
    return 1 << (width - 1).bit_length()


def shape_of(register_class: RegisterClass, borrows: bool) -> str:
    """How the notes spell a class: the files that it may take, and its width.

    `borrows`: it may take registers that are lent, too. Raises InputError for a class
    that the words have no way to speak of.
    """
    kind = _KINDS.get(register_class.files)
    if kind is None or register_class.width not in _SHAPES[kind]:
        raise InputError(f"the prompt format notes has no word for class {register_class.name}")
    if borrows and f"h{kind}" in _SHAPES:
        kind = f"h{kind}"
    return f"{kind}{register_class.width}"


def _split_shape(shape: str) -> tuple[str, int]:
    kind = shape.rstrip("0123456789")
    return kind, int(shape[len(kind) :])


def width_of_shape(shape: str) -> int:
    """How many registers a virtual register of that shape is wide."""
    return _split_shape(shape)[1]


def files_of_shape(shape: str) -> tuple[str, ...]:
    """The files that it may take, in the order in which their lists are looked into."""
    kind = _split_shape(shape)[0]
    return _FILES.get(kind, (kind,))


@cache
def list_order(shape: str) -> tuple[tuple[str, int], ...]:
    """The lists that have room for a shape, in the order in which they are looked into."""
    least = block_length(width_of_shape(shape))
    return tuple((f, n) for f in files_of_shape(shape) for n in BLOCK_LENGTHS[f] if n >= least)


@cache
def natural_parts(first: int, end: int, longest: int) -> tuple[tuple[int, int], ...]:
    """The registers `first` to `end - 1` as blocks of at most that length: (first, length)."""
    parts = []
    while first < end:
        length = min(first & -first if first else longest, longest)
        while first + length > end:
            length //= 2
        parts.append((first, length))
        first += length
    return tuple(parts)
