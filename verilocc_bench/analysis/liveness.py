"""Liveness of every lane, as the points at which it holds a register unit.

A *lane* is one 32-bit unit of a virtual register, or a physical register
unit that the function names (a *fixed* lane). *Points*: point 0 is the entry
of the function; every instruction has one point after it, and an instruction
with an early-clobber definition has one more before that, at which the
definition is written while the uses are still to be read.

A lane is *live* at a point when it is defined there (dead or not), or when a
later use may read it and some definition may reach the point:

- backward: a use makes a lane live, and a definition ends it. The undef
  definition of another lane of the same virtual register ends it, too: it
  begins a new value of the whole register;
- forward: a lane counts only where a definition may reach. Instructions may
  read a whole tuple of which one lane was never written; that lane holds
  nothing.

Guards: an instruction acts only where its guard holds, and a branch on a
guard is taken only then. A predicate keeps its value until it is defined
anew; nothing else is known about it. A lane is live at the point after a
guarded instruction when there is a path on which the instruction acts and
the lane holds a value that is read later: an instruction that does not act
destroys nothing. Definitions that no path can bring about define nothing. A
guard that nothing has written still decides: its lane holds a value from the
entry on.

An instruction may destroy units, as a call does. A destroyed unit is a fixed lane, too. It
is live and defined at the point after the instruction, so that no other lane can be in the
unit there, and holds nothing from then on.

Two lanes cannot share a unit exactly when one is *defined* at a point where
the other is live: only a definition can destroy a value. Where every lane is
defined on all paths to its uses, and nothing is guarded, that is the same as
both being live at one point.

Cost: a dataflow over blocks in each direction (analysis.lane_flow), then one
walk over the instructions; sets of lanes are Python integers. An instruction
of a real kernel takes 20 to 50 microseconds. The cost of guards is bounded
(analysis.conditions). Memory is quadratic because sets are bit masks, so lanes
times instructions are bounded as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from verilocc_bench.analysis.conditions import FALSE, TRUE, ConditionalLanes
from verilocc_bench.analysis.effects import Effects, LaneNumbering, all_effects, iterate_bits
from verilocc_bench.analysis.lane_flow import LaneFlow
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function

PAIRS = 1 << 32
"""The most pairs of a lane and a point that a function may have. A set of lanes has a bit for each
lane, and a set of points one for each point: at this bound they take 2 GiB. The largest kernel
seen reaches 1 % of it."""

Segment = tuple[int, int, int, bool]
"""(lane, first point, last point, sure). If `sure`, the lane holds a value at each of these
points together with all other lanes that are sure there."""


@dataclass(frozen=True)
class Liveness:
    """The points at which the lanes of a function are live and defined.

    `lane_offsets[r]` is the first lane of virtual register r; fixed lanes
    follow, in the order of `fixed_lanes` ((file, unit) pairs).
    `live[lane]` and `defined[lane]` are sets of points as bit masks; `written[p]` has the
    lanes that are defined at point p. `points[p]` is the (block, instruction) of point p;
    the entry is (0, -1). `after[block][i]` is the point after an instruction. The lanes
    from `destroyed_from` on are units that the function does not name: instructions
    destroy them.
    """

    lane_offsets: tuple[int, ...]
    fixed_lanes: tuple[tuple[str, int], ...]
    lane_count: int
    written: tuple[int, ...]
    points: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, ...], ...]
    segments: tuple[Segment, ...]
    destroyed_from: int

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The points at which each lane is live, as bit masks; `segments` say the same."""
        found = [0] * self.lane_count
        for lane, first, last, _ in self.segments:
            found[lane] |= ((1 << (last + 1 - first)) - 1) << first
        return tuple(found)

    @cached_property
    def defined(self) -> tuple[int, ...]:
        """The points at which each lane is defined, as bit masks."""
        found = [0] * self.lane_count
        for point, lanes in enumerate(self.written):
            for lane in iterate_bits(lanes):
                found[lane] |= 1 << point
        return tuple(found)

    @property
    def virtual_lane_count(self) -> int:
        """The number of lanes that belong to virtual registers."""
        return self.lane_count - len(self.fixed_lanes)

    @property
    def named_units(self) -> tuple[tuple[str, int], ...]:
        """The fixed lanes that the function names: the first of `fixed_lanes`."""
        return self.fixed_lanes[: self.destroyed_from - self.virtual_lane_count]


def analyse_liveness(function: Function) -> Liveness:
    """The liveness of every lane of a function.

    Raises InputError if the function is too large, its guards depend on each
    other in too many ways, or its edges are too tangled.
    """
    lanes = LaneNumbering(function)
    size = function.instruction_count + len(function.blocks)
    if lanes.count * size > PAIRS:
        raise InputError(
            f"{size:,} instructions and blocks with {lanes.count:,} lanes of registers: "
            f"the product may be {PAIRS:,}"
        )
    effects = all_effects(function, lanes)
    entry_lanes = 0
    for units in function.live_ins:
        entry_lanes |= lanes.mask(units)
    successors = [block.successors for block in function.blocks]
    branches = [lanes.literal(block.branch_guard) for block in function.blocks]
    flow = LaneFlow(successors, effects, branches, entry_lanes, lanes.count)
    flow.entry_lanes |= _predicates_never_written(flow)
    walker = _Walker(flow)
    walker.define_at_entry(flow.entry_lanes)
    for index in range(len(effects)):
        walker.walk(index)
    return Liveness(
        lane_offsets=tuple(lanes.offsets),
        fixed_lanes=tuple(lanes.fixed),
        lane_count=lanes.count,
        written=tuple(walker.written),
        points=tuple(walker.points),
        after=tuple(walker.after),
        segments=tuple(walker.segments),
        destroyed_from=lanes.destroyed_from,
    )


def _predicates_never_written(flow: LaneFlow) -> int:
    """The lanes of guards that some path reads before it writes them: the entry defines them."""
    guards = read = 0
    for block in flow.effects:
        for effect in block:
            guards |= effect.guard_lane
    if guards:
        for mask in flow.live_in[0].values():
            read |= mask
    return guards & read


SEGMENTS = 8_000_000
"""The most segments of a function, which take 1 GiB; the largest of `mini` has 11,000."""


class _Walker:
    """Collects the lanes that are live and those that surely hold a value, point by point."""

    def __init__(self, flow: LaneFlow) -> None:
        self.flow = flow
        self.written = [0]
        self.points: list[tuple[int, int]] = [(0, -1)]
        self.after: list[tuple[int, ...]] = []
        self.segments: list[Segment] = []

    def define_at_entry(self, lanes: int) -> None:
        # No point has a live-in register that nothing reads: it is free from the start.
        read = 0
        for mask in self.flow.live_in[0].values():
            read |= mask
        self.written[0] = lanes & read
        self._add_segments([(lanes & read, lanes & read)], 0)

    def walk(self, block: int) -> None:
        """One block: facts forwards, then liveness backwards, then the points in order."""
        flow, effects, steps = self.flow, self.flow.effects[block], self.flow.steps[block]
        live, reached, unreached = flow.live_out[block], flow.reached[block], flow.unreached[block]
        facts = [(reached, unreached)]
        for step in steps:
            reached = flow.after_step(reached, step, False)
            unreached = flow.after_step(unreached, step, True)
            facts.append((reached, unreached))
        parts: list[list[tuple[int, int]]] = []
        end = len(effects)
        for number in range(len(steps) - 1, -1, -1):
            step = steps[number]
            if isinstance(step, Effects):
                end -= 1
                rows, live = self._rows([step], live, facts[number : number + 2])
            else:
                run = effects[end - step.size : end]
                end -= step.size
                rows, live = self._run_rows(run, live, *facts[number], alone=len(steps) == 1)
            parts.append(rows)
        first = len(self.points)
        self._number_points(block, effects)
        self._add_segments([row for rows in reversed(parts) for row in rows], first)

    def _run_rows(
        self,
        effects: Sequence[Effects],
        live: ConditionalLanes,
        reached: ConditionalLanes,
        unreached: ConditionalLanes,
        *,
        alone: bool,
    ) -> tuple[list[tuple[int, int]], ConditionalLanes]:
        """The rows of plain instructions, and the lanes live before; `alone` they are a block."""
        if not any(lanes.keys() - {TRUE} for lanes in (live, reached, unreached)):
            masks = [lanes.get(TRUE, 0) for lanes in (live, reached, unreached)]
            rows, before, steps = self._sure_rows(effects, masks[0], masks[2])
            if alone:
                return rows or self._plain_rows(effects, *masks), {}
            if rows:
                self.flow.conditions.spend(steps)
                return rows, {TRUE: before} if before else {}
        facts = [(reached, unreached)]
        for effect in effects:
            reached = self.flow.reached_after(reached, effect)
            unreached = self.flow.unreached_after(unreached, effect)
            facts.append((reached, unreached))
        return self._rows(effects, live, facts)

    def _sure_rows(
        self, effects: Sequence[Effects], live: int, unreached: int
    ) -> tuple[list[tuple[int, int]], int, int]:
        """The rows of plain instructions if all lanes that they read surely hold values.

        Otherwise there are no rows. Also gives the lanes live before, and the number of
        rows with live lanes: each is a step of the analysis.
        """
        rows: list[int] = []
        steps = 0
        for effect in reversed(effects):
            if effect.ended & live:
                return [], 0, 0
            rows.append(effect.defined | effect.destroyed | live)
            steps += live != 0
            live = live & ~effect.defined | effect.used
            if effect.early:
                rows.append(effect.early | live)
                steps += live != 0
        # Of a block that no path leads to, not even `nowhere` is unreached.
        if (live | self.flow.nowhere) & (unreached ^ self.flow.nowhere):
            return [], 0, 0
        return [(row, row) for row in reversed(rows)], live, steps

    def _plain_rows(
        self, effects: Sequence[Effects], live: int, reached: int, unreached: int
    ) -> list[tuple[int, int]]:
        """The rows of a block in which nothing depends on a condition."""
        facts = [(reached, unreached)]
        for effect in effects:
            reached &= ~effect.ended
            if reached & self.flow.nowhere:
                reached |= effect.defined
            unreached = unreached & ~effect.defined | effect.ended
            facts.append((reached, unreached))
        rows: list[tuple[int, int]] = []
        for index in range(len(effects) - 1, -1, -1):
            effect = effects[index]
            written = effect.defined | effect.destroyed
            rows.append(self._plain_row(written, live, *facts[index + 1]))
            live &= ~(effect.defined | effect.ended)
            live |= effect.used
            if effect.early:
                rows.append(self._plain_row(effect.early, live, *facts[index]))
        return rows[::-1]

    def _plain_row(self, defined: int, live: int, reached: int, unreached: int) -> tuple[int, int]:
        held = defined | live & reached
        if not unreached & self.flow.nowhere:
            # No path leads here, and yet the definitions take units of their own.
            return held, defined
        return held, held & ~unreached | defined

    def _rows(
        self,
        effects: Sequence[Effects],
        live: ConditionalLanes,
        facts: Sequence[tuple[ConditionalLanes, ConditionalLanes]],
    ) -> tuple[list[tuple[int, int]], ConditionalLanes]:
        """For each point: (the live lanes, those that surely hold values together).

        `facts` are reached and unreached before the first and after each instruction. Also
        gives the lanes live before.
        """
        flow = self.flow
        rows: list[tuple[int, int]] = []
        for index in range(len(effects) - 1, -1, -1):
            effect = effects[index]
            acted, missed = facts[index + 1]
            # The definitions destroy values only where the instruction acts.
            acting, missing = (flow.executed(each, effect) for each in facts[index])
            if effect.guard is not None:
                unguarded = effect._replace(guard=None)
                acted = flow.reached_after(acting, unguarded)
                missed = flow.unreached_after(missing, unguarded)
            rows.append(self._row(effect.defined | effect.destroyed, live, acted, missed))
            live = flow.before(live, effect)
            if effect.early:
                # The instruction writes these before it reads its uses.
                rows.append(self._row(effect.early, live, acting, missing))
        return rows[::-1], live

    def _row(
        self,
        defined: int,
        live: ConditionalLanes,
        reached: ConditionalLanes,
        unreached: ConditionalLanes,
    ) -> tuple[int, int]:
        """The lanes live at a point, and the ones that surely hold values together."""
        held = defined | self.flow.conditions.meeting(live, reached)
        return held, held & self._together(defined, live, unreached)

    def _together(self, defined: int, live: ConditionalLanes, unreached: ConditionalLanes) -> int:
        """The lanes that are live or defined, and surely reached, in one reachable state.

        Their number is a lower bound for every allocation. The method picks a
        state in which many lanes are live.
        """
        conditions = self.flow.conditions
        state = self.flow.reachable(unreached)
        if state == FALSE:
            # No path leads here, and yet the definitions take units of their own.
            return defined
        chosen = defined
        sizes = ((mask.bit_count(), condition) for condition, mask in live.items())
        for _, condition in sorted(sizes, reverse=True):
            narrowed = conditions.both(state, condition)
            if narrowed != FALSE:
                state = narrowed
                chosen |= live[condition]
        for condition, mask in unreached.items():
            if conditions.both(state, condition) != FALSE:
                chosen &= ~mask | defined
        return chosen

    def _number_points(self, block: int, effects: Sequence[Effects]) -> None:
        after = []
        for index, effect in enumerate(effects):
            if effect.early:
                self.written.append(effect.early)
                self.points.append((block, index))
            self.written.append(effect.defined | effect.destroyed)
            after.append(len(self.points))
            self.points.append((block, index))
        self.after.append(tuple(after))

    def _add_segments(self, rows: list[tuple[int, int]], first: int) -> None:
        """Turns rows of (live, surely together) into segments, lane by lane."""
        began: dict[int, tuple[int, bool]] = {}
        segments = self.segments
        held = together = 0
        for point, (new_held, new_together) in enumerate([*rows, (0, 0)], first):
            changed = (held ^ new_held) | (together ^ new_together)
            if changed:
                for lane in iterate_bits(changed & held):
                    start, surely = began[lane]
                    segments.append((lane, start, point - 1, surely))
                begin = changed & new_held
                if unsure := begin & ~new_together:
                    began.update(dict.fromkeys(iterate_bits(unsure), (point, False)))
                    begin ^= unsure
                sure = point, True
                for lane in iterate_bits(begin):
                    began[lane] = sure
                if len(segments) > SEGMENTS:
                    raise InputError(
                        f"more than {SEGMENTS:,} live ranges, counted in each block anew"
                    )
            held, together = new_held, new_together
