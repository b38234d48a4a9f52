"""The notes of the format `text-notes`: lines and owners, and what of a file is free for some.

A text is read twice (prompts.text_notes.readings). What the first reading gave is *kept*: each
register from the place in the text at which the words took it down to the one at which they gave it
back. In the second it is free to those who need it above or below alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from verilocc_bench.ir import Function, RegisterClass
from verilocc_bench.model.prompts.notes.ledger import NotedPlace, NotesLedger, Owner
from verilocc_bench.model.prompts.notes.order import in_reading_order
from verilocc_bench.model.prompts.notes.reading import NotesBudget, read_budget

Stay = tuple[int, int, int]
"""(first place, last place, the registers of a file, as a set of bits) of what somebody has."""

NOT_TAKEN = -2
"""A place above all others."""


@dataclass(slots=True)
class TextLedger(NotesLedger):
    """Lines, owners and free registers, as the words say.

    `now` is the place in the text that is read; `highest` the end of what anybody has had, by file.
    `since` has the place from which somebody has a register that is not lent, by (file, number,
    virtual register); `stays` those that have ended, by file, and `kept` those of the reading
    before, that which ends last first.
    """

    now: int = 0
    highest: dict[str, int] = field(default_factory=dict)
    since: dict[tuple[str, int, int], int] = field(default_factory=dict)
    stays: dict[str, list[Stay]] = field(default_factory=dict)
    kept: dict[str, list[Stay]] = field(default_factory=dict)

    def open_units(self, file: str, begins: int, place: int) -> int:
        """The registers of a file, as a set of bits, that are free from a place up to a begin."""
        units = NotesLedger._open(self, file, begins)
        for first, last, taken in self.kept.get(file, ()):
            if last < begins:
                break
            if first <= place:
                units &= ~taken
        return units

    def _open(self, file: str, begins: int) -> int:
        return self.open_units(file, begins, self.now)

    def kept_above(self, file: str, begins: int, units: int) -> dict[int, int]:
        """Where the reading before has some registers above a place, by their numbers."""
        found: dict[int, int] = {}
        for _, last, taken in self.kept.get(file, ()):
            if last < begins and taken & units:
                found.update(dict.fromkeys(_numbers(taken & units), last))
                units &= ~taken
        return found

    def begin_again(self, budget: NotesBudget) -> None:
        """The text is read once more; what was given stays where it was."""
        for (file, number, _), last in self.since.items():
            self.stays.setdefault(file, []).append((NOT_TAKEN, last, 1 << number))
        for file, stays in self.stays.items():
            joined: dict[tuple[int, int], int] = defaultdict(int)
            for first, last, taken in stays:
                joined[first, last] |= taken
            kept = [*self.kept.get(file, ()), *((*ends, t) for ends, t in joined.items())]
            self.kept[file] = sorted(kept, key=lambda stay: -stay[1])
        fresh = NotesLedger.of(budget)
        self.free, self.owners = fresh.free, fresh.owners
        self.live, self.since, self.stays = {}, {}, {}

    def take(self, register: int, kind: RegisterClass, place: NotedPlace, begins: int) -> None:
        """See NotesLedger."""
        NotesLedger.take(self, register, kind, place, begins)
        for number in range(place.number, place.number + kind.width):
            self.since[place.file, number, register] = self.now
        end = place.number + kind.width
        self.highest[place.file] = max(self.highest.get(place.file, 0), end)

    def lend(self, register: int, lanes: int, until: int) -> None:
        """See NotesLedger."""
        NotesLedger.lend(self, register, lanes, until)
        self._end(register, lanes)

    def give_back(self, register: int, lanes: int) -> None:
        """See NotesLedger."""
        NotesLedger.give_back(self, register, lanes)
        file, first = self._base(register)
        for lane in _numbers(lanes if register >= 0 else 0):
            stack = self.owners[file].get(first + lane, ())
            if stack and stack[-1] == Owner(register):
                self.since.setdefault((file, first + lane, register), self.now)

    def leave(self, register: int, lanes: int) -> None:
        """See NotesLedger."""
        NotesLedger.leave(self, register, lanes)
        self._end(register, lanes)

    def _end(self, register: int, lanes: int) -> None:
        """Lanes are no longer had; one that was lent as soon as it was taken never was."""
        file, first = self._base(register)
        for lane in _numbers(lanes):
            last = self.since.pop((file, first + lane, register), None)
            if last is not None and self.now <= last:
                self.stays.setdefault(file, []).append((self.now, last, 1 << first + lane))

    def imagine(self, register: int, place: NotedPlace, width: int) -> None:
        """A line for a virtual register at a place that nobody can have."""
        for unit in range(place.number, place.number + width):
            self.owners[place.file][unit] = [Owner(register)]
        self.live[register] = place

    def saved(self) -> TextLedger:
        """A copy of the notes as they are."""
        base = NotesLedger.saved(self)
        copy = TextLedger(base.free, base.owners, base.live, base.given, self.now)
        copy.highest, copy.since, copy.kept = dict(self.highest), dict(self.since), self.kept
        copy.stays = {file: list(stays) for file, stays in self.stays.items()}
        return copy

    def restore(self, saved: NotesLedger) -> None:
        """The notes become what they were."""
        assert isinstance(saved, TextLedger)
        again = saved.saved()
        NotesLedger.restore(self, again)
        self.now, self.highest = again.now, again.highest
        self.since, self.stays = again.since, again.stays


def _numbers(bits: int) -> list[int]:
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


def empty_text_ledger(function: Function) -> TextLedger:
    """The notes before the first word."""
    fresh = NotesLedger.of(read_budget(in_reading_order(function)))
    return TextLedger(fresh.free, fresh.owners)
