"""Where the lanes that EXEC does not select hold values that are read later.

Backward dataflow over units, with two facts for each: the lanes that EXEC selects are
needed, and those that it does not select are. A definition under a partial EXEC ends the
first need alone. Where EXEC may select more lanes, either kind becomes both kinds. Where it
loses lanes, those had been selected; the second need says so already, and the first counts
only where it joins the second. Cost: a few passes over the code.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.backends.amdgpu.recovery.records import CodeBlock, RecoveredInstruction
from verilocc_bench.backends.amdgpu.recovery.recovered_mask import MaskFlow

_Needs = tuple[int, int]
"""The units needed in selected lanes, and in others, as masks."""


def needed_inactive_lanes(
    blocks: Sequence[CodeBlock], mask: MaskFlow
) -> tuple[tuple[int, ...], ...]:
    """For each block and instruction: the units whose other lanes are needed after it."""
    entry: list[_Needs] = [(0, 0)] * len(blocks)
    changed = True
    while changed:
        changed = False
        for b in reversed(range(len(blocks))):
            needs, _ = _through(b, blocks, mask, entry)
            changed |= needs != entry[b]
            entry[b] = needs
    return tuple(_through(b, blocks, mask, entry)[1] for b in range(len(blocks)))


def _through(
    b: int, blocks: Sequence[CodeBlock], mask: MaskFlow, entry: Sequence[_Needs]
) -> tuple[_Needs, tuple[int, ...]]:
    """The needs at a block's entry, and the needs of other lanes after each instruction."""
    active = inactive = 0
    for successor in blocks[b].successors:
        active |= entry[successor][0]
        inactive |= entry[successor][1]
    after = []
    code = blocks[b].instructions
    for i in reversed(range(len(code))):
        after.append(inactive)
        if mask.widens[b][i]:
            active = inactive = active | inactive
        reads, writes = _effects(code[i])
        if not mask.partial[b][i]:
            inactive &= ~writes
        active = (active & ~writes) | reads
        if code[i].reads_all_lanes:
            inactive |= reads
    if mask.merges[b]:
        active = inactive = active | inactive
    return (active, inactive), tuple(reversed(after))


def _effects(instruction: RecoveredInstruction) -> tuple[int, int]:
    """The units that an instruction reads and writes, as masks."""
    reads = writes = 0
    for operand in instruction.operands:
        units = 0
        for unit in operand.units:
            units |= 1 << unit
        if not operand.definition:
            reads |= units
        else:
            writes |= units
            if instruction.keeps_lanes:
                reads |= units
    return reads, writes
