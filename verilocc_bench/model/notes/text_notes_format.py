"""The prompt format `text-notes`, for networks that are trained for it alone."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import cache

from verilocc_bench.allocators import Assistance
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.text_notes.episode import TextReading, read_text
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger, empty_text_ledger
from verilocc_bench.model.prompts.text_notes.window import TextWindow
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary

AnyWindow = DryWindow | TextWindow

NAME = "text-notes"

MODEL_TYPE = "verilocc_text_notes"
"""What config.json has."""

VERSION = 2
"""Is raised with every change of the words, or of what the program reads and feeds."""

ASSISTANCE = Assistance.TEXT


def open_text(
    function: Function, naming: random.Random, first: Collection[int]
) -> tuple[TextLedger, TextReading]:
    """The notes before the first word, and the reading that fills them.

    The virtual registers `first` are read before all others. Raises InputError for a function
    that the words have no way to speak of.
    """
    if function.masks():
        raise InputError(f"the prompt format {NAME} has no words for registers that calls destroy")
    ledger = empty_text_ledger(function)
    return ledger, read_text(function, ledger, naming, first)


@cache
def token_numbers() -> dict[str, int]:
    """The token of each word."""
    return {word: number for number, word in enumerate(text_vocabulary())}
