"""What the prompt format `text-notes` reads of a function's text, from its last line to its first.

The class at each mention, where a virtual register and its lanes begin, end and are written
anew (lane_lives), where blocks jump, and the header's budget. Neither opcodes nor
liveness.

- An instruction is read definitions first, then the virtual registers that begin at it
  are crossed out, then its guard and its uses. A definition that is written early, or that
  the instruction reads as well, is crossed out at the end of the instruction.
- A virtual register *begins* at its first mention. Where one of its lanes comes around a loop, it
  begins at the head of the outermost such loop. A lane that begins below leaves its register
  there. A predicate that may guard something before it is written begins at the entry.
- A lane that holds nothing for a while is *lent* until it is needed: to whoever begins
  below that place. The same is true of the registers that the function names itself: from
  the end of the text up to their last mention, and above their first, if they do not live on
  entry.
- A *loop* is what stands between a block and one that jumps back to it, in the order of the
  text; loops that overlap without one holding the other are read as one. At its end the
  loop is read once *dry* (without registers), to find what lives around it.

Linear in the text, times the depth of loops, but for jumps past written lanes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, Function, Instruction, VirtualLanes
from verilocc_bench.model.notes.lane_lives import (
    NOWHERE_WRITTEN,
    ON_ENTRY,
    Lane,
    LaneLife,
    Span,
    lane_lives,
    owned_file,
    read_at,
    read_locations,
    written_at,
)
from verilocc_bench.model.notes.notes_words import REGISTERS


class Role(Enum):
    """What a mention is, in the order of reading."""

    PLAIN = "C"
    BEGINS = "X"


@dataclass(frozen=True, slots=True)
class Deed:
    """What becomes of lanes (a set of bits) of a virtual register, or of the function's own.

    They are lent `until` a place, or they return, or else they are free from here on. `place` is
    where in the text that is.
    """

    register: int
    lanes: int
    until: int | None = None
    returns: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class Mention:
    """A virtual register as it is read.

    `begins`: the place at which it begins; above a loop's head if it comes around the loop.
    `later`: (lanes, until) of the lanes that end above, and are lent if this is the first that
    is read of the virtual register. `before`: what is done before. `place`: where it is read.
    """

    register: int
    role: Role = Role.PLAIN
    begins: int = 0
    later: tuple[tuple[int, int], ...] = ()
    before: tuple[Deed, ...] = ()
    place: int = 0

    def lent_at_once(self) -> list[Deed]:
        """What is lent as soon as the virtual register has a register."""
        below = self.place + 1
        return [Deed(self.register, lanes, until, place=below) for lanes, until in self.later]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of the text, its mentions in the order of reading.

    `dry`: a loop that is about to be read, all of it, up to the instruction `end`.
    """

    mentions: tuple[Mention, ...]
    text: TextToRead
    dry: bool = False
    end: int = 0

    def around(self, register: int) -> Mention:
        """The mention, at the loop's end, of one that lives around it."""
        return self.text.mention(register, Role.PLAIN, self.end, written_at(self.end))


@dataclass(frozen=True, slots=True)
class NotesBudget:
    """The registers of each file that may be given.

    `registers` has the header's budget less what is reserved and what the function names itself,
    as sets of bits. `named` are those that it names and that are not reserved, each
    with the place up to which it is lent from the end of the text.
    """

    registers: dict[str, int]
    named: dict[str, dict[int, int]]


def read_budget(function: Function) -> NotesBudget:
    """What the header and the function's own physical registers leave."""
    free = {f.name: (1 << f.count) - 1 for f in function.files if f.name in REGISTERS}
    for units in function.reserved:
        if units.file in free:
            free[units.file] &= ~(((1 << units.count) - 1) << units.first)
    named: dict[str, dict[int, int]] = {file: {} for file in free}
    lives = lane_lives(function, _loops(function), _forward_jumps(function))
    for (owner, unit), life in lives.items():
        if owner < 0 and free.get(owned_file(owner), 0) >> unit & 1:
            named[owned_file(owner)][unit] = life.end
    for file, lent in named.items():
        for unit in lent:
            free[file] &= ~(1 << unit)
    return NotesBudget(free, named)


def read_backwards(function: Function) -> Iterator[TextPart]:
    """The parts of the text in the order of reading."""
    text = TextToRead(function)
    mentions: list[Mention] = []
    deeds: list[Deed] = []
    for index in range(len(text.instructions) - 1, -1, -1):
        for first, last in text.loops_that_end_at.get(index, ()):
            yield TextPart(tuple(mentions), text)
            mentions = []
            inside = tuple(_all_mentions(text, first, last))
            yield TextPart(inside, text, dry=True, end=last)
        mentions += text.mentions_of(index, deeds)
        mentions += text.begun_at_head.get(index, ())
    yield TextPart(tuple(mentions), text)


def _all_mentions(text: TextToRead, first: int, last: int) -> Iterator[Mention]:
    for index in range(last, first - 1, -1):
        yield from text.mentions_of(index, [])
        if index > first:  # what begins at the loop's own head lives around it
            yield from text.begun_at_head.get(index, ())


class TextToRead:
    """The instructions in a row, with the loops, and where virtual registers and lanes begin."""

    def __init__(self, function: Function) -> None:
        self.instructions = [instruction for _, _, instruction in function.instructions()]
        loops = _loops(function)
        self.loops_that_end_at: dict[int, list[Span]] = {}
        for first, last in loops:  # outer loops first
            self.loops_that_end_at.setdefault(last, []).append((first, last))
        self.begun_at_head: dict[int, list[Mention]] = {}
        self._begins: dict[int, int] = {}
        self._at_head: set[int] = set()
        self._written_first: set[int] = set()
        lives = lane_lives(function, loops, _forward_jumps(function))
        self._find_begins(loops, lives)
        self._returns: dict[int, list[Deed]] = defaultdict(list)
        self._deeds: dict[tuple[int, bool], list[Deed]] = defaultdict(list)
        self._ends: dict[int, dict[int, int]] = {}
        self._find_deeds(lives)

    def _find_begins(self, loops: list[Span], lives: dict[Lane, LaneLife]) -> None:
        come_around: dict[int, list[Lane]] = defaultdict(list)
        for owned, life in lives.items():
            if owned[0] >= 0 and life.begin == NOWHERE_WRITTEN:
                come_around[life.first].append(owned)
        heads: dict[int, int] = {}
        seen: set[tuple[int, int]] = set()
        for index, instruction in enumerate(self.instructions):
            read = read_locations(instruction)
            used = _registers(read)
            early = _registers(o.location for o in instruction.definitions if o.early_clobber)
            for register in _registers(_locations(instruction)):
                if register not in self._begins and register not in used + early:
                    self._written_first.add(register)
                self._begins.setdefault(register, index)
            around = [first for first, last in loops if first <= index <= last]
            for register, lane in (*_lanes(read), *come_around[index]) if around else ():
                if (register, lane) not in seen and min(around) <= self._begins[register]:
                    heads[register] = self._begins[register] = min(around)
            for register, lane in come_around[index]:
                if lives[register, lane].on_entry:
                    heads[register] = self._begins[register] = ON_ENTRY
            seen.update(_lanes(_locations(instruction)))
        self._at_head = set(heads)
        for register, head in heads.items():
            begins = read_at(head) - 1
            mention = Mention(register, Role.BEGINS, begins, place=begins)
            self.begun_at_head.setdefault(max(head, 0), []).append(mention)

    def _find_deeds(self, lives: dict[Lane, LaneLife]) -> None:
        """Lanes that are free, lent and needed, by the instruction at which that is so."""
        freed: dict[tuple[int, bool, int], int] = defaultdict(int)
        lent: dict[tuple[int, int, int], int] = defaultdict(int)
        for (register, lane), life in lives.items():
            if life.begin > self._begins.get(register, NOWHERE_WRITTEN):
                freed[life.begin, life.early, register] |= 1 << lane
            for above, below in life.holes:
                lent[below, register, above] |= 1 << lane
            ends = self._ends.setdefault(register, {})
            ends[life.end] = ends.get(life.end, 0) | 1 << lane
        for (index, early, register), lanes in freed.items():
            place = read_at(index) if early else written_at(index)
            self._deeds[index, early].append(Deed(register, lanes, place=place))
        for (index, register, until), lanes in lent.items():
            self._deeds[index, False].append(Deed(register, lanes, until, place=written_at(index)))
            self._returns[until].append(Deed(register, lanes, returns=True, place=until))
        for register, ends in self._ends.items():
            for until, lanes in ends.items():
                self._returns[until].append(Deed(register, lanes, returns=True, place=until))

    def mention(
        self,
        register: int,
        role: Role,
        index: int,
        place: int,
        before: Iterable[Deed] = (),
    ) -> Mention:
        """A virtual register as it is read at a place of an instruction."""
        begins = read_at(self._begins[register])
        if register in self._at_head:
            begins -= 1
        elif register in self._written_first:
            begins += 1
        ends = self._ends[register].items()
        later = tuple((lanes, end) for end, lanes in ends if end < read_at(index))
        return Mention(register, role, begins, later, tuple(before), place)

    def mentions_of(self, index: int, deeds: list[Deed]) -> list[Mention]:
        """An instruction's mentions in the order of reading.

        `deeds` are done before the next mention; afterwards it holds the deeds that are left.
        """
        instruction = self.instructions[index]
        defined = _registers(o.location for o in instruction.definitions)
        used = _registers(read_locations(instruction))
        begun = [
            r
            for r in dict.fromkeys(defined + used)
            if self._begins[r] == index and r not in self._at_head
        ]
        ended = [r for r in begun if r in self._written_first]
        late = [r for r in begun if r not in self._written_first]
        read_back = [
            *self._deeds.get((index, False), ()),
            *self._returns.get(read_at(index), ()),
        ]
        stages: list[tuple[Iterable[Deed], list[int], Role]] = [
            (self._returns.get(written_at(index), ()), defined, Role.PLAIN),
            ((), ended, Role.BEGINS),
            (read_back, used, Role.PLAIN),
            ((), late, Role.BEGINS),
            (self._deeds.get((index, True), ()), [], Role.PLAIN),
        ]
        mentions: list[Mention] = []
        for stage, (done, registers, role) in enumerate(stages):
            deeds += done
            if len(registers) == 1 and stage in (0, 2) and registers == stages[stage + 1][1]:
                continue  # it is crossed out at once
            place = written_at(index) if stage < 2 else read_at(index)
            for register in registers:
                mentions.append(self.mention(register, role, index, place, deeds))
                deeds.clear()
        return mentions


def refuse_unspeakable(function: Function) -> None:
    """Raises InputError for what the words have no way to speak of.

    That is a tie of two virtual registers, and a call that destroys registers.
    """
    if function.masks():
        raise InputError(
            "the prompt format text-notes has no words for registers that calls destroy"
        )
    for _, _, instruction in function.instructions():
        for use in instruction.uses:
            if use.tied_to is None:
                continue
            if use.location != instruction.definitions[use.tied_to].location:
                raise InputError(
                    "the prompt format text-notes has no word for a tie of two virtual registers "
                    f"({instruction.opcode})"
                )


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


def _lanes(locations: Iterable[VirtualLanes | FixedUnits]) -> set[tuple[int, int]]:
    return {
        (each.register, lane)
        for each in locations
        if isinstance(each, VirtualLanes)
        for lane in range(each.first, each.first + each.count)
    }


def _registers(locations: Iterable[VirtualLanes | FixedUnits]) -> list[int]:
    """The virtual registers of some locations, each once, in order."""
    found = [each.register for each in locations if isinstance(each, VirtualLanes)]
    return list(dict.fromkeys(found))
