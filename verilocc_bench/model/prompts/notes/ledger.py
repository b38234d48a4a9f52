"""The notes: which registers are free, in lists of blocks, and what each virtual register has.

The ledger holds what the words said and nothing else. Between windows it is written
out anew: free blocks that make up a longer one are joined, and each list is sorted. Blocks
at the very end of a budget, too short for the longest list, come last: they are written
down once no block of the longest list is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from verilocc_bench.model.prompts.notes.reading import NotesBudget
from verilocc_bench.model.prompts.notes.words import (
    BLOCK_LENGTHS,
    EMPTY,
    LENT,
    MORE,
    OWN,
    block_length,
    natural_parts,
    register_word,
)

SHOWN = 10
"""A list shows so many of its blocks at the head of a window."""


class Contradiction(Exception):
    """The words contradict the notes; the message says in what."""


@dataclass(frozen=True, slots=True)
class NotedPlace:
    """A base register: its file, as the notes call it, and its number."""

    file: str
    number: int


@dataclass(slots=True)
class NotesLedger:
    """Free registers by file as sets of bits, the lists as a window has them, and the live.

    `free` is what lies in no list of the window as yet; `lengths` are those of the lists of
    each file; `lists[file, length]` has blocks,
    first the next to be taken. `tails` are ends of budgets, held back.
    """

    free: dict[str, int]
    lengths: dict[str, tuple[int, ...]]
    tails: dict[str, int] = field(default_factory=dict)
    live: dict[int, NotedPlace] = field(default_factory=dict)
    given: dict[int, NotedPlace] = field(default_factory=dict)
    lists: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    hidden: dict[tuple[str, int], int] = field(default_factory=dict)
    lent: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, budget: NotesBudget, widest: int = 1) -> NotesLedger:
        """The notes before the first word: all registers of the budget are free.

        `widest`: of all virtual registers of the function.
        """
        free = {file: units for file, units in budget.registers.items() if file in BLOCK_LENGTHS}
        for file in tuple(free):
            if file in LENT:
                free[LENT[file]] = 0
        if "hs" in free:
            free["hs"] = budget.arguments
        ledger = cls(free, {file: _lengths(file, widest) for file in free})
        for file, units in free.items():
            if file in OWN:
                continue
            longest = ledger.longest(file)
            whole = units.bit_length() // longest * longest
            ledger.tails[file] = units >> whole << whole
            free[file] = units & ((1 << whole) - 1)
        ledger.write_out()
        return ledger

    def write_out(self) -> None:
        """Joins and sorts the lists: the notes as the next window begins with them."""
        for (file, length), blocks in self.lists.items():
            for first in blocks:
                self.free[file] |= _mask(first, length)
        self.lists = {}
        for file in self.free:
            self._list_blocks(file)
            if self.tails.get(file) and not self.lists[file, self.longest(file)]:
                self.free[file] |= self.tails.pop(file)
                for length in self.lengths[file]:
                    for first in self.lists[file, length]:
                        self.free[file] |= _mask(first, length)
                self._list_blocks(file)
        self.hidden = {
            key: len(blocks) - SHOWN for key, blocks in self.lists.items() if len(blocks) > SHOWN
        }

    def _list_blocks(self, file: str) -> None:
        lengths = self.lengths[file]
        for length in lengths:
            self.lists[file, length] = []
        units, first = self.free[file], 0
        while units >> first:
            first += ((units >> first) & -(units >> first)).bit_length() - 1
            run = ~(units >> first)
            end = first + (run & -run).bit_length() - 1
            for start, length in natural_parts(first, end, lengths[-1]):
                self.lists[file, length].append(start)
            first = end
        self.free[file] = 0

    def longest(self, file: str) -> int:
        """The length of the longest blocks of a file."""
        return self.lengths[file][-1]

    def in_sight(self, file: str, length: int) -> list[str]:
        """The words of a list as far as the window shows it, and what stands at its end."""
        hidden = self.hidden.get((file, length), 0)
        blocks = self.lists[file, length]
        seen = [register_word(file, first) for first in blocks[: len(blocks) - hidden]]
        return [*seen, MORE if hidden else EMPTY]

    def take(self, file: str, length: int, first: int) -> None:
        """A block leaves its list. Raises Contradiction where it is not there."""
        blocks = self.lists.get((file, length), [])
        if first not in blocks:
            raise Contradiction(f"{file}{first} is no free block of {length}")
        hidden = self.hidden.get((file, length), 0)
        if hidden and blocks.index(first) >= len(blocks) - hidden:
            self.hidden[file, length] = hidden - 1
        blocks.remove(first)

    def put(self, file: str, length: int, first: int) -> None:
        """A block goes to the front of its list."""
        self.lists[file, length].insert(0, first)

    def note(self, register: int, place: NotedPlace) -> None:
        """A line for a virtual register."""
        self.live[register] = place
        self.given[register] = place

    def lend(self, register: int) -> None:
        """The register of a virtual register may be borrowed; its line stays."""
        self.lent.add(register)

    def give_back(self, register: int, width: int) -> None:
        """A register that was lent is needed. Raises Contradiction where one still has it."""
        self.lent.discard(register)
        place = self.live[register]
        file = LENT.get(place.file, place.file)
        self.withdraw(file, _mask(place.number, width), f"%{register}")

    def withdraw(self, file: str, units: int, owner: str) -> None:
        """Free registers leave the lists. Raises Contradiction where one is not free."""
        for (other, length), blocks in self.lists.items():
            if other != file:
                continue
            for first in [b for b in blocks if _mask(b, length) & units]:
                blocks.remove(first)
                self.free[file] |= _mask(first, length)
        if units & ~self.free[file]:
            raise Contradiction(f"{owner} needs a register back that another has")
        rest, self.free[file] = self.free[file] & ~units, 0
        first = 0
        while rest >> first:
            first += ((rest >> first) & -(rest >> first)).bit_length() - 1
            self.lists[file, 1].insert(0, first)
            first += 1

    def saved(self) -> NotesLedger:
        """A copy of the notes as they are."""
        lists = {key: list(blocks) for key, blocks in self.lists.items()}
        return NotesLedger(
            dict(self.free),
            self.lengths,
            dict(self.tails),
            dict(self.live),
            dict(self.given),
            lists,
            dict(self.hidden),
            set(self.lent),
        )

    def restore(self, saved: NotesLedger) -> None:
        """The notes become what they were."""
        again = saved.saved()
        self.free, self.tails, self.live, self.given = (
            again.free,
            again.tails,
            again.live,
            again.given,
        )
        self.lists, self.hidden, self.lent = again.lists, again.hidden, again.lent

    def cross_out(self, register: int) -> None:
        """The line of a virtual register goes."""
        del self.live[register]


def _lengths(file: str, widest: int) -> tuple[int, ...]:
    """Lists of more than 16 registers are kept where something needs them: they break up badly."""
    return tuple(n for n in BLOCK_LENGTHS[file] if n <= max(16, block_length(widest)))


def _mask(first: int, count: int) -> int:
    return ((1 << count) - 1) << first
