"""How a function is read in the format `notes`: its windows, one after the other."""

from __future__ import annotations

import random
from collections.abc import Generator

from verilocc_bench.ir import Assignment, Function, PhysicalRegister
from verilocc_bench.model.prompts.notes.ledger import NotesLedger
from verilocc_bench.model.prompts.notes.order import in_reading_order
from verilocc_bench.model.prompts.notes.reading import read_backwards, read_budget
from verilocc_bench.model.prompts.notes.window import (
    DRY_MENTIONS,
    MENTIONS,
    DryWindow,
    NotesWindow,
    cut_windows,
)

Reading = Generator[DryWindow | NotesWindow, bool, None]
"""Each window is to be heard to its end before the next is asked for. Sent True, the reading
gives the window again, with the notes as they were before it and other names."""


def empty_ledger(function: Function) -> NotesLedger:
    """The notes before the first word."""
    return NotesLedger.of(read_budget(in_reading_order(function)))


def read_function(function: Function, ledger: NotesLedger, naming: random.Random) -> Reading:
    """The windows of a function, which fill the notes.

    Raises InputError for a class that the words have no way to speak of.
    """
    classes = dict(enumerate(function.virtual_registers))
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
        for cut in cut_windows(mentions, MENTIONS):
            saved = ledger.saved()
            while (yield NotesWindow(cut, classes, ledger, naming)):
                ledger.restore(saved)


def noted_assignment(ledger: NotesLedger) -> Assignment:
    """What the notes gave to each virtual register."""
    return {
        register: PhysicalRegister(place.file, place.number)
        for register, place in ledger.given.items()
    }
