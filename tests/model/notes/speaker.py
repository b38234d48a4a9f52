"""A model that says what the teacher says, or something else where it is told to."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.decoding import WindowAnswer
from verilocc_bench.model.notes.teacher import teach, teach_dry
from verilocc_bench.model.prompts.notes.episode import empty_ledger, read_function
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.window import DryWindow, NotesWindow, WrongWord


def answer_of(window: DryWindow | NotesWindow, place: int) -> str:
    """What the teacher says to a mention."""
    if isinstance(window, DryWindow):
        return teach_dry(window.noted, window.mentions[place])
    return teach(window, place)


def speak(window: DryWindow | NotesWindow) -> list[str]:
    """Answers a window to its end; all that the model was shown, and its words after `=>`."""
    words = window.prompt()
    for place in range(len(window.mentions)):
        words += window.fed(place)
        answer = answer_of(window, place)
        window.begin_answer(place)
        assert window.hear(answer)
        words += ["=>", answer]
    return words


def conversation(function: Function, seed: int = 0) -> Iterator[str]:
    """Every window of a function as one line."""
    ledger = empty_ledger(function)
    for window in read_function(function, ledger, random.Random(seed)):
        yield " ".join(speak(window))


def answer_like_the_teacher(network: object, answers: Sequence[WindowAnswer]) -> None:
    """Stands in for model.notes.decoding.answer_windows."""
    del network
    for answer in answers:
        try:
            words = speak(answer.window)
            answer.words = [(word, before == "=>") for before, word in pairwise(words)]
        except (Contradiction, WrongWord) as error:
            answer.error = error
