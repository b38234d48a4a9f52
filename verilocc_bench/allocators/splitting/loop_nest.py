"""The nest of loops of a function, by strongly connected components.

A loop is a strongly connected component of more than one block, or of one block
that follows itself. Without its entries the component contains the inner loops
(Havlak, "Nesting of Reducible and Irreducible Loops", TOPLAS 1997, in the
recursive form of Steensgaard). On reducible graphs these are the natural loops.
Cost: linear in the edges for each level of nesting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verilocc_bench.ir import Function

OUTSIDE = -1
"""The number for code outside all loops."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """`innermost[block]` is the innermost loop of a block, `parents[loop]` the loop around a loop.

    Both are OUTSIDE without such a loop.
    """

    innermost: tuple[int, ...]
    parents: tuple[int, ...]

    def around(self, block: int) -> Iterator[int]:
        """The loops around a block, innermost first."""
        loop = self.innermost[block]
        while loop != OUTSIDE:
            yield loop
            loop = self.parents[loop]


def find_loops(function: Function) -> LoopNest:
    """The loops of a function."""
    successors = [block.successors for block in function.blocks]
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(block)
    innermost = [OUTSIDE] * len(successors)
    parents: list[int] = []
    pending = [(frozenset(range(len(successors))), OUTSIDE)]
    while pending:
        blocks, parent = pending.pop()
        for component in _components(blocks, successors):
            if len(component) == 1 and not component.intersection(successors[min(component)]):
                continue
            loop = len(parents)
            parents.append(parent)
            for block in component:
                innermost[block] = loop
            entries = {b for b in component if not component.issuperset(predecessors[b])}
            entries = entries or {min(component)}
            pending.append((component - entries, loop))
    return LoopNest(tuple(innermost), tuple(parents))


def _components(
    blocks: frozenset[int], successors: Sequence[Sequence[int]]
) -> list[frozenset[int]]:
    """The strongly connected components of some blocks (Tarjan, SIAM J. Computing 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    placed: set[int] = set()
    found: list[frozenset[int]] = []
    for root in sorted(blocks):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        work = [(root, iter(successors[root]))]
        while work:
            block, following = work[-1]
            for successor in following:
                if successor not in blocks or successor in placed:
                    continue
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    stack.append(successor)
                    work.append((successor, iter(successors[successor])))
                    break
                low[block] = min(low[block], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[block])
                if low[block] == number[block]:
                    place = stack.index(block)
                    found.append(frozenset(stack[place:]))
                    placed.update(stack[place:])
                    del stack[place:]
    return found
