"""Windows with the teacher's answers, as the model is to learn them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.teacher import teach, teach_dry
from verilocc_bench.model.prompts.notes.episode import empty_ledger, read_function
from verilocc_bench.model.prompts.notes.ledger import NotesLedger
from verilocc_bench.model.prompts.notes.window import DryWindow, NotesWindow
from verilocc_bench.model.prompts.notes.words import vocabulary
from verilocc_bench.training.notes.made_up import MadeUpWindow, made_up_dry, made_up_window


@dataclass(frozen=True, slots=True)
class Lesson:
    """The tokens of a window, and which of them are the model's to say."""

    tokens: tuple[int, ...]
    said: tuple[bool, ...]


@cache
def token_numbers() -> dict[str, int]:
    """The token of each word."""
    return {word: number for number, word in enumerate(vocabulary())}


def _lesson(window: MadeUpWindow) -> Lesson:
    numbers = token_numbers()
    return Lesson(tuple(numbers[word] for word in window.words), tuple(window.said))


def function_lessons(
    function: Function, seed: int, *, withheld: bool = False
) -> tuple[Iterator[Lesson], NotesLedger]:
    """The windows of a function as the teacher answers them, and the notes that they fill.

    `withheld`: some registers, drawn by the seed, are not there to be given; so the same
    function is learnt with other registers each time. The iterator raises OutOfRegisters
    where the teacher has no answer.
    """
    ledger = empty_ledger(function)
    if withheld:
        withhold(ledger, random.Random(f"withheld {seed}"))  # noqa: S311
    return _function_lessons(function, ledger, random.Random(seed)), ledger  # noqa: S311


MANY = 32
"""Registers are withheld of files that have so many."""


def withhold(ledger: NotesLedger, draw: random.Random) -> None:
    """Takes away the low registers of a file, up to some number, and single ones."""
    for file, units in ledger.free.items():
        count = units.bit_count()
        if count < MANY:
            continue
        low = draw.choice((0, draw.randrange(count * 2 // 3), draw.randrange(count // 4)))
        taken = (1 << low) - 1
        for _ in range(draw.choice((0, 0, 2, 6))):
            taken |= 1 << draw.randrange(256)
        ledger.free[file] = units & ~taken


def _function_lessons(
    function: Function, ledger: NotesLedger, naming: random.Random
) -> Iterator[Lesson]:
    for window in read_function(function, ledger, naming):
        if window.mentions:
            yield answered(window)


def answered(window: DryWindow | NotesWindow) -> Lesson:
    """The window as the teacher answers it. Raises OutOfRegisters."""
    return _lesson(answered_words(window))


def answered_words(window: DryWindow | NotesWindow) -> MadeUpWindow:
    """The words of the window as the teacher answers it. Raises OutOfRegisters."""
    written = MadeUpWindow(window.prompt())
    for place, mention in enumerate(window.mentions):
        written.add(window.fed(place), said=False)
        if isinstance(window, NotesWindow):
            word = teach(window, place)
        else:
            word = teach_dry(window.noted, mention)
        window.begin_answer(place)
        window.hear(word)
        written.add([word], said=True)
    return written


DRY_SHARE = 0.15


def made_up_lessons(draw: random.Random) -> Iterator[Lesson]:
    """Windows that no function has, without end."""
    while True:
        if draw.random() < DRY_SHARE:
            yield answered(made_up_dry(draw))
        else:
            yield _lesson(made_up_window(draw))
