"""Natural loops, by dominators.

Dominators by the iterative algorithm of Cooper, Harvey and Kennedy ("A
Simple, Fast Dominance Algorithm"), on reverse postorder. Edges into a block
that dominates their source are back edges. Loops with the same head are one
loop. An irreducible cycle has no back edge and adds no depth.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.analysis.block_order import reverse_postorders
from verilocc_bench.errors import InputError

BLOCKS = 10_000_000
"""The most blocks of all loops together, which take 1 GiB."""


def loop_depths(successors: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The number of natural loops around each block; 0 for a block that cannot be reached."""
    loops = natural_loops(successors)
    return tuple(sum(block in body for body in loops) for block in range(len(successors)))


def natural_loops(successors: Sequence[Sequence[int]]) -> list[set[int]]:
    """The blocks of each natural loop.

    `successors[block]` are the successors of a block; block 0 is the entry. Raises InputError
    for loops that have too many blocks together.
    """
    order = reverse_postorders(successors)[0]
    position = {block: index for index, block in enumerate(order)}
    predecessors: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for successor in successors[block]:
            predecessors[successor].append(block)
    dominator = _immediate_dominators(order, position, predecessors)
    loops: dict[int, set[int]] = {}
    count = 0
    for block in order:
        for successor in successors[block]:
            if _dominates(successor, block, dominator, position):
                body = loops.setdefault(successor, {successor})
                count -= len(body)
                _collect(block, body, predecessors)
                count += len(body)
                if count > BLOCKS:
                    raise InputError(f"loops in loops: all have more than {BLOCKS:,} blocks")
    return list(loops.values())


def _immediate_dominators(
    order: list[int], position: dict[int, int], predecessors: dict[int, list[int]]
) -> dict[int, int]:
    dominator = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in predecessors[block] if p in dominator]
            common = known[0]
            for other in known[1:]:
                common = _common(common, other, dominator, position)
            if dominator.get(block) != common:
                dominator[block] = common
                changed = True
    return dominator


def _common(a: int, b: int, dominator: dict[int, int], position: dict[int, int]) -> int:
    while a != b:
        while position[a] > position[b]:
            a = dominator[a]
        while position[b] > position[a]:
            b = dominator[b]
    return a


def _dominates(a: int, b: int, dominator: dict[int, int], position: dict[int, int]) -> bool:
    while position[b] > position[a]:
        b = dominator[b]
    return a == b


def _collect(tail: int, body: set[int], predecessors: dict[int, list[int]]) -> None:
    pending = [tail]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += predecessors[block]
