"""A model that says what the teacher says, or something else where it is told to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.teacher import teach_dry
from verilocc_bench.model.notes.text_teacher import TextTeacher
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger, empty_text_ledger
from verilocc_bench.model.prompts.text_notes.window import TextWindow

Say = Callable[[Sequence[str]], str]
"""The model's next word after what is fed before it."""


def speak(window: DryWindow | TextWindow, say: Say | None = None) -> list[str]:
    """Answers a window to its end; all that the model was shown, and its words after `=>`."""
    words = window.prompt()
    if isinstance(window, DryWindow):
        for mention in window.mentions:
            word = teach_dry(window.noted, mention)
            words += [*window.fed(mention), "=>", word]
            window.hear(mention, word)
        return words
    answer = TextTeacher(words).say if say is None else say
    talk = window.conversation()
    try:
        fed = next(talk)
        while True:
            word = answer(fed)
            words += [*fed, "=>", word]
            fed = talk.send(word)
    except StopIteration:
        return words


def read(
    function: Function, seed: int = 0, ledger: TextLedger | None = None
) -> Iterator[DryWindow | TextWindow]:
    """Every window of a function, to be answered before the next is asked for."""
    notes = empty_text_ledger(function) if ledger is None else ledger
    return read_text(function, notes, random.Random(seed))


def conversation(function: Function, seed: int = 0) -> Iterator[str]:
    """Every window of a function as one line, as the teacher answers."""
    for window in read(function, seed):
        yield " ".join(speak(window))
