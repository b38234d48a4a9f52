"""The notes: what each virtual register has, and what is free.

The ledger holds what the words said and nothing else. A register without an owner is *free*. A
register is *on loan* if its last owner lent it until some instruction: a virtual register that
begins below may take it until then. So each register has a stack of owners, and
all but the uppermost have lent it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from verilocc_bench.ir import Assignment, PhysicalRegister, RegisterClass
from verilocc_bench.model.prompts.notes.lanes import file_owner, owned_file
from verilocc_bench.model.prompts.notes.reading import NotesBudget


class Contradiction(Exception):
    """The words contradict the notes; the message says in what."""


@dataclass(frozen=True, slots=True)
class NotedPlace:
    """A base register."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Owner:
    """One who has a register. `until`: it is lent until that instruction is read."""

    register: int
    until: int | None = None


Stacks = dict[str, dict[int, list[Owner]]]


@dataclass(slots=True)
class NotesLedger:
    """Lines, owners and free registers.

    `free` has the registers of each file that nobody has, as sets of bits; `owners` the stacks
    of the others, by their numbers. `live` are the lines that are not crossed out, `given` all.
    """

    free: dict[str, int]
    owners: Stacks = field(default_factory=dict)
    live: dict[int, NotedPlace] = field(default_factory=dict)
    given: dict[int, NotedPlace] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: NotesBudget) -> NotesLedger:
        """The notes before the first word: all registers of the budget are free."""
        owners = {
            file: {unit: [Owner(file_owner(file), until)] for unit, until in named.items()}
            for file, named in budget.named.items()
        }
        return cls(dict(budget.registers), owners)

    def _open(self, file: str, begins: int) -> int:
        units = self.free[file]
        for unit, stack in self.owners[file].items():
            until = stack[-1].until
            if until is not None and until < begins:
                units |= 1 << unit
        return units

    def take(self, register: int, kind: RegisterClass, place: NotedPlace, begins: int) -> None:
        """A line for a virtual register. Raises Contradiction where its place is not free."""
        units = ((1 << kind.width) - 1) << place.number
        if place.file not in self.free or not kind.allows(place.file, place.number):
            raise Contradiction(f"%{register} cannot be in {place.file}{place.number}")
        if units & ~self._open(place.file, begins):
            raise Contradiction(f"{place.file}{place.number} is not free for %{register}")
        self.free[place.file] &= ~units
        stacks = self.owners[place.file]
        for unit in range(place.number, place.number + kind.width):
            stacks.setdefault(unit, []).append(Owner(register))
        self.live[register] = place
        self.given[register] = place

    def lend(self, register: int, lanes: int, until: int) -> None:
        """Lanes of a virtual register are lent, so far as it has them."""
        file, first = self._base(register)
        for unit in _numbers(lanes, first):
            stack = self.owners[file].get(unit)
            if stack and stack[-1] == Owner(register):
                stack[-1] = Owner(register, until)

    def give_back(self, register: int, lanes: int) -> None:
        """Lanes that were lent are needed. Raises Contradiction where another has one."""
        file, first = self._base(register)
        for unit in _numbers(lanes, first):
            stack = self.owners[file].get(unit, [])
            if stack and stack[-1].register == register:
                stack[-1] = Owner(register)
            elif any(owner.register == register for owner in stack):
                raise Contradiction(f"{file}{unit} is needed back, and another has it")

    def leave(self, register: int, lanes: int) -> None:
        """Lanes of a virtual register are free from here on."""
        file, first = self._base(register)
        for unit in _numbers(lanes, first):
            stack = self.owners[file].get(unit)
            if stack is None:
                continue
            stack[:] = [owner for owner in stack if owner.register != register]
            if not stack:
                del self.owners[file][unit]
                self.free[file] |= 1 << unit

    def has(self, register: int) -> bool:
        """Whether there is a line; the function itself needs none."""
        return register < 0 or register in self.live

    def cross_out(self, register: int, width: int) -> None:
        """The line of a virtual register goes, and what it has is free."""
        self.leave(register, (1 << width) - 1)
        del self.live[register]

    def _base(self, register: int) -> tuple[str, int]:
        """The file and number of lane 0."""
        if register < 0:
            return owned_file(register), 0
        place = self.live[register]
        return place.file, place.number

    def saved(self) -> NotesLedger:
        """A copy of the notes as they are."""
        owners = {f: {u: list(s) for u, s in stacks.items()} for f, stacks in self.owners.items()}
        return NotesLedger(dict(self.free), owners, dict(self.live), dict(self.given))

    def restore(self, saved: NotesLedger) -> None:
        """The notes become what they were."""
        again = saved.saved()
        self.free, self.owners = again.free, again.owners
        self.live, self.given = again.live, again.given


def _numbers(lanes: int, first: int) -> list[int]:
    return [first + lane for lane in range(lanes.bit_length()) if lanes >> lane & 1]


def noted_assignment(ledger: NotesLedger) -> Assignment:
    """What the notes gave to each virtual register."""
    return {
        register: PhysicalRegister(place.file, place.number)
        for register, place in ledger.given.items()
    }
