"""Liveness of the lanes of virtual registers, and of VCC and SCC, in recovered code.

A lane is a bit. Backward dataflow tells where a lane is read later, forward dataflow
where some path has written it. LLVM wants both on every path: where a lane is live on an
edge, only some paths to the block behind the edge have written it, and none to the block
before it, the writer of machine IR adds an IMPLICIT_DEF. No other value can be in the
lane's register there, since nothing has ever written it on those paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneEffects:
    """The lanes that an instruction reads and writes."""

    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class LaneLiveness:
    """`live[b][i]` and `written[b][i]`: lanes live after, and written before, an instruction.

    `live_ins[b]` are the lanes that block b needs. `missing[b]` are those that must be
    defined at the end of block b, because only other paths define them.
    """

    live: tuple[tuple[int, ...], ...]
    written: tuple[tuple[int, ...], ...]
    live_ins: tuple[int, ...]
    missing: tuple[int, ...]


def analyse_lanes(
    effects: Sequence[Sequence[LaneEffects]], successors: Sequence[tuple[int, ...]], live_in: int
) -> LaneLiveness:
    """The liveness of a kernel's lanes; `live_in` are written at the entry."""
    needed = _backward(effects, successors)
    entry, leaving = _forward(effects, successors, live_in)
    missing = [0] * len(effects)
    for block, following in enumerate(successors):
        for successor in following:
            missing[block] |= needed[successor] & entry[successor] & ~leaving[block]
    live, written = [], []
    for block, code in enumerate(effects):
        after = 0
        for successor in successors[block]:
            after |= needed[successor]
        lives = []
        for each in reversed(code):
            lives.append(after)
            after = (after & ~each.writes) | each.reads
        live.append(tuple(reversed(lives)))
        before, row = entry[block], []
        for each in code:
            row.append(before)
            before |= each.writes
        written.append(tuple(row))
    return LaneLiveness(
        tuple(live),
        tuple(written),
        tuple(need & some for need, some in zip(needed, entry, strict=True)),
        tuple(missing),
    )


def _backward(
    effects: Sequence[Sequence[LaneEffects]], successors: Sequence[tuple[int, ...]]
) -> list[int]:
    needed = [0] * len(effects)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(effects))):
            live = 0
            for successor in successors[block]:
                live |= needed[successor]
            for each in reversed(effects[block]):
                live = (live & ~each.writes) | each.reads
            changed |= live != needed[block]
            needed[block] = live
    return needed


def _forward(
    effects: Sequence[Sequence[LaneEffects]], successors: Sequence[tuple[int, ...]], live_in: int
) -> tuple[list[int], list[int]]:
    entry = [0] * len(effects)
    entry[0] = live_in
    writes = []
    for code in effects:
        mask = 0
        for each in code:
            mask |= each.writes
        writes.append(mask)
    changed = True
    while changed:
        changed = False
        for block, following in enumerate(successors):
            leaving = entry[block] | writes[block]
            for successor in following:
                new = entry[successor] | leaving
                changed |= new != entry[successor]
                entry[successor] = new
    return entry, [some | own for some, own in zip(entry, writes, strict=True)]
