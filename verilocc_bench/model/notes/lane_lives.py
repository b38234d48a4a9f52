"""Where each lane of a virtual register begins, ends, and holds nothing, as the text shows it.

A lane *begins* at its first mention in the text, if that writes it; one that is read first
comes around a loop, or from nowhere. A lane comes around, too, if its first mention in a loop
may leave it as it is, because of a guard or of a jump past it, and another mention may read it
then. A predicate that may guard something before it is written comes from the entry.

It *ends* at its last mention, or at the end of the outermost loop that has one of its mentions
but not its begin. In between it holds nothing above an instruction without a guard that writes
it and does not read it, up to the mention before, the end of a loop in between that has that
mention, or the last jump in between that goes past.

Mentions alone count: neither opcodes nor what blocks lead where, but for jumps back and past.

A *place* in the text is twice the number of an instruction, where it reads, and one more where
it writes. So what one instruction reads for the last time can make room for what it writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from verilocc_bench.ir import FixedUnits, Function, Instruction, VirtualLanes
from verilocc_bench.model.notes.notes_words import REGISTERS

ON_ENTRY = -1
"""The instruction before all others, which reads what lives on entry."""

NOWHERE_WRITTEN = -1
"""The begin of a lane that is read before it is written."""

BEYOND = 1 << 30
"""More instructions than a function has."""

Lane = tuple[int, int]
"""A virtual register and the number of a lane; or the owner of a file (`file_owner`) and a unit."""

Span = tuple[int, int]

Literal = tuple[Lane, bool]
"""A predicate's lane, and whether it is negated."""


@dataclass(frozen=True, slots=True)
class LaneMention:
    """A mention of a lane.

    `reads`: it is among the uses. `only_reads`: and not among the definitions. `writes`: the
    old value is neither read nor kept. `guard`: where the instruction acts; None if it always
    does, and for the lane of the guard itself, which `guards`.
    """

    index: int
    reads: bool
    only_reads: bool
    writes: bool
    early: bool
    guard: Literal | None = None
    guards: bool = False


@dataclass(frozen=True, slots=True)
class LaneLife:
    """A lane's begin (an instruction), its end (a place), and where it holds nothing.

    `first`: the instruction of its first mention. `on_entry`: it may guard something before it
    is written. `holes`: each (place up to which, instruction from which) it holds nothing.
    `early`: it begins before its instruction reads.
    """

    first: int
    on_entry: bool
    begin: int
    end: int
    early: bool
    holes: tuple[Span, ...]


def file_owner(file: str) -> int:
    """Who has the registers of a file that the function names itself."""
    return -1 - list(REGISTERS).index(file)


def owned_file(owner: int) -> str:
    """The file of such an owner."""
    return list(REGISTERS)[-1 - owner]


def lane_lives(
    function: Function, loops: Sequence[Span], jumps: Sequence[Span]
) -> dict[Lane, LaneLife]:
    """The life of each lane. `jumps`: (from, to) of each forward jump that skips something."""
    mentions: dict[Lane, list[LaneMention]] = {}
    for units in function.live_ins:
        for lane in _lanes(units):
            mentions[lane] = [LaneMention(ON_ENTRY, True, True, False, False)]
    for index, (_, _, instruction) in enumerate(function.instructions()):
        for lane, mention in _mentions_of(function, index, instruction):
            mentions.setdefault(lane, []).append(mention)
    ways = _Ways(mentions, loops, jumps)
    lives: dict[Lane, LaneLife] = {}
    for lane, found in mentions.items():
        on_entry = ways.guards_from_entry(found)
        around = on_entry or found[0].reads or ways.comes_around(found)
        begin = NOWHERE_WRITTEN if around else found[0].index
        lives[lane] = _life(found, begin, on_entry, loops, jumps)
    return lives


def _mentions_of(
    function: Function, index: int, instruction: Instruction
) -> Iterator[tuple[Lane, LaneMention]]:
    read = {lane for each in read_locations(instruction) for lane in _lanes(each)}
    written: dict[Lane, bool] = {}
    for operand in instruction.definitions:
        lanes = _lanes(operand.location)
        if operand.undef and isinstance(operand.location, VirtualLanes):
            register = operand.location.register
            width = function.virtual_registers[register].width
            lanes = [(register, lane) for lane in range(width)]
        for key in lanes:
            written[key] = written.get(key, False) or operand.early_clobber
    guard: Literal | None = None
    if instruction.guard is not None:
        for lane in _lanes(instruction.guard.location):
            guard = lane, instruction.guard.negated
    for key in dict.fromkeys([*written, *read]):
        writes = key in written and key not in read and instruction.guard is None
        early = written.get(key, False)
        guards = guard is not None and guard[0] == key
        own = None if guards else guard
        yield key, LaneMention(index, key in read, key not in written, writes, early, own, guards)


@dataclass(frozen=True, slots=True)
class _Ways:
    """Where a value may go: on to the next instruction, and along (last before, first after)."""

    lanes: Mapping[Lane, Sequence[LaneMention]]
    loops: Sequence[Span]
    jumps: Sequence[Span]

    def comes_around(self, mentions: Sequence[LaneMention]) -> bool:
        """Whether a lane that is not read first may keep a value for the next turn of a loop.

        It may if another mention reads it on a way that does not write it anew: past the
        first mention, or through it where its guard does not hold.
        """
        first = mentions[0]
        around = [begin for begin, end in self.loops if begin <= first.index <= end]
        if not around:
            return False
        starts = [(b, False) for a, b in self.jumps if min(around) <= a < first.index < b]
        if not first.writes:
            # A call may destroy a physical predicate, which no mention shows.
            known = first.guard is not None and first.guard[0][0] >= 0
            starts.append((first.index + 1, known))
        return self._is_read(mentions, starts, first.index + 1)

    def guards_from_entry(self, mentions: Sequence[LaneMention]) -> bool:
        """Whether a lane may be a guard that nothing has written."""
        guards = [mention for mention in mentions if mention.guards or mention.writes]
        return any(m.guards for m in guards) and self._is_read(guards, [(0, False)], 0)

    def _is_read(
        self, mentions: Sequence[LaneMention], starts: list[tuple[int, bool]], lowest: int
    ) -> bool:
        """Whether a mention may read the lane on a way from a start, before it is written anew.

        A start is an instruction, and whether it is known there that the first mention's guard
        does not hold: another mention with that guard then reads nothing, until the guard may be
        written. Ways that lead to an instruction before `lowest` end there.
        """
        guard = mentions[0].guard
        written = (
            [m.index for m in self.lanes.get(guard[0], ()) if not m.only_reads] if guard else []
        )
        waiting, seen = list(starts), set(starts)
        while waiting:
            start, inactive = waiting.pop()
            same = min((w for w in written if w >= start), default=BEYOND) if inactive else -1
            stop = BEYOND
            for mention in mentions:
                if mention.index < start:
                    continue
                if mention.reads and not (mention.index <= same and mention.guard == guard):
                    return True
                if mention.writes:
                    stop = mention.index
                    break
            for a, b in (*self.jumps, *((end, begin) for begin, end in self.loops)):
                way = b, a < same
                if start <= a < stop and b >= lowest and way not in seen:
                    seen.add(way)
                    waiting.append(way)
        return False


def _life(
    mentions: Sequence[LaneMention],
    begin: int,
    on_entry: bool,
    loops: Sequence[Span],
    jumps: Sequence[Span],
) -> LaneLife:
    first = mentions[0]

    def kept(index: int, place: int, below: int) -> int:
        """Until which place a value that is needed at one is kept, if it is written below."""
        ends = [written_at(b) for a, b in loops if begin < a <= index <= b < below]
        return max(ends, default=place)

    def needed(mention: LaneMention, below: int) -> int:
        place = read_at(mention.index) if mention.only_reads else written_at(mention.index)
        return kept(mention.index, place, below)

    holes = []
    for before, mention in itertools.pairwise(mentions):
        if not mention.writes or mention.early:
            continue
        index = mention.index
        past = [kept(a, written_at(a), index) for a, b in jumps if before.index < a < index < b]
        above = max([needed(before, index), *past])
        if above < read_at(index):
            holes.append((above, index))
    nowhere = mentions[-1].index + BEYOND
    end = max(needed(mention, nowhere) for mention in mentions)
    return LaneLife(first.index, on_entry, begin, end, first.early, tuple(holes))


def read_at(index: int) -> int:
    """The place where an instruction reads."""
    return 2 * index


def written_at(index: int) -> int:
    """The place where an instruction writes."""
    return 2 * index + 1


def _lanes(location: VirtualLanes | FixedUnits) -> list[Lane]:
    if isinstance(location, FixedUnits):
        if location.file not in REGISTERS:
            return []
        owner = file_owner(location.file)
    else:
        owner = location.register
    return [(owner, lane) for lane in range(location.first, location.first + location.count)]


def read_locations(instruction: Instruction) -> list[VirtualLanes | FixedUnits]:
    """The guard and the uses."""
    guard = [] if instruction.guard is None else [instruction.guard.location]
    return guard + [operand.location for operand in instruction.uses]
