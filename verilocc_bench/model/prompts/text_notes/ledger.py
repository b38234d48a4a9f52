"""The notes of the format `text-notes`: those of `notes`, and what of a file is free for some."""

from __future__ import annotations

from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.notes.ledger import NotedPlace, NotesLedger, Owner
from verilocc_bench.model.prompts.notes.order import in_reading_order
from verilocc_bench.model.prompts.notes.reading import read_budget


class TextLedger(NotesLedger):
    """Lines, owners and free registers, as the words say."""

    __slots__ = ()

    def open_units(self, file: str, begins: int) -> int:
        """The registers of a file, as a set of bits, that are free for one that begins there."""
        return self._open(file, begins)

    def imagine(self, register: int, place: NotedPlace, width: int) -> None:
        """A line for a virtual register at a place that nobody can have."""
        for unit in range(place.number, place.number + width):
            self.owners[place.file][unit] = [Owner(register)]
        self.live[register] = place


def empty_text_ledger(function: Function) -> TextLedger:
    """The notes before the first word."""
    budget = read_budget(in_reading_order(function))
    return TextLedger(NotesLedger.of(budget).free, NotesLedger.of(budget).owners)
