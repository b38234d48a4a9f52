"""How a function is read in the format `text-notes`: its windows, one after the other."""

from __future__ import annotations

import random
from collections.abc import Collection, Generator, Mapping, Sequence

from verilocc_bench.ir import Function, RegisterClass
from verilocc_bench.model.prompts.notes.order import in_reading_order
from verilocc_bench.model.prompts.notes.reading import read_budget
from verilocc_bench.model.prompts.notes.window import DRY_MENTIONS, DryWindow
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger
from verilocc_bench.model.prompts.text_notes.readings import TextReadingPlan, readings_of
from verilocc_bench.model.prompts.text_notes.window import ITEMS, Item, TextWindow, items_of

TextReading = Generator[DryWindow | TextWindow, bool, None]
"""Each window is to be heard to its end before the next is asked for. Sent True, the reading
gives the window again, with the notes as they were before it, other names and half as many
items."""


def read_text(
    function: Function,
    ledger: TextLedger,
    naming: random.Random,
    first: Collection[int] = (),
) -> TextReading:
    """The windows of a function, which fill the notes.

    The virtual registers `first` are read before all others. Raises InputError for a class that
    the words have no way to speak of.
    """
    classes = dict(enumerate(function.virtual_registers))
    ordered = in_reading_order(function)
    for number, plan in enumerate(readings_of(ordered, first)):
        if number:
            ledger.begin_again(read_budget(ordered))
        yield from _read_once(plan, classes, ledger, naming)


def _read_once(
    plan: TextReadingPlan,
    classes: Mapping[int, RegisterClass],
    ledger: TextLedger,
    naming: random.Random,
) -> TextReading:
    for part in plan.parts:
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
            saved = ledger.saved()
            cut = _alike(items[first : first + most], classes, ledger)
            window = TextWindow(cut, classes, ledger, naming, plan.sizes)
            while (yield window):
                ledger.restore(saved)
                cut = TextWindow.to_ask_again(cut)
                window = TextWindow(cut, classes, ledger, naming, plan.sizes)
            first += window.answered
            most = ITEMS if window.answered else 1


def _alike(
    items: Sequence[Item], classes: Mapping[int, RegisterClass], ledger: TextLedger
) -> Sequence[Item]:
    """Up to the first that has no line and to which other registers are free than to those before.

    So all that a window's lists show is free to each, and nothing is missing.
    """
    shown: dict[str, tuple[int, int, int]] = {}
    seen = set(ledger.live)
    for number, item in enumerate(items):
        register, mention = item.register, item.mention
        if item.gives is not None or register in seen:
            continue
        seen.add(register)
        for file in classes[register].files:
            if file not in ledger.free:
                continue
            units = ledger.open_units(file, mention.begins, mention.place)
            begins, place, before = shown.get(file, (mention.begins, mention.place, units))
            begins, place = min(begins, mention.begins), max(place, mention.place)
            if not units == before == ledger.open_units(file, begins, place):
                return items[:number]
            shown[file] = begins, place, units
    return items
