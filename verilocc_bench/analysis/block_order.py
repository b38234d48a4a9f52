"""The order in which an analysis visits the blocks of a function."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from verilocc_bench.errors import InputError

VISITS = 400_000
VISITS_OF_A_BLOCK = 20
"""A fixed point may visit a block this many times on average; kernels need 3 visits."""


def reverse_postorders(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Reverse postorders that together have every block once.

    The first has the blocks that the entry, block 0, leads to. Each further one has the
    blocks that the first block of none before leads to.
    """
    orders: list[list[int]] = []
    seen = [False] * len(successors)
    for start in range(len(successors)):
        if seen[start]:
            continue
        seen[start] = True
        order: list[int] = []
        path = [(start, iter(successors[start]))]
        while path:
            block, following = path[-1]
            successor = next((each for each in following if not seen[each]), None)
            if successor is None:
                order.append(block)
                path.pop()
            else:
                seen[successor] = True
                path.append((successor, iter(successors[successor])))
        orders.append(order[::-1])
    return orders


class PendingBlocks:
    """The blocks that are still to be visited, in sweeps forwards and backwards through an order.

    At the beginning every block is. A forward sweep carries facts along any
    number of forward edges, a backward sweep along any number of back edges.
    With forward sweeps alone, each back edge would cost a sweep.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order
        self._ranks = [0] * len(order)
        for rank, block in enumerate(order):
            self._ranks[block] = rank
        self._waiting = [True] * len(order)
        self._direction = 1
        self._sweep = list(range(len(order)))
        self._next: list[int] = []
        self._at = -1
        self._left = VISITS + VISITS_OF_A_BLOCK * len(order)

    def add(self, block: int) -> None:
        """Marks a block: for this sweep if the sweep has not passed it, else for the next."""
        if self._waiting[block]:
            return
        self._waiting[block] = True
        place = self._ranks[block] * self._direction
        if place > self._at:
            heappush(self._sweep, place)
        else:
            self._next.append(-place)

    def pop(self) -> int | None:
        """The next block; None at the end. Raises InputError after too many visits."""
        if not self._sweep:
            if not self._next:
                return None
            self._direction = -self._direction
            self._sweep, self._next = self._next, []
            heapify(self._sweep)
        self._left -= 1
        if self._left < 0:
            raise InputError(
                f"the edges between the {len(self._order):,} blocks are too tangled to analyse"
            )
        self._at = heappop(self._sweep)
        block = self._order[self._at * self._direction]
        self._waiting[block] = False
        return block
