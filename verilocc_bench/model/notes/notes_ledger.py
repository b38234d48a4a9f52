"""The notes: what each virtual register has, and what is free.

The ledger holds what the words said and nothing else. A register without an owner is *free*. A
register is *on loan* if its last owner lent it until some place: a virtual register that begins
below may take it until then. So each register has a stack of owners, and all but the uppermost
have lent it.

A text is read more than once (notes_reading). What an earlier reading gave is *kept*: each register
from the place in the text at which the words took it down to the one at which they gave it back.
In later readings it is free to those who need it above or below alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields

from verilocc_bench.ir import Assignment, PhysicalRegister, RegisterClass
from verilocc_bench.model.notes.lane_lives import file_owner, owned_file
from verilocc_bench.model.notes.mentions import NotesBudget

Stay = tuple[int, int, int]
"""(first place, last place, the registers of a file, as a set of bits) of what somebody has."""

NOT_TAKEN = -2
"""A place above all others."""


class Contradiction(Exception):
    """The words contradict the notes; the message says in what."""


@dataclass(frozen=True, slots=True)
class NotedPlace:
    """A base register."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Owner:
    """One who has a register. `until`: it is lent until that place is read."""

    register: int
    until: int | None = None


Stacks = dict[str, dict[int, list[Owner]]]


@dataclass(slots=True)
class NotesLedger:
    """Lines, owners and free registers, as the words say.

    `free` has the registers of each file that nobody has, as sets of bits; `owners` the stacks
    of the others, by their numbers. `live` are the lines that are not crossed out, `given` all.
    `now` is the place in the text that is read; `highest` the end of what anybody has had, by file.
    `since` has the place from which somebody has a register that is not lent, by (file, number,
    virtual register). `stays` are the stays that have ended, by file, and `kept` the stays of
    earlier readings, the one that ends last first.
    """

    free: dict[str, int]
    owners: Stacks = field(default_factory=dict)
    live: dict[int, NotedPlace] = field(default_factory=dict)
    given: dict[int, NotedPlace] = field(default_factory=dict)
    now: int = 0
    highest: dict[str, int] = field(default_factory=dict)
    since: dict[tuple[str, int, int], int] = field(default_factory=dict)
    stays: dict[str, list[Stay]] = field(default_factory=dict)
    kept: dict[str, list[Stay]] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: NotesBudget) -> NotesLedger:
        """The notes before the first word: all registers of the budget are free."""
        ledger = cls({})
        ledger._begin(budget)
        return ledger

    def _begin(self, budget: NotesBudget) -> None:
        self.free = dict(budget.registers)
        self.owners = {
            file: {unit: [Owner(file_owner(file), until)] for unit, until in named.items()}
            for file, named in budget.named.items()
        }

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
        self._begin(budget)
        self.live, self.since, self.stays = {}, {}, {}

    def open_units(self, file: str, begins: int, place: int) -> int:
        """The registers of a file, as a set of bits, that are free from a place up to a begin."""
        units = self.free[file]
        for unit, stack in self.owners[file].items():
            until = stack[-1].until
            if until is not None and until < begins:
                units |= 1 << unit
        for first, last, taken in self.kept.get(file, ()):
            if last < begins:
                break
            if first <= place:
                units &= ~taken
        return units

    def kept_above(self, file: str, begins: int, units: int) -> dict[int, int]:
        """Where the readings before have some registers above a place, by their numbers."""
        found: dict[int, int] = {}
        for _, last, taken in self.kept.get(file, ()):
            if last < begins and taken & units:
                found.update(dict.fromkeys(numbers_of(taken & units), last))
                units &= ~taken
        return found

    def take(self, register: int, kind: RegisterClass, place: NotedPlace, begins: int) -> None:
        """A line for a virtual register. Raises Contradiction where its place is not free."""
        file, end = place.file, place.number + kind.width
        units = ((1 << kind.width) - 1) << place.number
        if file not in self.free or not kind.allows(file, place.number):
            raise Contradiction(f"%{register} cannot be in {file}{place.number}")
        if units & ~self.open_units(file, begins, self.now):
            raise Contradiction(f"{file}{place.number} is not free for %{register}")
        self.free[file] &= ~units
        for unit in range(place.number, end):
            self.owners[file].setdefault(unit, []).append(Owner(register))
            self.since[file, unit, register] = self.now
        self.live[register] = self.given[register] = place
        self.highest[file] = max(self.highest.get(file, 0), end)

    def lend(self, register: int, lanes: int, until: int) -> None:
        """Lanes of a virtual register are lent, so far as it has them."""
        file, units = self._units(register, lanes)
        for unit in units:
            stack = self.owners[file].get(unit)
            if stack and stack[-1] == Owner(register):
                stack[-1] = Owner(register, until)
            self._end(file, unit, register)

    def give_back(self, register: int, lanes: int) -> None:
        """Lanes that were lent are needed. Raises Contradiction where another has one."""
        file, units = self._units(register, lanes)
        for unit in units:
            stack = self.owners[file].get(unit, [])
            if stack and stack[-1].register == register:
                stack[-1] = Owner(register)
                if register >= 0:
                    self.since.setdefault((file, unit, register), self.now)
            elif any(owner.register == register for owner in stack):
                raise Contradiction(f"{file}{unit} is needed back, and another has it")

    def leave(self, register: int, lanes: int) -> None:
        """Lanes of a virtual register are free from here on."""
        file, units = self._units(register, lanes)
        for unit in units:
            stack = self.owners[file].get(unit)
            if stack is not None:
                stack[:] = [owner for owner in stack if owner.register != register]
                if not stack:
                    del self.owners[file][unit]
                    self.free[file] |= 1 << unit
            self._end(file, unit, register)

    def cross_out(self, register: int, width: int) -> None:
        """The line of a virtual register goes, and what it has is free."""
        self.leave(register, (1 << width) - 1)
        del self.live[register]

    def has(self, register: int) -> bool:
        """True if there is a line; the function itself needs none."""
        return register < 0 or register in self.live

    def _units(self, register: int, lanes: int) -> tuple[str, list[int]]:
        """The file of a virtual register, and the numbers in it of some of its lanes."""
        if register < 0:
            return owned_file(register), numbers_of(lanes)
        place = self.live[register]
        return place.file, [place.number + lane for lane in numbers_of(lanes)]

    def _end(self, file: str, unit: int, register: int) -> None:
        """A lane ends its stay; one that was lent as soon as it was taken had none."""
        last = self.since.pop((file, unit, register), None)
        if last is not None and self.now <= last:
            self.stays.setdefault(file, []).append((self.now, last, 1 << unit))

    def saved(self) -> NotesLedger:
        """A copy of the notes as they are."""
        return NotesLedger(
            dict(self.free),
            {f: {u: list(s) for u, s in stacks.items()} for f, stacks in self.owners.items()},
            dict(self.live),
            dict(self.given),
            self.now,
            dict(self.highest),
            dict(self.since),
            {file: list(stays) for file, stays in self.stays.items()},
            dict(self.kept),
        )

    def restore(self, saved: NotesLedger) -> None:
        """The notes become what they were."""
        again = saved.saved()
        for each in fields(self):
            setattr(self, each.name, getattr(again, each.name))


def numbers_of(bits: int) -> list[int]:
    """The numbers of a set of bits, in ascending order."""
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


def noted_assignment(ledger: NotesLedger) -> Assignment:
    """What the notes gave to each virtual register."""
    return {
        register: PhysicalRegister(place.file, place.number)
        for register, place in ledger.given.items()
    }
