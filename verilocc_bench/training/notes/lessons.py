"""Windows of the format `text-notes` with the teacher's answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.conversation import conversation_of
from verilocc_bench.model.notes.teacher import OutOfRegisters, teacher_of
from verilocc_bench.model.notes.text_notes_format import token_numbers
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotesLedger
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger, empty_text_ledger
from verilocc_bench.model.prompts.text_notes.window import TextWindow
from verilocc_bench.training.notes.made_up import made_up_dry, made_up_text_window

DRY_SHARE = 0.15
"""This share of made-up windows is dry."""

MANY = 32
"""Registers are withheld of files that have so many."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """The tokens of a window, and which of them are the model's to say."""

    tokens: tuple[int, ...]
    said: tuple[bool, ...]


def function_lessons(
    function: Function, seed: int, *, withheld: bool = False
) -> tuple[Iterator[Lesson], TextLedger]:
    """The windows of a function as the teacher answers them, and the notes that they fill.

    `withheld`: some registers, drawn by the seed, are not there to be given. The iterator raises
    OutOfRegisters where the teacher has no answer.
    """
    ledger = empty_text_ledger(function)
    if withheld:
        withhold(ledger, random.Random(f"withheld {seed}"))  # noqa: S311
    return _function_lessons(function, ledger, random.Random(seed)), ledger  # noqa: S311


def _function_lessons(
    function: Function, ledger: TextLedger, naming: random.Random
) -> Iterator[Lesson]:
    for window in read_text(function, ledger, naming):
        if isinstance(window, TextWindow) or window.mentions:
            lesson = answered(window)
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


def answered(window: DryWindow | TextWindow) -> Lesson:
    """The window as the teacher answers it. Raises OutOfRegisters."""
    numbers, words = token_numbers(), window.prompt()
    said = [False] * len(words)
    say, talk = teacher_of(window, words), conversation_of(window)
    try:
        fed = next(talk)
        while True:
            word = say(fed)
            words = [*words, *fed, word]
            said += [*[False] * len(fed), True]
            fed = talk.send(word)
    except StopIteration:
        return Lesson(tuple(numbers[each] for each in words), tuple(said))
    except Contradiction as error:
        raise OutOfRegisters(str(error)) from error


def made_up_lessons(draw: random.Random) -> Iterator[Lesson]:
    """Windows that no function has, without end."""
    while True:
        if draw.random() < DRY_SHARE:
            yield answered(made_up_dry(draw))
            continue
        with suppress(OutOfRegisters):
            lesson = answered(made_up_text_window(draw))
            if any(lesson.said):
                yield lesson
