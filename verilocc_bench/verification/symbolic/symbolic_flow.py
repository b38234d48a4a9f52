"""The dataflow of the checker: which places hold the current value of a lane.

Fact. For every lane, and for every value of the predicates: the set of places
that hold the lane's current value on all paths to this point on which it has
one; EVERYTHING if it has none on any path. A lane without an entry is nowhere.
`reach` is the condition on the predicates under which some path from the entry
leads to the point. Where `reach` is false the facts say nothing. A block that
the entry does not lead to begins like the entry, under any predicate values.

Meet. The intersection of the reached facts, for each value of the predicates.

Transfer. An instruction that acts writes its places. All lanes lose these
places, ended lanes get EVERYTHING, and each defined lane is in the place where
it was written and nowhere else. A predicate that the instruction writes may have
either value from then on: the facts of both values meet. Under a guard this
happens where the guard holds, and a branch leads on only in the states that
agree with it. The facts also meet over a predicate that guards nothing on any
path until it is written anew. A copy gives its destination to exactly the lanes
that its source holds. All of this distributes over the meet, so the fixed point
is the exact answer over all paths (Kam and Ullman, "Monotone Data Flow Analysis
Frameworks", Acta Informatica 1977).

Cost: a few operations for each lane that an instruction writes or overwrites,
in each pass over its block; at the edges one for each lane that matters there.
The blocks are visited in reverse postorder until nothing changes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verilocc_bench.ir import Block
from verilocc_bench.verification.symbolic.conditional import (
    EVERYTHING,
    FALSE,
    TRUE,
    DecisionNode,
    Diagram,
    Diagrams,
    places_of,
    support_of,
)
from verilocc_bench.verification.symbolic.symbolic_lanes import Lanes
from verilocc_bench.verification.symbolic.symbolic_program import (
    Copies,
    Execute,
    Step,
    SymbolicProgram,
)


@dataclass(slots=True)
class FlowState:
    """The facts at one point.

    `contents[bit]` contains every lane that place `bit` may hold, and
    `conditional` every lane whose places depend on predicates. Both may contain
    other lanes, too.
    """

    reach: Diagram
    rows: dict[int, Diagram]
    contents: dict[int, list[int]]
    conditional: set[int]


Watch = Callable[[Execute, FlowState, Diagram], None]
"""Called before an instruction that can be reached, with the condition under which it acts."""


class Flow:
    """The fixed point of one program; `carried[b]` are the lanes that matter at the start of b."""

    def __init__(
        self, lanes: Lanes, program: SymbolicProgram, carried: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.diagrams = Diagrams()
        self.lanes, self.program = lanes, program
        self.carried = lanes.needed if carried is None else carried
        self.blocks = lanes.function.blocks
        self._order = _reverse_postorder(self.blocks)
        self._rank = {block: rank for rank, block in enumerate(self._order)}
        self._inputs: dict[int, tuple[Diagram, dict[int, Diagram]]] = {}
        self._solve()

    def watch(self, watch: Watch) -> None:
        """Visits every block that can be reached once, at the fixed point."""
        for block in range(len(self.blocks)):
            if block in self._inputs:
                for _ in self._leave(block, watch):
                    pass

    def holds(self, row: Diagram, asked: int, condition: Diagram) -> bool:
        """True if a lane is in all of the `asked` places wherever a condition is true."""
        if isinstance(row, int):
            return row & asked == asked or condition == FALSE
        if row.floor & asked == asked:
            return True
        within = self.diagrams.within(condition, row)
        return (within if isinstance(within, int) else within.floor) & asked == asked

    def _solve(self) -> None:
        reached = _reachable(self.blocks)
        for block in range(len(self.blocks)):
            # Unreached code is checked as well, as if it were an entry of its own.
            if block == 0 or block not in reached:
                rows: dict[int, Diagram] = dict.fromkeys(self.carried[block], EVERYTHING)
                if block == 0:
                    rows |= self.program.entry
                self._inputs[block] = TRUE, rows
        pending = [self._rank[block] for block in self._inputs]
        heapq.heapify(pending)
        waiting = set(pending)
        while pending:
            rank = heapq.heappop(pending)
            waiting.discard(rank)
            for successor, reach, rows in self._leave(self._order[rank], None):
                changed = self._meet_into(successor, reach, rows)
                after = self._rank[successor]
                if changed and after not in waiting:
                    waiting.add(after)
                    heapq.heappush(pending, after)

    def _leave(
        self, block: int, watch: Watch | None
    ) -> Iterator[tuple[int, Diagram, dict[int, Diagram]]]:
        """Runs a block. Yields (successor, reach, facts of the lanes) for each successor."""
        reach, rows = self._inputs[block]
        conditional = {lane for lane, row in rows.items() if isinstance(row, DecisionNode)}
        contents: dict[int, list[int]] = {}
        for lane, row in rows.items():
            for bit in _each_bit(places_of(row)):
                contents.setdefault(bit, []).append(lane)
        state = FlowState(reach, dict(rows), contents, conditional)
        steps: Sequence[Step] = self.program.blocks[block]
        successors = self.blocks[block].successors
        branches = self.blocks[block].branch_guard is not None
        for step in steps[:-1] if branches else steps:
            self._step(state, step, watch)
        if not branches:
            for successor in successors:
                yield self._over_edge(block, successor, state)
            return
        last = steps[-1]
        assert isinstance(last, Execute)
        taken, passed = self._decide(state, last)
        if watch is not None:
            watch(last, state, taken)
        if passed != FALSE:
            # If the guard fails, the branch has no effect.
            skipping = FlowState(passed, state.rows, state.contents, state.conditional)
            yield self._over_edge(block, successors[1], skipping)
        if taken != FALSE:
            state.reach = taken
            self._act(state, last)
            yield self._over_edge(block, successors[0], state)

    def _decide(self, state: FlowState, step: Execute) -> tuple[Diagram, Diagram]:
        """The conditions under which a reached instruction acts, and under which it does not."""
        if step.guard is None:
            return state.reach, FALSE
        acts = self.diagrams.literal(*step.guard)
        return (
            self.diagrams.meet(state.reach, acts),
            self.diagrams.meet(state.reach, self.diagrams.negation(acts)),
        )

    def _step(self, state: FlowState, step: Step, watch: Watch | None) -> None:
        if isinstance(step, Copies):
            self._copy(state, step)
            return
        if step.guard is None:
            if watch is not None:
                watch(step, state, state.reach)
            self._act(state, step)
            return
        acts, skips = self._decide(state, step)
        if watch is not None:
            watch(step, state, acts)
        if skips == FALSE:
            self._act(state, step)
        elif acts != FALSE and (step.values or step.ended):
            self._act_or_not(state, step, acts, skips)
        for variable in step.decided:
            self._forget(state, variable)

    def _act_or_not(self, state: FlowState, step: Execute, acts: Diagram, skips: Diagram) -> None:
        """Applies an instruction that acts under one condition and not under the other."""
        acting = self._concerned(state, step, acts)
        self._act(acting, step)
        # The states with and without the instruction meet again.
        for lane, row in acting.rows.items():
            other = state.rows.get(lane, 0)
            merged = self.diagrams.merge(acting.reach, row, skips, other)
            state.rows[lane] = merged
            if isinstance(merged, DecisionNode):
                state.conditional.add(lane)
        state.reach = self.diagrams.either(acting.reach, skips)
        for bit, held in acting.contents.items():
            state.contents[bit] = held + state.contents.get(bit, [])

    def _concerned(self, state: FlowState, step: Execute, acts: Diagram) -> FlowState:
        """The part of a state that an instruction may change where it acts."""
        contents = {bit: state.contents[bit] for bit in step.written if bit in state.contents}
        concerned = {lane for held in contents.values() for lane in held}
        concerned.update(step.ended, (lane for lane, _ in step.values))
        if step.redefined:
            concerned |= state.conditional
        rows = {lane: state.rows.get(lane, 0) for lane in concerned}
        return FlowState(acts, rows, contents, state.conditional & concerned)

    def _act(self, state: FlowState, step: Execute) -> None:
        """Applies an instruction that acts in all states."""
        rows, contents = state.rows, state.contents
        for bit in step.written:
            held = contents.pop(bit, None)
            if held:
                for lane in held:
                    row = rows[lane]
                    if not isinstance(row, int):
                        rows[lane] = self.diagrams.transform(row, (~bit).__and__)
                    elif row != EVERYTHING:
                        rows[lane] = row & ~bit
        for lane in step.ended:
            rows[lane] = EVERYTHING
        for lane, bits in step.values:
            rows[lane] = bits
            for bit in _each_bit(bits):
                contents.setdefault(bit, []).append(lane)
        for variable in step.redefined:
            self._forget(state, variable)

    def _forget(self, state: FlowState, variable: int) -> None:
        """Lets the facts of both values of a predicate meet."""
        diagrams, reach = self.diagrams, state.reach
        for lane in state.conditional:
            row = state.rows[lane]
            if isinstance(row, DecisionNode) and row.support >> variable & 1:
                state.rows[lane] = diagrams.forget(diagrams.within(reach, row), variable)
        state.reach = diagrams.exists(reach, variable)

    def _copy(self, state: FlowState, step: Copies) -> None:
        rows, contents = state.rows, state.contents
        lost = 0
        concerned: dict[int, None] = {}
        sources = {source: tuple(contents.get(source, ())) for _, source in step.pairs}
        for destination, source in step.pairs:
            lost |= destination
            concerned |= dict.fromkeys(contents.get(destination, ()))
            concerned |= dict.fromkeys(sources[source])
        for lane in concerned:
            rows[lane] = self.diagrams.transform(
                rows[lane], lambda places: _copied(places, step.pairs, lost)
            )
        # A wrong move may name a destination many times.
        found: dict[int, dict[int, None]] = {destination: {} for destination, _ in step.pairs}
        for destination, source in step.pairs:
            found[destination] |= dict.fromkeys(sources[source])
        contents.update((destination, list(lanes)) for destination, lanes in found.items())

    def _over_edge(
        self, block: int, successor: int, state: FlowState
    ) -> tuple[int, Diagram, dict[int, Diagram]]:
        copies = self.program.edges.get((block, successor), ())
        if copies:
            conditional = state.conditional
            state = FlowState(state.reach, dict(state.rows), dict(state.contents), conditional)
            for step in copies:
                self._copy(state, step)
        held = state.rows
        rows = {lane: held.get(lane, 0) for lane in self.carried[successor]}
        reduced = FlowState(state.reach, rows, {}, {e for e in state.conditional if e in rows})
        undecided = support_of(state.reach)
        for lane in reduced.conditional:
            undecided |= support_of(rows[lane])
        undecided &= ~self.lanes.deciding[successor]
        while undecided:
            self._forget(reduced, undecided.bit_length() - 1)
            undecided &= ~(1 << undecided.bit_length() - 1)
        return successor, reduced.reach, rows

    def _meet_into(self, block: int, reach: Diagram, rows: Mapping[int, Diagram]) -> bool:
        """Meets the facts of an edge with the facts of a block. True if these change."""
        known = self._inputs.get(block)
        if known is None:
            self._inputs[block] = reach, dict(rows)
            return True
        diagrams = self.diagrams
        before, own = known
        after = diagrams.either(before, reach)
        changed = after != before
        for lane, row in rows.items():
            old = own[lane]
            if old is row or old == row:
                continue
            new = diagrams.merge(before, old, reach, row)
            if changed:
                own[lane] = new
            elif diagrams.within(after, new) != diagrams.within(after, old):
                changed = True
                own[lane] = new
        self._inputs[block] = after, own
        return changed


def _copied(places: int, pairs: tuple[tuple[int, int], ...], lost: int) -> int:
    result = places & ~lost
    for destination, source in pairs:
        if places & source:
            result |= destination
    return result


def _each_bit(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


def _reachable(blocks: Sequence[Block]) -> set[int]:
    found = {0}
    pending = [0]
    while pending:
        for successor in blocks[pending.pop()].successors:
            if successor not in found:
                found.add(successor)
                pending.append(successor)
    return found


def _reverse_postorder(blocks: Sequence[Block]) -> list[int]:
    """The blocks in reverse postorder: from the entry, then those that it does not lead to."""
    finished: list[list[int]] = []
    seen: set[int] = set()
    for start in range(len(blocks)):
        if start in seen:
            continue
        seen.add(start)
        order: list[int] = []
        path = [(start, iter(blocks[start].successors))]
        while path:
            block, following = path[-1]
            successor = next((s for s in following if s not in seen), None)
            if successor is None:
                order.append(block)
                path.pop()
            else:
                seen.add(successor)
                path.append((successor, iter(blocks[successor].successors)))
        finished.append(order[::-1])
    return [block for order in finished for block in order]
