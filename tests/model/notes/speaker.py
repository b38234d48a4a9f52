"""A model that says what the rule says, or something else where it is told to."""

from __future__ import annotations

import random
from collections.abc import Iterator

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.notes_reading import Reading
from verilocc_bench.model.notes.talk import Say, SpokenWindow, answered, words_of_rule


def speak(window: SpokenWindow, say: Say = words_of_rule) -> list[str]:
    """Answers a window to its end; all that the model was shown, and its words after `=>`."""
    words = window.prompt()
    for fed, word in answered(window, say):
        words += [*fed, "=>", word]
    return words


def read(function: Function, seed: int = 0) -> Reading:
    """The windows of a function, each to be answered before the next is asked for."""
    return Reading(function, random.Random(seed))


def conversation(function: Function, seed: int = 0) -> Iterator[str]:
    """Every window of a function as one line, as the rule answers."""
    for window in read(function, seed):
        yield " ".join(speak(window))
