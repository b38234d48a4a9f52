"""Whose answers the model of the format `notes` learns.

It knows the notes and the window alone, as the model does. What has a line keeps its
register. What has none takes the lowest place that is free.
"""

from __future__ import annotations

from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.window import NotesWindow
from verilocc_bench.model.prompts.notes.words import CROSSED, KNOWN, NEW, register_word


class OutOfRegisters(Exception):
    """There is no place for a virtual register."""


def teach(window: NotesWindow, place: int) -> str:
    """The answer to the mention of a place. Raises OutOfRegisters."""
    known = window.ledger.live.get(window.mentions[place].register)
    if known is not None:
        return register_word(known.file, known.number)
    places = window.places(place)
    if not places:
        raise OutOfRegisters(window.shapes[place])
    return register_word(places[0].file, places[0].number)


def teach_dry(noted: dict[int, None], mention: Mention) -> str:
    """The answer to a mention in a dry window."""
    if mention.role is Role.BEGINS:
        return CROSSED
    return KNOWN if mention.register in noted else NEW
