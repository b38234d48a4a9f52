"""The lanes that hold a value at the entry of a function.

Candidates are the lanes of live-in registers, and the predicates that guard
something before they are written: such a guard still decides. A candidate holds
a value if some path from the entry reads it before writing it; no use can miss
the others.

The same dataflow finds them, over a program in which every written lane is
TOUCHED from then on: a lane is read before it is written exactly if some read
does not find it TOUCHED on all paths.
"""

from __future__ import annotations

from verilocc_bench.verification.symbolic.conditional import Diagram
from verilocc_bench.verification.symbolic.symbolic_flow import Flow, FlowState
from verilocc_bench.verification.symbolic.symbolic_lanes import (
    GUARD_OPERAND,
    Lanes,
    SymbolicEffects,
)
from verilocc_bench.verification.symbolic.symbolic_program import Execute, Read, SymbolicProgram

TOUCHED = 2


def entry_lanes(lanes: Lanes) -> frozenset[int]:
    """The lanes that hold a value at the entry. Raises InputError if guards exceed the bounds."""
    candidates = frozenset([*lanes.live_ins, *lanes.predicates])
    if candidates.isdisjoint(lanes.needed[0]):
        return frozenset()
    blocks = tuple(
        tuple(
            [
                step
                for index, effects in enumerate(block)
                if (step := _step(lanes, candidates, number, index, effects)) is not None
            ]
        )
        for number, block in enumerate(lanes.effects)
    )
    carried = [[lane for lane in needed if lane in candidates] for needed in lanes.needed]
    program = SymbolicProgram(blocks, {}, dict.fromkeys(carried[0], 0))
    flow = Flow(lanes, program, carried)
    found: set[int] = set()

    def watch(step: Execute, state: FlowState, acts: Diagram) -> None:
        reads = [(read, acts) for read in step.reads]
        if step.guard_read is not None:
            reads.append((step.guard_read, state.reach))
        for read, condition in reads:
            if not flow.holds(state.rows.get(read.lane, 0), TOUCHED, condition):
                found.add(read.lane)

    flow.watch(watch)
    return frozenset(found)


def _step(
    lanes: Lanes, candidates: frozenset[int], block: int, index: int, effects: SymbolicEffects
) -> Execute | None:
    """The effect of an instruction on the candidates; None if it has none."""
    reads = [Read(operand, lane, 0, 0) for operand, lane, _ in effects.uses if lane in candidates]
    ended = [lane for lane in effects.ended if lane in candidates]
    values = {d.lane: TOUCHED for d in effects.definitions if d.lane in candidates}
    guard = guard_read = None
    if effects.guard is not None:
        lane, value = effects.guard
        guard = lanes.predicates[lane], value
        guard_read = Read(GUARD_OPERAND, lane, 0, 0)
    elif not (reads or ended or values):
        return None
    return Execute(
        block=block,
        index=index,
        guard=guard,
        guard_read=guard_read,
        reads=tuple(reads),
        written=(),
        ended=tuple(ended),
        values=tuple(values.items()),
        redefined=effects.redefined,
        decided=lanes.last_decisions[block][index],
    )
