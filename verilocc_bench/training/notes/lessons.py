"""Windows of the format `text-notes` with the rule's answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.notes_ledger import Contradiction, NotesLedger
from verilocc_bench.model.notes.notes_reading import Reading
from verilocc_bench.model.notes.notes_words import token_numbers
from verilocc_bench.model.notes.talk import SpokenWindow, answered, words_of_rule
from verilocc_bench.training.notes.made_up import made_up_dry, made_up_window

DRY_SHARE = 0.15
"""This share of made-up windows is dry."""

MANY = 32
"""The least registers of a file of which some are withheld."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """The tokens of a window, and which of them are the model's to say."""

    tokens: tuple[int, ...]
    said: tuple[bool, ...]


def function_lessons(function: Function, seed: int, *, withheld: bool = False) -> Iterator[Lesson]:
    """The windows of a function as the rule answers them.

    `withheld`: some registers, drawn by the seed, are not there to be given. Raises Contradiction
    where the rule has no answer.
    """
    reading = Reading(function, random.Random(seed))  # noqa: S311
    if withheld:
        withhold(reading.ledger, random.Random(f"withheld {seed}"))  # noqa: S311
    for window in reading:
        lesson = lesson_of(window)
        if any(lesson.said):
            yield lesson


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


def lesson_of(window: SpokenWindow) -> Lesson:
    """The window as the rule answers it. Raises Contradiction."""
    words = window.prompt()
    said = [False] * len(words)
    for fed, word in answered(window, words_of_rule):
        words += [*fed, word]
        said += [*[False] * len(fed), True]
    numbers = token_numbers()
    return Lesson(tuple(numbers[each] for each in words), tuple(said))


def made_up_lessons(draw: random.Random) -> Iterator[Lesson]:
    """Windows that no function has, without end."""
    while True:
        if draw.random() < DRY_SHARE:
            yield lesson_of(made_up_dry(draw))
            continue
        with suppress(Contradiction):
            lesson = lesson_of(made_up_window(draw))
            if any(lesson.said):
                yield lesson
