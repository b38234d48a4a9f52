"""How a function is read: through the whole text for some virtual registers, then for others.

First come virtual registers of several registers, then single ones: those that need neighbours
find room before single ones break it up. Some may be read before all others: those for which an
earlier try had no place left. Each of these *passes* has the mentions of its virtual registers
alone, cut into windows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verilocc_bench.ir import Function, RegisterClass
from verilocc_bench.model.notes.dry_window import DRY_MENTIONS, DryWindow
from verilocc_bench.model.notes.mentions import Deed, TextPart, read_backwards, read_budget
from verilocc_bench.model.notes.notes_ledger import NotesLedger
from verilocc_bench.model.notes.notes_window import ITEMS, Item, NotesWindow, Sizes, items_of
from verilocc_bench.model.notes.notes_words import SIZES, lists_of, shape_of
from verilocc_bench.model.notes.reading_order import in_reading_order

AnyWindow = DryWindow | NotesWindow


@dataclass(frozen=True, slots=True)
class Pass:
    """The parts of the text with the mentions of a pass, and the sizes of its lists."""

    parts: tuple[TextPart, ...]
    sizes: Sizes


def passes_of(function: Function, first: Collection[int] = ()) -> Iterator[Pass]:
    """The passes over a function whose blocks are in the order of reading.

    The registers of `first` are read before all others, in passes of their own. With a single
    register come the single ones that live around it (`_with_those_around`). Raises InputError
    for a class that the words cannot name.
    """
    parts = tuple(read_backwards(function))
    kinds = function.virtual_registers
    first = _with_those_around(parts, kinds, first)
    for early in (True, False):
        for single in (False, True):
            chosen = {
                register
                for register, kind in enumerate(kinds)
                if (kind.width == 1) is single and (register in first) is early
            }
            if chosen:
                sizes = sizes_for(kinds[register] for register in chosen)
                yield Pass(tuple(_only(parts, chosen)), sizes)


def _with_those_around(
    parts: Iterable[TextPart], kinds: Sequence[RegisterClass], first: Collection[int]
) -> set[int]:
    """The registers, and for each single one those that live around it and may have its place."""
    found = set(first)
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for part in parts:
        for mention in () if part.dry or not first else part.mentions:
            register = mention.register
            if kinds[register].width == 1:
                begins[register] = min(mention.begins, begins.get(register, mention.begins))
                ends[register] = max(mention.place, ends.get(register, mention.place))
    for one in found & begins.keys():
        files = set(kinds[one].files)
        found |= {
            other
            for other in begins
            if begins[other] <= begins[one]
            and ends[other] >= ends[one]
            and not files.isdisjoint(kinds[other].files)
        }
    return found


def sizes_for(kinds: Iterable[RegisterClass]) -> Sizes:
    """By file: from the smallest block that some class needs on; of single registers that alone."""
    least: dict[str, int] = {}
    for kind in dict.fromkeys(kinds):
        for file, size in lists_of(shape_of(kind)):
            least[file] = min(size, least.get(file, size))
    found = {
        file: tuple(n for n in sizes if n >= least.get(file, n + 1))
        for file, sizes in SIZES.items()
    }
    return {file: (1,) if 1 in sizes else sizes for file, sizes in found.items()}


def _only(parts: Iterable[TextPart], chosen: set[int]) -> Iterator[TextPart]:
    """Parts with the mentions of some virtual registers; deeds go on to the next of these."""
    waiting: list[Deed] = []
    for part in parts:
        before = [] if part.dry else waiting
        mentions = []
        for mention in part.mentions:
            before += [d for d in mention.before if d.register < 0 or d.register in chosen]
            if mention.register in chosen:
                mentions.append(replace(mention, before=tuple(before)))
                before.clear()
        yield replace(part, mentions=tuple(mentions))


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a reading has come.

    `part` counts parts over all passes. Of a dry part `heard` mentions are read. `items` are those
    of the part, once they are known; `answered` of them are done. A window has `most` at most.
    """

    part: int = 0
    heard: int = 0
    items: Sequence[Item] | None = None
    answered: int = 0
    most: int = ITEMS


@dataclass(frozen=True, slots=True)
class Mark:
    """All of a reading as a window is shown, so that it can go on from there another time."""

    window: AnyWindow
    place: _Place
    ledger: NotesLedger
    noted: dict[int, None]
    naming: Any


class Reading:
    """The windows of a function, one after the other, which fill `ledger`.

    Each is to be heard to its end before the next is asked for. The virtual registers `first` are
    read before all others. Raises InputError for a class that the words have no way to speak of.
    """

    def __init__(
        self,
        function: Function,
        naming: random.Random,
        first: Collection[int] = (),
        ledger: NotesLedger | None = None,
    ) -> None:
        ordered = in_reading_order(function)
        self._budget = read_budget(ordered)
        self.ledger = NotesLedger.of(self._budget) if ledger is None else ledger
        self._naming = naming
        self._classes: Mapping[int, RegisterClass] = dict(enumerate(function.virtual_registers))
        self._parts = [
            (number, each.sizes, part)
            for number, each in enumerate(passes_of(ordered, first))
            for part in each.parts
        ]
        self._noted: dict[int, None] = {}
        self._place = _Place()
        self.mark: Mark | None = None

    def __iter__(self) -> Iterator[AnyWindow]:
        """The windows that are left."""
        while (window := self.next_window()) is not None:
            yield window

    def next_window(self) -> AnyWindow | None:
        """The window after the one that was shown last; None at the end."""
        self._go_past()
        while self._place.part < len(self._parts):
            place = self._place
            number, sizes, part = self._parts[place.part]
            if part.dry and place.heard < len(part.mentions):
                mentions = part.mentions[place.heard : place.heard + DRY_MENTIONS]
                return self._shown(DryWindow(mentions, self._noted, self._naming))
            if place.items is None:
                around = tuple(part.around(register) for register in self._noted)
                place = self._place = replace(
                    place, items=items_of(around if part.dry else part.mentions)
                )
            assert place.items is not None
            if place.answered < len(place.items):
                wanted = place.items[place.answered : place.answered + place.most]
                return self._shown(self._window_of(self._free_alike(wanted), sizes))
            self._place = _Place(place.part + 1)
            self._noted.clear()
            if place.part + 1 < len(self._parts) and self._parts[place.part + 1][0] != number:
                self.ledger.begin_again(self._budget)
        return None

    def ask_again(self) -> AnyWindow:
        """The last window again, with the notes as they were before it and other names.

        Half of its items are left, so that its lists are new sooner.
        """
        assert self.mark is not None
        naming, window = self._naming.getstate(), self.mark.window
        self.return_to(self.mark)
        self._naming.setstate(naming)
        if isinstance(window, DryWindow):
            return self._shown(DryWindow(window.mentions, self._noted, self._naming))
        fewer = window.items[: max(1, len(window.items) // 2)]
        return self._shown(self._window_of(fewer, window.sizes))

    def return_to(self, mark: Mark) -> None:
        """All is as it was when the window of the mark was shown, which is the last now."""
        self.mark, self._place = mark, mark.place
        self.ledger.restore(mark.ledger)
        self._noted.clear()
        self._noted.update(mark.noted)
        self._naming.setstate(mark.naming)

    def _window_of(self, items: Sequence[Item], sizes: Sizes) -> NotesWindow:
        return NotesWindow(items, self._classes, self.ledger, self._naming, sizes)

    def _shown(self, window: AnyWindow) -> AnyWindow:
        naming = self._naming.getstate()
        self.mark = Mark(window, self._place, self.ledger.saved(), dict(self._noted), naming)
        return window

    def _go_past(self) -> None:
        """The place after the window that was shown last."""
        if self.mark is None:
            return
        place, window = self._place, self.mark.window
        if isinstance(window, DryWindow):
            self._place = replace(place, heard=place.heard + len(window.mentions))
        else:
            most = ITEMS if window.answered else 1
            self._place = replace(place, answered=place.answered + window.answered, most=most)
        self.mark = None

    def _free_alike(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items up to the first that finds other registers free than those before it.

        That one has no line yet. So all that a window's lists show is free to each of its names,
        and nothing is missing.
        """
        ledger, shown = self.ledger, dict[str, tuple[int, int, int]]()
        seen = set(ledger.live)
        for number, item in enumerate(items):
            register, mention = item.register, item.mention
            if item.gives is not None or register in seen:
                continue
            seen.add(register)
            for file in self._classes[register].files:
                if file not in ledger.free:
                    continue
                units = ledger.open_units(file, mention.begins, mention.place)
                begins, place, before = shown.get(file, (mention.begins, mention.place, units))
                begins, place = min(begins, mention.begins), max(place, mention.place)
                if not units == before == ledger.open_units(file, begins, place):
                    return items[:number]
                shown[file] = begins, place, units
        return items
