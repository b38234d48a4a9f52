"""What the prompt format `notes` reads of a function's text, from its last line to its first.

The class at each mention, which mention is the first, where a virtual register is written
anew, where blocks jump, and the header's budget. Neither opcodes nor liveness.

- An instruction is read definitions first, then the virtual registers that begin at it
  are crossed out, then its guard and its uses. A definition that is written early, or that
  the instruction reads as well, is crossed out at the end of the instruction.
- A virtual register *begins* at its first mention. Where that is a use within a loop, a
  value comes around the loop: it begins at the head of the outermost such loop.
- It is *written anew* where an instruction without a guard defines the whole of it and does
  not read it. Its register is *lent* until the mention before is read, or the last jump in
  between that goes past the definition: the text has no word of it there. The same is true of
  the registers in which arguments arrive, until their last mention. What begins below all
  places up to which registers of its file are lent at the time may *borrow*.
- A *loop* is what stands between a block and one that jumps back to it, in the order of the
  text; loops that overlap without one holding the other are read as one. At its end the
  loop is read once *dry* (without registers), to find what lives around it.

Linear in the text, times the depth of loops.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from verilocc_bench.ir import FixedUnits, Function, Instruction, VirtualLanes
from verilocc_bench.model.prompts.notes.words import LENT

SHORT = 12
"""A register is not lent for fewer instructions than this: nothing would begin in time."""


class Role(Enum):
    """What a mention is, in the order of reading."""

    PLAIN = "C"
    BEGINS = "X"
    ANEW = "H"


@dataclass(frozen=True, slots=True)
class Mention:
    """A virtual register as it is read.

    `borrows`: it begins before any register of its file that is lent is needed back.
    `returns`: its register was lent, and is needed from here on. `cuts`: the last mention of
    an instruction at which that is so; a window ends here.
    """

    register: int
    role: Role = Role.PLAIN
    borrows: bool = False
    returns: bool = False
    cuts: bool = False


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of the text, its mentions in the order of reading.

    `dry`: a loop that is about to be read, all of it; `borrowers` are those of its virtual
    registers that may borrow where they live around it. `arguments_return`: here the
    registers of the arguments are needed back.
    """

    mentions: tuple[Mention, ...]
    dry: bool
    borrowers: frozenset[int] = frozenset()
    arguments_return: bool = False


@dataclass(frozen=True, slots=True)
class NotesBudget:
    """The registers of each file that may be given, as sets of bits.

    `registers` has the header's budget less what is reserved and what the function names
    itself. `arguments` are the scalar registers that it names as live on entry and never
    defines: they are lent from the end of the text up to their last mention.
    """

    registers: dict[str, int]
    arguments: int


def read_budget(function: Function) -> NotesBudget:
    """What the header and the function's own physical registers leave."""
    free = {file.name: (1 << file.count) - 1 for file in function.files}
    live_in = _units_by_file(function.live_ins)
    reserved = _units_by_file(function.reserved)
    named, defined = dict(live_in), dict[str, int]()
    for _, _, instruction in function.instructions():
        for location in _fixed(instruction):
            _add(named, location)
        for operand in instruction.definitions:
            if isinstance(operand.location, FixedUnits):
                _add(defined, operand.location)
    for taken in (reserved, named):
        for file, units in taken.items():
            free[file] &= ~units
    arguments = live_in.get("s", 0) & ~reserved.get("s", 0) & ~defined.get("s", 0)
    return NotesBudget(free, arguments)


def read_backwards(function: Function) -> Iterator[TextPart]:
    """The parts of the text in the order of reading."""
    text = _TextToRead(function)
    mentions: list[Mention] = []
    for index in range(len(text.instructions) - 1, -1, -1):
        for loop in text.loops_that_end_at.get(index, ()):
            yield TextPart(tuple(mentions), dry=False)
            mentions = []
            inside = tuple(_all_mentions(text, *loop))
            borrowers = {m.register for m in inside if text.borrows(m.register, index)}
            yield TextPart(inside, dry=True, borrowers=frozenset(borrowers))
        if index == text.last_argument:
            yield TextPart(tuple(mentions), dry=False)
            yield TextPart((), dry=False, arguments_return=True)
            mentions = []
        text.lend_at(index)
        mentions += text.mentions_of(index)
        mentions += text.begun_at_head.get(index, ())
    yield TextPart(tuple(mentions), dry=False)


def _all_mentions(text: _TextToRead, first: int, last: int) -> Iterator[Mention]:
    for index in range(last, first - 1, -1):
        yield from text.mentions_of(index)
        if index > first:  # what begins at the loop's own head lives around it
            yield from text.begun_at_head.get(index, ())


class _TextToRead:
    """The instructions in a row, with the loops and where virtual registers begin."""

    def __init__(self, function: Function) -> None:
        self.instructions = [instruction for _, _, instruction in function.instructions()]
        self._classes = function.virtual_registers
        loops = _loops(function)
        self.loops_that_end_at: dict[int, list[tuple[int, int]]] = {}
        for first, last in loops:  # outer loops first
            self.loops_that_end_at.setdefault(last, []).append((first, last))
        self.begun_at_head: dict[int, list[Mention]] = {}
        self._begins: dict[int, int] = {}
        self._find_begins(loops)
        self._loans = _Loans(function, self.instructions)
        arguments = read_budget(function).arguments
        self.last_argument = -1
        if arguments:
            self.last_argument = max(
                (
                    index
                    for index, instruction in enumerate(self.instructions)
                    if any(units.file == "s" for units in _fixed(instruction))
                ),
                default=-1,
            )
            self._loans.lend("s", self.last_argument)

    def _find_begins(self, loops: list[tuple[int, int]]) -> None:
        for index, instruction in enumerate(self.instructions):
            used = _registers(_read(instruction))
            for register in _registers(_locations(instruction)):
                if register in self._begins:
                    continue
                self._begins[register] = index
                around = [first for first, last in loops if first <= index <= last]
                if register in used and around:
                    # Half an instruction above the head, so that it begins at no instruction.
                    self._begins[register] = min(around)
                    mention = Mention(register, Role.BEGINS)
                    self.begun_at_head.setdefault(min(around), []).append(mention)
        self._at_head = {m.register for each in self.begun_at_head.values() for m in each}

    def lend_at(self, index: int) -> None:
        """What the instruction writes anew is lent from here on."""
        self._loans.begin_at(index)

    def borrows(self, register: int, index: int) -> bool:
        """Whether a virtual register that is read at an instruction may borrow."""
        begins = self._begins[register]
        if register in self._at_head:
            begins -= 1
        files = [f for f in self._classes[register].files if f in LENT]
        return bool(files) and self._loans.may_borrow(files[0], begins, index)

    def mentions_of(self, index: int) -> list[Mention]:
        """An instruction's mentions in the order of reading."""
        instruction = self.instructions[index]
        defined = _registers(o.location for o in instruction.definitions)
        used = _registers(_read(instruction))
        early = _registers(o.location for o in instruction.definitions if o.early_clobber)
        all_of = list(dict.fromkeys(defined + used))
        begun = [r for r in all_of if self._begins[r] == index and r not in self._at_head]
        anew = self._loans.anew_at(index)
        ended = [
            r for r in defined if (r in begun and r not in used and r not in early) or r in anew
        ]
        late = [r for r in begun if r not in ended]
        roles = [(r, Role.PLAIN) for r in defined]
        if len(defined) == 1 and defined == ended:
            roles = []
        roles += [(r, Role.ANEW if r in anew else Role.BEGINS) for r in ended]
        if len(used) != 1 or late != used:
            roles += [(r, Role.PLAIN) for r in used]
        roles += [(r, Role.BEGINS) for r in late]
        returning = self._loans.returning_at(index)
        mentioned = {register for register, _ in roles}
        roles = [(r, Role.PLAIN) for r in returning if r not in mentioned] + roles
        mentions, seen = [], set[int]()
        for place, (register, role) in enumerate(roles):
            returns = register in returning and register not in seen
            seen.add(register)
            cuts = bool(returning) and place == len(roles) - 1
            borrows = self.borrows(register, index)
            mentions.append(Mention(register, role, borrows, returns, cuts))
        return mentions


class _Loans:
    """Which registers are lent when: by file, the places where they are needed back."""

    def __init__(self, function: Function, instructions: list[Instruction]) -> None:
        self._files = [
            next((f for f in c.files if f in LENT), None) for c in function.virtual_registers
        ]
        self._needs: dict[str, list[int]] = {file: [] for file in LENT}
        self._anew: dict[int, dict[int, int]] = {}
        self._returning: dict[int, dict[int, None]] = {}
        jumps, loops = _forward_jumps(function), _loops(function)
        before: dict[int, int] = {}
        for index, instruction in enumerate(instructions):
            for register in _written_anew(function, instruction):
                mentioned = before.get(register, -1)
                if mentioned < 0 or self._files[register] is None:
                    continue
                past = (a for a, b in jumps if mentioned < a < index < b)
                need = max(past, default=mentioned)
                if index - need >= SHORT and not any(a <= need <= b < index for a, b in loops):
                    self._anew.setdefault(index, {})[register] = need
                    self._returning.setdefault(need, {})[register] = None
            for register in _registers(_locations(instruction)):
                before[register] = index

    def lend(self, file: str, need: int) -> None:
        """A register of a file is lent until an instruction above is read."""
        heapq.heappush(self._needs[file], -need)

    def begin_at(self, index: int) -> None:
        """What is written anew at an instruction is lent from there on."""
        for register, need in self._anew.get(index, {}).items():
            file = self._files[register]
            assert file is not None
            self.lend(file, need)

    def anew_at(self, index: int) -> set[int]:
        """What an instruction writes anew."""
        return set(self._anew.get(index, ()))

    def returning_at(self, index: int) -> list[int]:
        """Whose registers were lent and are needed from an instruction on."""
        return list(self._returning.get(index, ()))

    def may_borrow(self, file: str, begins: int, index: int) -> bool:
        """Whether what begins at an instruction does so before anything lent is needed."""
        needs = self._needs[file]
        while needs and -needs[0] > index:
            heapq.heappop(needs)
        return bool(needs) and begins > -needs[0]


def _written_anew(function: Function, instruction: Instruction) -> list[int]:
    """What an instruction defines as a whole, whatever it was."""
    if instruction.guard is not None:
        return []
    used = _registers(o.location for o in instruction.uses)
    found = []
    for operand in instruction.definitions:
        location = operand.location
        if not isinstance(location, VirtualLanes) or location.register in used:
            continue
        whole = location.count == function.virtual_registers[location.register].width
        if (whole or operand.undef) and not operand.early_clobber:
            found.append(location.register)
    return found


def _starts(function: Function) -> list[int]:
    starts = [0]
    for block in function.blocks:
        starts.append(starts[-1] + len(block.instructions))
    return starts


def _forward_jumps(function: Function) -> list[tuple[int, int]]:
    """(last instruction before, first after) of each edge that skips blocks."""
    starts = _starts(function)
    return [
        (starts[index + 1] - 1, starts[target])
        for index, block in enumerate(function.blocks)
        for target in block.successors
        if target > index + 1
    ]


def _loops(function: Function) -> list[tuple[int, int]]:
    """(first, last) instruction of each loop, outer ones before those that they hold."""
    starts = _starts(function)
    loops = {
        (starts[target], starts[index + 1] - 1)
        for index, block in enumerate(function.blocks)
        for target in block.successors
        if target <= index
    }
    ordered = sorted((loop for loop in loops if loop[0] <= loop[1]), key=_outer_first)
    joined: list[tuple[int, int]] = []
    for first, last in ordered:
        for place, (other, end) in enumerate(joined):
            if other < first <= end < last:
                joined[place] = (other, last)
        joined.append((first, last))
    return sorted(set(joined), key=_outer_first)


def _outer_first(loop: tuple[int, int]) -> tuple[int, int]:
    return loop[0], -loop[1]


def _locations(instruction: Instruction) -> list[VirtualLanes | FixedUnits]:
    locations = [o.location for o in instruction.definitions + instruction.uses]
    return locations if instruction.guard is None else [*locations, instruction.guard.location]


def _registers(locations: Iterable[VirtualLanes | FixedUnits]) -> list[int]:
    """The virtual registers of some locations, each once, in order."""
    found = [each.register for each in locations if isinstance(each, VirtualLanes)]
    return list(dict.fromkeys(found))


def _read(instruction: Instruction) -> list[VirtualLanes | FixedUnits]:
    """The guard and the uses."""
    guard = [] if instruction.guard is None else [instruction.guard.location]
    return guard + [o.location for o in instruction.uses]


def _fixed(instruction: Instruction) -> list[FixedUnits]:
    return [each for each in _locations(instruction) if isinstance(each, FixedUnits)]


def _add(files: dict[str, int], units: FixedUnits) -> None:
    mask = ((1 << units.count) - 1) << units.first
    files[units.file] = files.get(units.file, 0) | mask


def _units_by_file(units: tuple[FixedUnits, ...]) -> dict[str, int]:
    files: dict[str, int] = {}
    for each in units:
        _add(files, each)
    return files
