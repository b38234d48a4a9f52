"""How a function is read in the format `text-notes`: its windows, one after the other."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TypeVar

from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.notes.order import in_reading_order
from verilocc_bench.model.prompts.notes.reading import read_backwards
from verilocc_bench.model.prompts.notes.window import DRY_MENTIONS, DryWindow
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger
from verilocc_bench.model.prompts.text_notes.window import ITEMS, TextWindow, items_of

Window = TypeVar("Window", bound=TextWindow)

TextReading = Generator[DryWindow | Window, bool, None]
"""Each window is to be heard to its end before the next is asked for. Sent True, the reading
gives the window again, with the notes as they were before it and other names."""


def read_text(
    function: Function,
    ledger: TextLedger,
    naming: random.Random,
    kind: type[Window],
) -> TextReading[Window]:
    """The windows of a function, which fill the notes; `kind` is how they are worded.

    Raises InputError for a class that the words have no way to speak of.
    """
    classes = dict(enumerate(function.virtual_registers))
    highest: dict[str, int] = {}
    for part in read_backwards(in_reading_order(function)):
        mentions = part.mentions
        if part.dry:
            noted: dict[int, None] = {}
            for first in range(0, len(mentions), DRY_MENTIONS):
                before = dict(noted)
                while (yield DryWindow(mentions[first : first + DRY_MENTIONS], noted, naming)):
                    noted.clear()
                    noted.update(before)
            mentions = tuple(part.around(register) for register in noted)
        items = items_of(mentions)
        first, most = 0, ITEMS
        while first < len(items):
            saved, height = ledger.saved(), dict(highest)
            cut = items[first : first + most]
            window = kind(cut, classes, ledger, highest, naming)
            while (yield window):
                ledger.restore(saved)
                highest.clear()
                highest.update(height)
                window = kind(cut, classes, ledger, highest, naming)
            first += window.answered
            most = ITEMS if window.answered else 1
