"""Words of notes: one token each. `N7` is a name, drawn anew for each window."""

from __future__ import annotations

from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass

PAD, WINDOW, DRY, SAY = "<pad>", "W", "D", "SAY"
KNOWN, NEW, CROSSED = "k", "n", "x"

NAMES = tuple(f"N{number}" for number in range(96))

REGISTERS = {"v": 256, "a": 256, "s": 104, "R": 255, "UR": 63, "P": 7, "UP": 7}
"""The files of which words speak, and how many registers of each have a word."""

SHAPES: dict[str, tuple[int, ...]] = {
    "v": (*range(1, 17), 32),
    "a": (*range(1, 17), 32),
    "av": (*range(1, 17), 32),
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
