"""The order in which blocks are read: a jump back is a loop, and nothing else is.

Compilers place blocks where they fall through best. A block that leaves the function, say, may
stand far above those that jump to it, and all in between would look like a loop. So blocks are
ordered by where they jump: every block after those that lead to it, the blocks of a loop together,
its entry first; apart from that in the order of the text.

Each nest of loops costs a search for strongly connected components (Tarjan, "Depth-first search
and linear graph algorithms", 1972): linear in the edges, times the depth of loops.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from verilocc_bench.ir import Function


def in_reading_order(function: Function) -> Function:
    """The same function with its blocks in the order of reading; the entry stays first."""
    successors = [block.successors for block in function.blocks]
    order = _ordered(range(len(successors)), successors, 0)
    place = {block: position for position, block in enumerate(order)}
    blocks = tuple(
        replace(
            function.blocks[block],
            successors=tuple(place[target] for target in successors[block]),
        )
        for block in order
    )
    return replace(function, blocks=blocks)


def _ordered(
    blocks: Sequence[int], successors: Sequence[tuple[int, ...]], entry: int | None
) -> list[int]:
    """The blocks in order; edges to others, and those back to `entry`, do not count."""
    inside = set(blocks)
    edges = {
        block: [t for t in successors[block] if t in inside and t != entry] for block in blocks
    }
    components = _components(blocks, edges)
    of = {block: number for number, component in enumerate(components) for block in component}
    waiting = [0] * len(components)
    for block in blocks:
        for target in edges[block]:
            waiting[of[target]] += of[target] != of[block]
    first = [0 if entry in component else 1 for component in components]
    ready = [
        (first[number], min(component), number)
        for number, component in enumerate(components)
        if not waiting[number]
    ]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, _, number = heapq.heappop(ready)
        component = sorted(components[number])
        head = _entry(component, inside, successors)
        order += component if len(component) == 1 else _ordered(component, successors, head)
        for block in component:
            for target in edges[block]:
                other = of[target]
                if other == number:
                    continue
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (first[other], min(components[other]), other))
    return order


def _entry(
    component: Sequence[int],
    inside: set[int],
    successors: Sequence[tuple[int, ...]],
) -> int:
    """The first block of a loop that is reached from outside; else the first of all."""
    members = set(component)
    for block in component:
        if any(block in successors[other] for other in inside if other not in members):
            return block
    return component[0]


def _components(blocks: Sequence[int], edges: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components, without recursion."""
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    stacked: set[int] = set()
    components: list[list[int]] = []
    for root in blocks:
        if root in index:
            continue
        path = [(root, iter(edges[root]))]
        index[root] = lowest[root] = len(index)
        stack.append(root)
        stacked.add(root)
        while path:
            block, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[block])
                if lowest[block] == index[block]:
                    component: list[int] = []
                    while not component or component[-1] != block:
                        component.append(stack.pop())
                        stacked.discard(component[-1])
                    components.append(component)
            elif target not in index:
                index[target] = lowest[target] = len(index)
                stack.append(target)
                stacked.add(target)
                path.append((target, iter(edges[target])))
            elif target in stacked:
                lowest[block] = min(lowest[block], index[target])
    return components
