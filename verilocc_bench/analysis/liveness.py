"""Liveness of every lane, as the points at which it holds a register unit.

A *lane* is one 32-bit unit of a virtual register, or a physical register
unit that the function names (a *fixed* lane). *Points*: point 0 is the entry
of the function; every instruction has one point after it, and an instruction
with an early-clobber definition has one more before that, at which the
definition is written while the uses are still to be read.

A lane is *live* at a point when it is defined there (dead or not), or when a
later use may read it and some definition may reach the point:

- backward: a use makes a lane live, a definition ends it, and so does the
  undef definition of another lane of the same virtual register, which begins
  a new value of the whole;
- forward: a lane counts only where a definition may reach. A tuple of which
  one lane was never written is read whole by later instructions, yet the
  other lane holds nothing.

Two lanes cannot share a unit exactly when one is *defined* at a point where
the other is live: only a definition can destroy a value. Where every lane is
defined on all paths to its uses that is the same as both being live at one
point.

Cost: one bit-vector dataflow over blocks in each direction, then one walk
over the instructions; bit sets are Python integers. About 15 microseconds an
instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verilocc_bench.ir import FixedUnits, Function, Instruction, Operand

__all__ = ["Liveness", "Segment", "analyse_liveness", "iterate_bits"]

Segment = tuple[int, int, int, bool]
"""(lane, first point, last point, whether a definition surely reaches it)."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """Where the lanes of a function are live and where they are defined.

    `lane_offsets[r]` is the first lane of virtual register r; fixed lanes
    follow, in the order of `fixed_lanes` ((file, unit) pairs).
    `live[lane]` and `defined[lane]` are sets of points as bit masks.
    `points[p]` is the (block, instruction) of point p; the entry is (0, -1).
    `after[block][i]` is the point after an instruction.
    """

    lane_offsets: tuple[int, ...]
    fixed_lanes: tuple[tuple[str, int], ...]
    live: tuple[int, ...]
    defined: tuple[int, ...]
    points: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, ...], ...]
    segments: tuple[Segment, ...]

    @property
    def virtual_lane_count(self) -> int:
        """The number of lanes that belong to virtual registers."""
        return len(self.live) - len(self.fixed_lanes)


@dataclass(slots=True)
class _Effects:
    """What one instruction does to lanes."""

    defined: list[int]
    early: list[int]
    ended: list[int]
    used: list[int]


def iterate_bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending."""
    text = bin(mask)[:1:-1]
    position = text.find("1")
    while position >= 0:
        yield position
        position = text.find("1", position + 1)


def analyse_liveness(function: Function) -> Liveness:
    """The liveness of every lane of a function."""
    lanes = _Lanes(function)
    blocks = [[lanes.effects(i) for i in block.instructions] for block in function.blocks]
    live_out = _live_out(function, blocks)
    live_ins = (lane for units in function.live_ins for lane in lanes.fixed(units))
    entry_lanes = list(dict.fromkeys(live_ins))
    may_reach, must_reach = _reaching(function, blocks, entry_lanes)
    walker = _Walker(lanes.count)
    walker.define_at_entry(entry_lanes, live_in=_live_in(blocks, live_out, 0))
    for index, effects in enumerate(blocks):
        walker.walk(index, effects, live_out[index], may_reach[index], must_reach[index])
    return Liveness(
        lane_offsets=tuple(lanes.offsets),
        fixed_lanes=tuple(lanes.fixed_numbers),
        live=tuple(walker.live),
        defined=tuple(walker.defined),
        points=tuple(walker.points),
        after=tuple(walker.after),
        segments=tuple(walker.segments),
    )


class _Lanes:
    """Numbers the lanes and turns operands into lane numbers."""

    def __init__(self, function: Function) -> None:
        self.classes = function.virtual_registers
        self.offsets: list[int] = []
        self.count = 0
        for register_class in function.virtual_registers:
            self.offsets.append(self.count)
            self.count += register_class.width
        self.fixed_numbers: dict[tuple[str, int], int] = {}
        for units in function.live_ins:
            self.fixed(units)
        for _, _, instruction in function.instructions():
            for operand in instruction.definitions + instruction.uses:
                if isinstance(operand.location, FixedUnits):
                    self.fixed(operand.location)

    def fixed(self, units: FixedUnits) -> list[int]:
        numbers = []
        for index in range(units.first, units.first + units.count):
            key = (units.file, index)
            if key not in self.fixed_numbers:
                self.fixed_numbers[key] = self.count
                self.count += 1
            numbers.append(self.fixed_numbers[key])
        return numbers

    def of(self, operand: Operand) -> Iterable[int]:
        location = operand.location
        if isinstance(location, FixedUnits):
            return self.fixed(location)
        first = self.offsets[location.register] + location.first
        return range(first, first + location.count)

    def effects(self, instruction: Instruction) -> _Effects:
        effects = _Effects([], [], [], [])
        for operand in instruction.definitions:
            lanes = self.of(operand)
            effects.defined += lanes
            if operand.early_clobber:
                effects.early += lanes
            location = operand.location
            if operand.undef and not isinstance(location, FixedUnits):
                first = self.offsets[location.register]
                every = range(first, first + self.classes[location.register].width)
                effects.ended += [lane for lane in every if lane not in lanes]
        effects.defined = list(dict.fromkeys(effects.defined))
        if effects.ended:
            # Another definition of the same instruction may write what this one ends.
            effects.ended = [lane for lane in effects.ended if lane not in effects.defined]
        for operand in instruction.uses:
            if not operand.undef:
                effects.used += self.of(operand)
        return effects


def _mask(lanes: Iterable[int]) -> int:
    mask = 0
    for lane in lanes:
        mask |= 1 << lane
    return mask


def _live_out(function: Function, blocks: list[list[_Effects]]) -> list[int]:
    exposed, killed = [], []
    for effects in blocks:
        use = kill = 0
        for effect in reversed(effects):
            gone = _mask(effect.defined) | _mask(effect.ended)
            use = use & ~gone | _mask(effect.used)
            kill |= gone
        exposed.append(use)
        killed.append(kill)
    predecessors = _predecessors(function)
    live_in = list(exposed)
    live_out = [0] * len(blocks)
    pending = list(range(len(blocks)))
    waiting = set(pending)
    while pending:
        block = pending.pop()
        waiting.discard(block)
        out = 0
        for successor in function.blocks[block].successors:
            out |= live_in[successor]
        live_out[block] = out
        into = exposed[block] | out & ~killed[block]
        if into != live_in[block]:
            live_in[block] = into
            for predecessor in predecessors[block]:
                if predecessor not in waiting:
                    waiting.add(predecessor)
                    pending.append(predecessor)
    return live_out


def _live_in(blocks: list[list[_Effects]], live_out: list[int], block: int) -> int:
    live = live_out[block]
    for effect in reversed(blocks[block]):
        live = live & ~(_mask(effect.defined) | _mask(effect.ended)) | _mask(effect.used)
    return live


def _predecessors(function: Function) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in function.blocks]
    for index, block in enumerate(function.blocks):
        for successor in block.successors:
            predecessors[successor].append(index)
    return predecessors


def _reachable(function: Function) -> set[int]:
    """The blocks that some path from the entry reaches."""
    found = {0}
    pending = [0]
    while pending:
        for successor in function.blocks[pending.pop()].successors:
            if successor not in found:
                found.add(successor)
                pending.append(successor)
    return found


def _reaching(
    function: Function, blocks: list[list[_Effects]], entry_lanes: list[int]
) -> tuple[list[int], list[int]]:
    """For each block: lanes that a definition may, and surely does, reach at its start."""
    generated, ended = [], []
    for effects in blocks:
        gen = end = 0
        for effect in effects:
            if effect.ended:
                stop = _mask(effect.ended)
                gen &= ~stop
                end |= stop
            defined = _mask(effect.defined)
            gen |= defined
            end &= ~defined
        generated.append(gen)
        ended.append(end)
    entry = _mask(entry_lanes)
    everything = -1
    may = [0] * len(blocks)
    reachable = _reachable(function)
    # No path from the entry says what surely reaches a block that has none.
    must = [everything if block in reachable else 0 for block in range(len(blocks))]
    may[0] = must[0] = entry
    predecessors = _predecessors(function)
    changed = True
    while changed:
        changed = False
        for block in range(len(blocks)):
            into = entry if block == 0 else 0
            surely = entry if block == 0 else must[block]
            for predecessor in predecessors[block]:
                into |= may[predecessor] & ~ended[predecessor] | generated[predecessor]
                surely &= must[predecessor] & ~ended[predecessor] | generated[predecessor]
            if into != may[block] or surely != must[block]:
                may[block], must[block] = into, surely
                changed = True
    return may, must


class _Walker:
    """Collects segments of liveness, block by block, each walked backwards."""

    def __init__(self, lane_count: int) -> None:
        self.live = [0] * lane_count
        self.defined = [0] * lane_count
        self.points: list[tuple[int, int]] = [(0, -1)]
        self.after: list[tuple[int, ...]] = []
        self.segments: list[Segment] = []

    def define_at_entry(self, lanes: list[int], live_in: int) -> None:
        for lane in lanes:
            self.defined[lane] = 1
            if live_in >> lane & 1:
                self.add(lane, 0, 0, True)
            # A live-in register that nothing reads is free from the start.

    def add(self, lane: int, first: int, last: int, surely: bool) -> None:
        self.live[lane] |= ((1 << (last - first + 1)) - 1) << first
        self.segments.append((lane, first, last, surely))

    def walk(self, block: int, effects: list[_Effects], live_out: int, may: int, must: int) -> None:
        first = len(self.points)
        after = self.number_points(block, effects)
        last = len(self.points) - 1
        if last < first:
            return
        open_until = dict.fromkeys(iterate_bits(live_out), last)
        for effect, point in zip(reversed(effects), reversed(after), strict=True):
            early = effect.early
            for lane in effect.defined:
                end = open_until.pop(lane, point)
                start = point - 1 if lane in early else point
                self.add(lane, start, end, True)
                self.defined[lane] |= (3 << start) if lane in early else (1 << start)
            for lane in effect.ended:
                open_until.pop(lane, None)
            # Uses are read before the definitions are written, but after early ones.
            # A lane that is itself an early one holds one unit there, not two.
            for lane in effect.used:
                open_until.setdefault(lane, point - 2 if lane in early else point - 1)
        for lane, end in open_until.items():
            if end >= first and may >> lane & 1:
                self.add(lane, first, end, bool(must >> lane & 1))

    def number_points(self, block: int, effects: list[_Effects]) -> list[int]:
        after = []
        for index, effect in enumerate(effects):
            if effect.early:
                self.points.append((block, index))
            after.append(len(self.points))
            self.points.append((block, index))
        self.after.append(tuple(after))
        return after
