"""Windows of the format `text-notes` with the teacher's answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.teacher import OutOfRegisters
from verilocc_bench.model.notes.text_teacher import TextTeacher
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger, empty_text_ledger
from verilocc_bench.model.prompts.text_notes.window import TextWindow
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary
from verilocc_bench.training.notes.lessons import DRY_SHARE, Lesson, answered_words, withhold
from verilocc_bench.training.notes.made_up import MadeUpWindow, made_up_dry
from verilocc_bench.training.notes.text_made_up import made_up_text_window

_NUMBERS = {word: number for number, word in enumerate(text_vocabulary())}


def text_function_lessons(
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
    for window in read_text(function, ledger, naming, TextWindow):
        if isinstance(window, TextWindow) or window.mentions:
            lesson = text_answered(window)
            if any(lesson.said):
                yield lesson


def text_answered(window: DryWindow | TextWindow) -> Lesson:
    """The window as the teacher answers it. Raises OutOfRegisters."""
    written = answered_words(window) if isinstance(window, DryWindow) else _heard(window)
    return Lesson(tuple(_NUMBERS[word] for word in written.words), tuple(written.said))


def _heard(window: TextWindow) -> MadeUpWindow:
    prompt = window.prompt()
    written, teacher = MadeUpWindow(list(prompt)), TextTeacher(prompt)
    talk = window.conversation()
    try:
        fed = next(talk)
        while True:
            written.add(fed, said=False)
            word = teacher.say(fed)
            written.add([word], said=True)
            fed = talk.send(word)
    except StopIteration:
        return written
    except Contradiction as error:
        raise OutOfRegisters(str(error)) from error


def text_made_up_lessons(draw: random.Random) -> Iterator[Lesson]:
    """Windows that no function has, without end."""
    while True:
        if draw.random() < DRY_SHARE:
            yield text_answered(made_up_dry(draw))
            continue
        with suppress(OutOfRegisters):
            lesson = text_answered(made_up_text_window(draw))
            if any(lesson.said):
                yield lesson
