"""Windows with the teacher's answers, as the model is to learn them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.notes.episode import empty_ledger, read_function
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.window import (
    DRY_MENTIONS,
    MENTIONS,
    DryWindow,
    NotesWindow,
    cut_windows,
)
from verilocc_bench.model.prompts.notes.words import LENT, OWN, vocabulary
from verilocc_bench.training.notes.made_up import MadeUpStream
from verilocc_bench.training.notes.teacher import OutOfRegisters, teach, teach_dry


@dataclass(frozen=True, slots=True)
class Lesson:
    """The tokens of a window, and which of them are the model's to say."""

    tokens: tuple[int, ...]
    said: tuple[bool, ...]


@cache
def token_numbers() -> dict[str, int]:
    """The token of each word."""
    return {word: number for number, word in enumerate(vocabulary())}


class _Writing:
    def __init__(self, prompt: list[str]) -> None:
        self.words, self.said = list(prompt), [False] * len(prompt)

    def add(self, words: list[str], *, said: bool) -> None:
        self.words += words
        self.said += [said] * len(words)

    def lesson(self) -> Lesson:
        numbers = token_numbers()
        return Lesson(tuple(numbers[word] for word in self.words), tuple(self.said))


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
        _withhold(ledger, random.Random(f"withheld {seed}"))  # noqa: S311
    return _function_lessons(function, ledger, random.Random(seed)), ledger  # noqa: S311


def _withhold(ledger: NotesLedger, draw: random.Random) -> None:
    """Takes away the low registers of a file, up to some number, and single ones."""
    for file in [file for file in ledger.free if file not in OWN]:
        blocks = [(f, n, b) for (f, n), blocks in ledger.lists.items() if f == file for b in blocks]
        count = sum(length for _, length, _ in blocks)
        if count < MANY:
            continue
        low = draw.choice((0, draw.randrange(count * 2 // 3), draw.randrange(count // 4)))
        taken = (1 << low) - 1
        for _ in range(draw.choice((0, 0, 2, 6))):
            taken |= 1 << draw.randrange(256)
        free = 0
        for _, length, first in blocks:
            free |= ((1 << length) - 1) << first
        ledger.withdraw(file, free & taken, "nobody")
    ledger.write_out()


def _function_lessons(
    function: Function, ledger: NotesLedger, naming: random.Random
) -> Iterator[Lesson]:
    for window in read_function(function, ledger, naming):
        if isinstance(window, NotesWindow):
            yield _answer(window, ledger)[0]
        else:
            yield _answer_dry(window)


def _answer(
    window: NotesWindow, ledger: NotesLedger, *, lenient: bool = False
) -> tuple[Lesson, bool]:
    """The window answered, and whether it was to its end; else raises OutOfRegisters."""
    writing = _Writing(window.prompt())
    for place, mention in enumerate(window.mentions):
        try:
            answer = teach(ledger, mention, window.shapes[place])
        except OutOfRegisters:
            if not lenient:
                raise
            return writing.lesson(), False
        writing.add(window.fed(place), said=False)
        window.begin_answer(place)
        for word in answer:
            window.hear(word)
        writing.add(answer, said=True)
    return writing.lesson(), True


def _answer_dry(window: DryWindow) -> Lesson:
    writing = _Writing(window.prompt())
    for place, mention in enumerate(window.mentions):
        writing.add(window.fed(place), said=False)
        answer = teach_dry(window.noted, mention)
        window.begin_answer(place)
        for word in answer:
            window.hear(word)
        writing.add(answer, said=True)
    return writing.lesson()


WINDOWS_A_STREAM = 40
DRY_SHARE = 0.08

MANY = 32
"""Registers are withheld of files that have so many."""


def made_up_lessons(seed: str) -> Iterator[Lesson]:
    """The windows of one made-up stream, from somewhere in its course on."""
    draw = random.Random(seed)  # noqa: S311
    stream = MadeUpStream(draw)
    ledger = stream.ledger()
    skipped = draw.choice((0, 0, 4, 10, 20))
    returned = False
    for number in range(skipped + WINDOWS_A_STREAM):
        mentions: list[Mention] = []
        limit = draw.choice((MENTIONS, MENTIONS, MENTIONS, draw.randint(1, MENTIONS)))
        while len(mentions) < limit:
            if stream.arguments and not returned and stream.time >= stream.arguments_return_at:
                break
            mentions += stream.instruction()
            if mentions and mentions[-1].cuts:
                break
        for cut in cut_windows(mentions, MENTIONS):
            ledger.write_out()
            window = NotesWindow(cut, stream.classes, ledger, draw)
            try:
                lesson, whole = _answer(window, ledger, lenient=True)
            except Contradiction:
                return
            if number >= skipped and any(lesson.said):
                yield lesson
            if not whole:
                return
        if number >= skipped and draw.random() < DRY_SHARE:
            yield _made_up_dry(mentions, draw)
        if stream.arguments and not returned and stream.time >= stream.arguments_return_at:
            ledger.write_out()
            try:
                ledger.withdraw(LENT["s"], stream.arguments, "the function")
            except Contradiction:
                return
            returned = True


def _made_up_dry(mentions: list[Mention], draw: random.Random) -> Lesson:
    registers = list({mention.register for mention in mentions}) or [0]
    drawn, gone = [], set[int]()
    for _ in range(draw.randint(4, DRY_MENTIONS)):
        register = draw.choice(registers)
        if register in gone:
            continue
        begins = draw.random() < 0.3
        if begins:
            gone.add(register)
        drawn.append(Mention(register, Role.BEGINS if begins else Role.PLAIN))
    noted = dict.fromkeys(r for r in registers if draw.random() < 0.4)
    return _answer_dry(DryWindow(drawn, noted, draw))
