"""Tracks the value of a lane: the definitions it comes from, and its next reader.

Both are walks over the control-flow graph from a place of the program. A walk
knows the value of the guard of its first instruction until an instruction writes
that predicate, and skips instructions and branches that act only under the other
value. For any other guard both outcomes count, so a guarded definition does not
hide earlier ones. The walks do not ask if the entry can lead to a definition.
Without guards they are exact.

The results beyond the first block are kept by lane and block. Within a block a
walk visits only the instructions that concern the lane.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.conditions import Literal
from verilocc_bench.edits.findings import Place
from verilocc_bench.ir import FixedUnits, Guard, Instruction, VirtualLanes

ENTRY: Place = (0, -1)


class _Event(NamedTuple):
    """The effects of an instruction that acts on one lane.

    `ends` is True if the old value is gone, with or without a new definition.
    `guards` is True if the lane is the instruction's guard.
    """

    at: int
    reads: bool
    defines: bool
    ends: bool
    guards: bool
    guard: Literal | None


class _Track:
    """The events of one lane in one block, in order."""

    __slots__ = ("definitions", "events", "indices")

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.events: list[_Event] = []
        self.definitions: list[int] = []

    def add(self, event: _Event) -> None:
        self.indices.append(event.at)
        self.events.append(event)
        if event.defines:
            self.definitions.append(event.at)


_NOTHING = _Track()


def _acts(guard: Literal | None, known: Literal | None) -> bool | None:
    """True if an instruction acts, False if not, None if that is not known."""
    if guard is None:
        return True
    if known is None or guard[0] != known[0]:
        return None
    return guard[1] == known[1]


class ValueTracker:
    """Tracks the lanes of one problem, numbered as in its liveness."""

    def __init__(self, problem: AllocationProblem) -> None:
        function, liveness = problem.function, problem.liveness
        self.problem = problem
        self._fixed = {
            units: lane
            for lane, units in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count)
        }
        self._lengths = [len(block.instructions) for block in function.blocks]
        self._successors = [block.successors for block in function.blocks]
        self._predecessors: list[list[int]] = [[] for _ in function.blocks]
        for index, block in enumerate(function.blocks):
            for successor in block.successors:
                self._predecessors[successor].append(index)
        self._branches = [self.literal(block.branch_guard) for block in function.blocks]
        self._tracks: dict[tuple[int, int], _Track] = {}
        for block_index, index, instruction in function.instructions():
            self._note(block_index, index, instruction)
        self.steps = 0
        """The number of blocks that all walks have visited and of places that they returned."""
        self._sources: dict[tuple[int, int, Literal | None], frozenset[Place]] = {}
        self._reads: dict[tuple[int, int, Literal | None], Place | None] = {}

    def lanes(self, location: VirtualLanes | FixedUnits) -> range | list[int]:
        """The lanes of an operand."""
        if isinstance(location, FixedUnits):
            units = range(location.first, location.first + location.count)
            return [self._fixed[location.file, index] for index in units]
        first = self.problem.liveness.lane_offsets[location.register] + location.first
        return range(first, first + location.count)

    def literal(self, guard: Guard | None) -> Literal | None:
        """The predicate and the value that it has when an instruction with this guard acts."""
        return None if guard is None else (self.lanes(guard.location)[0], not guard.negated)

    def _note(self, block: int, index: int, instruction: Instruction) -> None:
        guard = self.literal(instruction.guard)
        classes = self.problem.function.virtual_registers
        read: set[int] = set()
        defined: set[int] = set()
        ended: set[int] = set()
        for use in instruction.uses:
            if not use.undef:
                read.update(self.lanes(use.location))
        for definition in instruction.definitions:
            location = definition.location
            defined.update(self.lanes(location))
            if definition.undef and isinstance(location, VirtualLanes):
                whole = VirtualLanes(location.register, 0, classes[location.register].width)
                ended.update(self.lanes(whole))
        for units in instruction.destroys:
            for unit in range(units.first, units.first + units.count):
                # A unit where no virtual register may lie has no lane.
                fixed = self._fixed.get((units.file, unit))
                if fixed is not None:
                    ended.add(fixed)
        ended |= defined
        for lane in read | ended if guard is None else read | ended | {guard[0]}:
            guards = guard is not None and guard[0] == lane
            event = _Event(index, lane in read, lane in defined, lane in ended, guards, guard)
            track = self._tracks.get((lane, block))
            if track is None:
                track = self._tracks[lane, block] = _Track()
            track.add(event)

    def position(self, lane: int, place: Place) -> int:
        """The number of instructions in the block of a place, before it, that concern a lane."""
        return bisect_left(self._tracks.get((lane, place[0]), _NOTHING).indices, place[1])

    def sources(self, lane: int, place: Place, known: Literal | None) -> tuple[Place, ...]:
        """The definitions whose value a lane may hold before the instruction at a place.

        `known` holds at that place. The result is in the order of the program; the
        entry is (0, -1).
        """
        block, index = place
        found, survives, known = self._backwards(lane, block, index, known)
        places = set(found)
        if survives:
            places |= self._sources_before(lane, block, known)
        self.steps += len(places)
        return tuple(sorted(places))

    def _backwards(
        self, lane: int, block: int, end: int, known: Literal | None
    ) -> tuple[list[Place], bool, Literal | None]:
        """The definitions in a block whose values a lane may hold before an instruction.

        Also returns True if the lane may hold an older value, and what is known at
        the head of the block.
        """
        fence = -1
        if known is not None:
            written = self._tracks.get((known[0], block), _NOTHING).definitions
            if position := bisect_left(written, end):
                fence = written[position - 1]
        found: list[Place] = []
        track = self._tracks.get((lane, block), _NOTHING)
        for position in range(bisect_left(track.indices, end) - 1, -1, -1):
            event = track.events[position]
            acts = _acts(event.guard, known if event.at > fence else None)
            if acts is False:
                continue
            if event.defines:
                found.append((block, event.at))
            if event.ends and acts:
                return found, False, None
        return found, True, known if fence < 0 else None

    def _sources_before(self, lane: int, block: int, known: Literal | None) -> frozenset[Place]:
        """The definitions whose value a lane may hold at the head of a block."""
        key = lane, block, known
        if key not in self._sources:
            places: set[Place] = set()
            seen = {(block, known)}
            pending = [(block, known)]
            while pending:
                head, fact = pending.pop()
                self.steps += 1 + len(self._predecessors[head])
                if head == 0 and self.problem.liveness.defined[lane] & 1:
                    places.add(ENTRY)
                for before in self._predecessors[head]:
                    if head not in self._choices(before, fact):
                        continue
                    end = self._lengths[before]
                    found, survives, left = self._backwards(lane, before, end, fact)
                    places.update(found)
                    if survives and (before, left) not in seen:
                        seen.add((before, left))
                        pending.append((before, left))
            self._sources[key] = frozenset(places)
        return self._sources[key]

    def _choices(self, block: int, known: Literal | None) -> tuple[int, ...]:
        """The successors of a block that are possible under what is known at its end."""
        acts = _acts(self._branches[block], known)
        if self._branches[block] is None or acts is None:
            return self._successors[block]
        return self._successors[block][:1] if acts else self._successors[block][1:]

    def next_use(self, lane: int, place: Place, known: Literal | None) -> Place | None:
        """The nearest place, in instructions, that reads the value of a lane before a place.

        The instruction at the place counts as the first. `known` holds before it.
        """
        block, start = place
        read, survives, known = self._forwards(lane, block, start, known)
        if read is not None:
            return block, read
        if not survives:
            return None
        key = lane, block, known
        if key not in self._reads:
            self._reads[key] = self._search(lane, block, known)
        return self._reads[key]

    def known_after(self, place: Place, known: Literal | None) -> Literal | None:
        """The known predicate value, or None if the instruction at a place writes the predicate."""
        if known is not None:
            written = self._tracks[known[0], place[0]].definitions
            position = bisect_left(written, place[1])
            if position < len(written) and written[position] == place[1]:
                return None
        return known

    def _forwards(
        self, lane: int, block: int, start: int, known: Literal | None
    ) -> tuple[int | None, bool, Literal | None]:
        """The first reader in a block from an instruction on, or None.

        Also returns True if the value can reach the end of the block, and what is
        known there.
        """
        fence = self._lengths[block]
        if known is not None:
            written = self._tracks.get((known[0], block), _NOTHING).definitions
            position = bisect_left(written, start)
            if position < len(written):
                fence = written[position]
        track = self._tracks.get((lane, block), _NOTHING)
        for position in range(bisect_left(track.indices, start), len(track.events)):
            event = track.events[position]
            acts = _acts(event.guard, known if event.at <= fence else None)
            if event.guards or (event.reads and acts is not False):
                return event.at, False, None
            if event.ends and acts:
                return None, False, None
        return None, True, known if fence == self._lengths[block] else None

    def _search(self, lane: int, block: int, known: Literal | None) -> Place | None:
        """The nearest reader beyond the end of a block, block by block in order of distance."""
        best: tuple[int, Place] | None = None
        seen: set[tuple[int, Literal | None]] = set()
        pending = sorted((0, head, known is None) for head in self._choices(block, known))
        while pending:
            distance, head, forgotten = heappop(pending)
            fact = None if forgotten else known
            if best is not None and distance > best[0]:
                break
            if (head, fact) in seen:
                continue
            seen.add((head, fact))
            self.steps += 1
            read, survives, left = self._forwards(lane, head, 0, fact)
            if read is not None:
                found = distance + read, (head, read)
                best = found if best is None else min(best, found)
            elif survives:
                distance += self._lengths[head]
                for successor in self._choices(head, left):
                    heappush(pending, (distance, successor, left is None))
        return None if best is None else best[1]
