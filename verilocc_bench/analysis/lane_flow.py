"""Dataflow of lanes under conditions, exact over all paths and predicate values.

A *state* is a point of the program with the values of the predicates there.
After an instruction that defines a predicate, the predicate may have either
value. A branch on a guard leads on only in the states that agree with it. Only
states that some path from the entry can bring about count; a block that no
path from the entry leads to counts as entered with any values. Three facts are
computed for every lane, each as the condition on the predicates under which
it holds at the start of a block:

- *live* (backwards): some path from the state reads the lane before it is
  defined or ended;
- *reached* (forwards): some definition of the lane that can happen reaches
  the state;
- *unreached* (forwards): some path from the entry brings no definition of the
  lane to the state.

All transfer functions distribute over disjunction, so the fixed points are
the exact answers over paths (Kam and Ullman, "Monotone Data Flow Analysis
Frameworks", Acta Informatica 1977). Without guards every condition is TRUE
and the analysis is the bit-vector analysis of the textbooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from verilocc_bench.analysis.block_order import PendingBlocks, reverse_postorders
from verilocc_bench.analysis.conditions import (
    FALSE,
    TRUE,
    ConditionalLanes,
    Conditions,
    Literal,
    add_lanes,
)
from verilocc_bench.analysis.effects import Effects


class JointEffects(NamedTuple):
    """The joint effects of `size` instructions in a row whose effects depend on no condition."""

    size: int
    killed: int
    exposed: int
    generated: int
    ended: int


Step = JointEffects | Effects


class LaneFlow:
    """The three facts at the blocks of a function, and how instructions change them.

    `live_in[b]`, `reached[b]` and `unreached[b]` hold at the start of block b,
    `live_out[b]` at its end; each is computed at first use. `steps[b]` are the effects of
    its instructions, with each run of plain ones joined. A block with two
    successors and a branch literal goes to the first where the literal holds.
    The lane `nowhere` follows all others, and nothing defines it. It is
    unreached in exactly the states that the entry can lead to. It is reached
    in exactly the states that count.
    """

    def __init__(
        self,
        successors: Sequence[Sequence[int]],
        effects: Sequence[Sequence[Effects]],
        branch_literals: Sequence[Literal | None],
        entry_lanes: int,
        lane_count: int,
    ) -> None:
        self.conditions = Conditions()
        self.successors = successors
        self.effects = effects
        self.branches = branch_literals
        self.nowhere = 1 << lane_count
        self.entry_lanes = entry_lanes
        self.steps = [_steps(block) for block in effects]
        # From the entry, then the blocks that it does not lead to.
        self._order = [block for order in reverse_postorders(successors) for block in order]

    @cached_property
    def live_in(self) -> list[ConditionalLanes]:
        """Live at the start of each block."""
        return self._live[0]

    @cached_property
    def live_out(self) -> list[ConditionalLanes]:
        """Live at the end of each block."""
        return self._live[1]

    @cached_property
    def reached(self) -> list[ConditionalLanes]:
        """Reached at the start of each block."""
        outside = set(range(len(self.effects))) - self._reachable_blocks()
        return self._run_forwards(self.entry_lanes | self.nowhere, False, outside)

    @cached_property
    def unreached(self) -> list[ConditionalLanes]:
        """Unreached at the start of each block."""
        everything = (self.nowhere << 1) - 1
        return self._run_forwards(everything & ~self.entry_lanes, True, set())

    def _reachable_blocks(self) -> set[int]:
        found = {0}
        pending = [0]
        while pending:
            for successor in self.successors[pending.pop()]:
                if successor not in found:
                    found.add(successor)
                    pending.append(successor)
        return found

    def before(self, after: ConditionalLanes, effects: Effects) -> ConditionalLanes:
        """Live before an instruction, from live after it."""
        killed, used = effects.defined | effects.ended, effects.used
        result: ConditionalLanes = {}
        if effects.guard is None and not effects.redefined:
            kept = ~(killed | used)
            result = {condition: left for condition, mask in after.items() if (left := mask & kept)}
            add_lanes(result, TRUE, used)
            return result
        if effects.guard is None:
            for condition, mask in after.items():
                own = self.conditions.without(condition, effects.redefined)
                add_lanes(result, own, mask & ~(killed | used))
            add_lanes(result, TRUE, used)
            return result
        either, both = self.conditions.either, self.conditions.both
        self.conditions.spend(len(after))
        holds = self.conditions.literal(effects.guard)
        fails = self.conditions.negation(holds)
        own = effects.guard_lane
        seen = own
        for condition, mask in after.items():
            seen |= mask
            skipped = both(fails, condition)
            passed = either(
                both(holds, self.conditions.without(condition, effects.redefined)), skipped
            )
            for outcome, part in (
                (skipped, mask & killed & ~own),
                (passed, mask & ~killed & ~own),
            ):
                add_lanes(result, outcome, part & ~used)
                add_lanes(result, either(outcome, holds), part & used)
        add_lanes(result, holds, used & ~seen)
        add_lanes(result, TRUE, own)
        return result

    def reached_after(self, before: ConditionalLanes, effects: Effects) -> ConditionalLanes:
        """Reached after an instruction, from reached before it."""
        happens = self.reachable(before) if effects.defined else FALSE
        return self._after(before, effects, effects.defined, effects.ended, happens)

    def unreached_after(self, before: ConditionalLanes, effects: Effects) -> ConditionalLanes:
        """Unreached after an instruction, from unreached before it."""
        reachable = self.reachable(before) if effects.ended else FALSE
        return self._after(before, effects, effects.ended, effects.defined, reachable)

    def reachable(self, facts: ConditionalLanes) -> int:
        """The condition under which a state counts: the condition of `nowhere` in these facts."""
        for condition, mask in facts.items():
            if mask & self.nowhere:
                return condition
        return FALSE

    def executed(self, lanes: ConditionalLanes, effects: Effects) -> ConditionalLanes:
        """The facts of the states before an instruction in which its guard holds."""
        if effects.guard is None:
            return lanes
        return self.conditions.restrict(lanes, self.conditions.literal(effects.guard))

    def _after(
        self, before: ConditionalLanes, effects: Effects, given: int, taken: int, fresh: int
    ) -> ConditionalLanes:
        """The lanes `given` get the fact in the states `fresh`; the lanes `taken` lose it."""
        conditions, redefined = self.conditions, effects.redefined
        result: ConditionalLanes = {}
        if effects.guard is None and not redefined:
            if not given | taken:
                return before
            kept = ~(given | taken)
            result = {own: left for own, mask in before.items() if (left := mask & kept)}
            add_lanes(result, fresh, given)
            return result
        if effects.guard is None:
            for condition, mask in before.items():
                own = conditions.without(condition, redefined)
                add_lanes(result, own, mask & ~(given | taken))
            add_lanes(result, conditions.without(fresh, redefined), given)
            return result
        conditions.spend(len(before))
        holds = conditions.literal(effects.guard)
        fails = conditions.negation(holds)
        new = conditions.without(conditions.both(holds, fresh), redefined)
        seen = 0
        for condition, mask in before.items():
            seen |= mask
            skipped = conditions.both(fails, condition)
            passed = conditions.without(conditions.both(holds, condition), redefined)
            add_lanes(result, skipped, mask & taken)
            add_lanes(result, conditions.either(skipped, passed), mask & ~(given | taken))
            add_lanes(result, conditions.either(skipped, new), mask & given)
        add_lanes(result, new, given & ~seen)
        return result

    def _edges(self, block: int) -> list[tuple[int, int]]:
        """(successor, condition of the edge)."""
        successors = self.successors[block]
        literal = self.branches[block]
        if literal is None:
            return [(successor, TRUE) for successor in successors]
        holds = self.conditions.literal(literal)
        return list(zip(successors, (holds, self.conditions.negation(holds)), strict=True))

    @cached_property
    def _predecessors(self) -> list[list[int]]:
        predecessors: list[list[int]] = [[] for _ in self.effects]
        for index, following in enumerate(self.successors):
            for successor in following:
                predecessors[successor].append(index)
        return predecessors

    @cached_property
    def _live(self) -> tuple[list[ConditionalLanes], list[ConditionalLanes]]:
        live_in: list[ConditionalLanes] = [{} for _ in self.effects]
        live_out: list[ConditionalLanes] = [{} for _ in self.effects]
        pending = PendingBlocks(self._order[::-1])
        while (block := pending.pop()) is not None:
            out: ConditionalLanes = {}
            for successor, condition in self._edges(block):
                into = self.conditions.restrict(live_in[successor], condition)
                out = self.conditions.union(out, into)
            live_out[block] = out
            into = out
            for step in reversed(self.steps[block]):
                into = self._before_step(into, step)
            if into != live_in[block]:
                live_in[block] = into
                for predecessor in self._predecessors[block]:
                    pending.add(predecessor)
        return live_in, live_out

    def _before_step(self, after: ConditionalLanes, step: Step) -> ConditionalLanes:
        if isinstance(step, Effects):
            return self.before(after, step)
        result: ConditionalLanes = {}
        for condition, mask in after.items():
            add_lanes(result, condition, mask & ~(step.killed | step.exposed))
        add_lanes(result, TRUE, step.exposed)
        return result

    def _run_forwards(
        self, entry: int, unreached: bool, outside: set[int]
    ) -> list[ConditionalLanes]:
        """The fact at the start of every block.

        The lanes in the mask `entry` have the fact at the function's entry. The
        blocks `outside` count as entered, too, although no path leads to them.
        """
        keep = self._guards_ahead
        incoming: list[ConditionalLanes] = [{} for _ in self.effects]
        incoming[0] = {TRUE: entry}
        for block in outside:
            incoming[block] = {TRUE: self.nowhere}
        found: dict[int, ConditionalLanes] = {}
        pending = PendingBlocks(self._order)
        while (current := pending.pop()) is not None:
            into = self.conditions.forget(incoming[current], keep[current])
            if into == found.get(current):
                continue
            found[current] = out = into
            for step in self.steps[current]:
                out = self.after_step(out, step, unreached)
            for successor, condition in self._edges(current):
                # The facts of an edge only grow, so one union for all edges is enough.
                before, over = incoming[successor], self.conditions.restrict(out, condition)
                after = self.conditions.union(before, over)
                if after != before:
                    incoming[successor] = after
                    pending.add(successor)
        return [found[block] for block in range(len(self.effects))]

    def after_step(self, before: ConditionalLanes, step: Step, unreached: bool) -> ConditionalLanes:
        """Reached, or `unreached`, after one step, from the same before it."""
        if isinstance(step, Effects):
            if unreached:
                return self.unreached_after(before, step)
            return self.reached_after(before, step)
        given, taken = step.generated, step.ended
        if unreached:
            given, taken = taken, given
        fresh = self.reachable(before) if given else FALSE
        result: ConditionalLanes = {}
        for condition, mask in before.items():
            add_lanes(result, condition, mask & ~(given | taken))
        add_lanes(result, fresh, given)
        return result

    @cached_property
    def _guards_ahead(self) -> list[int]:
        """For each block the predicates that may guard something before they are defined.

        The values of the others no longer matter: conditions forget them.
        """
        exposed, killed = [], []
        for steps in self.steps:
            read = gone = 0
            for step in steps:
                if not isinstance(step, Effects):
                    continue
                read |= step.guard_lane & ~gone
                if step.guard is None:
                    gone |= sum(1 << lane for lane in step.redefined)
            exposed.append(read)
            killed.append(gone)
        ahead = list(exposed)
        pending = PendingBlocks(self._order[::-1])
        while (block := pending.pop()) is not None:
            out = 0
            for successor in self.successors[block]:
                out |= ahead[successor]
            into = exposed[block] | out & ~killed[block]
            if into != ahead[block]:
                ahead[block] = into
                for predecessor in self._predecessors[block]:
                    pending.add(predecessor)
        return ahead


def _steps(effects: Sequence[Effects]) -> list[Step]:
    """The effects of a block, with each run of plain ones joined."""
    steps: list[Step] = []
    run: list[Effects] = []
    for effect in effects:
        if effect.guard is None and not effect.redefined:
            run.append(effect)
            continue
        if run:
            steps.append(_joined(run))
            run = []
        steps.append(effect)
    if run:
        steps.append(_joined(run))
    return steps


def _joined(effects: Sequence[Effects]) -> JointEffects:
    """The effects of plain instructions, one after the other."""
    killed = exposed = generated = ended = 0
    for effect in effects:
        exposed |= effect.used & ~killed
        killed |= effect.defined | effect.ended
        generated = generated & ~effect.ended | effect.defined
        ended = ended & ~effect.defined | effect.ended
    return JointEffects(len(effects), killed, exposed, generated, ended)
