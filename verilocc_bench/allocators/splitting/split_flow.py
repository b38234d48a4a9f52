"""The lanes that hold a needed value at each place, whatever the guards.

A lane is *held* between two instructions if some path leads from a definition of
it to that place and on to a read. Split live ranges are built from held lanes.
Exact liveness (analysis.liveness), by which units collide, is a part of them.

Cost: two bit-vector dataflows over the blocks; a set of lanes for each
instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.analysis.effects import Effects, LaneNumbering, all_effects
from verilocc_bench.ir import Function


@dataclass(frozen=True, slots=True)
class LaneMasks:
    """`held[block][i]` are the lanes held before instruction i, or at the block's end.

    Lanes are numbered as in `numbering`, the numbering of liveness.
    """

    numbering: LaneNumbering
    effects: list[list[Effects]]
    held: tuple[tuple[int, ...], ...]


def held_lanes(function: Function) -> LaneMasks:
    """The lanes held at every place of a function."""
    numbering = LaneNumbering(function)
    effects = all_effects(function, numbering)
    successors = [block.successors for block in function.blocks]
    live_out = _live_out(effects, successors)
    reached = _reached(effects, successors)
    held = []
    for block, block_effects in enumerate(effects):
        here = reached[block]
        values = [here]
        for effect in block_effects:
            here = _reached_after(here, effect)
            values.append(here)
        live = live_out[block]
        needed = [live]
        for effect in reversed(block_effects):
            live = _live_before(live, effect)
            needed.append(live)
        held.append(tuple(v & n for v, n in zip(values, reversed(needed), strict=True)))
    return LaneMasks(numbering, effects, tuple(held))


def _live_before(live: int, effect: Effects) -> int:
    if effect.guard is None:
        live &= ~(effect.defined | effect.ended)
    return live | effect.used | effect.guard_lane


def _reached_after(reached: int, effect: Effects) -> int:
    if effect.guard is None:
        reached &= ~effect.ended
    return reached | effect.defined


def _live_out(effects: list[list[Effects]], successors: list[tuple[int, ...]]) -> list[int]:
    live_in = [0] * len(effects)
    live_out = [0] * len(effects)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(effects))):
            live = 0
            for successor in successors[block]:
                live |= live_in[successor]
            live_out[block] = live
            for effect in reversed(effects[block]):
                live = _live_before(live, effect)
            if live != live_in[block]:
                live_in[block], changed = live, True
    return live_out


def _reached(effects: list[list[Effects]], successors: list[tuple[int, ...]]) -> list[int]:
    reached_in = [0] * len(effects)
    changed = True
    while changed:
        changed = False
        for block, block_effects in enumerate(effects):
            reached = reached_in[block]
            for effect in block_effects:
                reached = _reached_after(reached, effect)
            for successor in successors[block]:
                if reached & ~reached_in[successor]:
                    reached_in[successor] |= reached
                    changed = True
    return reached_in
