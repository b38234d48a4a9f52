"""Tabu search for a placement of all nodes within given units.

A partial placement never has collisions. A step puts an unplaced node at the
base where the nodes that it ejects weigh least. An ejected node must not return
to its base for a while. Nodes that are ejected often gain weight. The search
follows the partial-colouring search of Blöchliger and Zufferey, "A graph coloring
heuristic using partial solutions and a reactive tabu scheme" (Computers &
Operations Research 2008), with weights, and with distances of bases in place
of colours.

Cost of a step: the bases of some unplaced nodes, and the exclusions of the
nodes that move; 200,000 steps a second for 500 nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.anneal_loop import NO_PRICE, take
from verilocc_bench.allocators.search.placement_model import Integers, Space
from verilocc_bench.allocators.search.search_compilation import compiled, next_random

COMPARED = 6
"""The number of unplaced nodes that a step compares while many are left."""

SHORTEST_TENURE = 1
TENURE_SPREAD = 4
HEAVIEST = 1 << 20


class _Prices(NamedTuple):
    """The cost of each base for each node, and the step until which the base is barred.

    A step compares the costs of `compared` unplaced nodes.
    """

    cost: NDArray[np.int32]
    bars: NDArray[np.int32]
    compared: int


@compiled
def _cheapest(
    waiting: Integers,
    space: Space,
    prices: _Prices,
    step: int,
    state: NDArray[np.uint64],
) -> tuple[int, int]:
    """(index of a waiting node, base) of the least cost; (-1, -1) if all are barred."""
    cost, bars, compared = prices
    left, units = len(waiting), cost.shape[1]
    chosen, chosen_base, least, ties = -1, -1, NO_PRICE, 0
    first = next_random(state, left)
    for turn in range(min(left, compared)):
        place = (first + turn) % left
        node = waiting[place]
        for base in range(units):
            price = cost[node, base]
            if (
                price > least
                or not space.allowed[node, base]
                or (price and bars[node, base] > step)
            ):
                continue
            if price < least:
                least, chosen, chosen_base, ties = price, place, base, 1
            else:
                ties += 1
                if next_random(state, ties) == 0:
                    chosen, chosen_base = place, base
    return chosen, chosen_base


@compiled
def _any_base(node: int, space: Space, state: NDArray[np.uint64]) -> int:
    """A random allowed base, or -1."""
    found, legal = -1, 0
    for base in range(space.allowed.shape[1]):
        if space.allowed[node, base]:
            legal += 1
            if next_random(state, legal) == 0:
                found = base
    return found


@compiled
def tabu_loop(
    bases: Integers, space: Space, steps: int, compared: int, state: NDArray[np.uint64]
) -> tuple[int, int]:
    """Places as many nodes as it can. Returns (unplaced nodes, steps taken).

    `bases` (-1: unplaced) is a partial placement at allowed bases without
    collisions. It becomes the best placement found. A step compares `compared` unplaced nodes.
    """
    count, units = space.allowed.shape
    cost = np.zeros((count, units), np.int32)
    bars = np.zeros((count, units), np.int32)
    prices = _Prices(cost, bars, compared)
    weight = np.ones(count, np.int32)
    unplaced = np.empty(count, np.int64)
    left = 0
    for node in range(count):
        if bases[node] >= 0:
            take(node, bases[node], 1, cost, space)
        else:
            unplaced[left] = node
            left += 1
    best, fewest = bases.copy(), left
    step = 0
    while left and step < steps:
        step += 1
        place, chosen = _cheapest(unplaced[:left], space, prices, step, state)
        if place < 0:  # all are barred: any move is better than none
            place = next_random(state, left)
            chosen = _any_base(unplaced[place], space, state)
            if chosen < 0:
                break
        node = unplaced[place]
        left -= 1
        unplaced[place] = unplaced[left]
        for k in range(space.start[node], space.start[node + 1]):
            loser = space.other[k]
            if bases[loser] >= 0 and chosen - bases[loser] == space.distance[k]:
                take(loser, bases[loser], -weight[loser], cost, space)
                # The more nodes wait, the longer the way back is barred.
                tenure = SHORTEST_TENURE + left + next_random(state, TENURE_SPREAD)
                bars[loser, bases[loser]] = step + tenure
                bases[loser] = -1
                if weight[loser] < HEAVIEST:
                    weight[loser] += 1
                unplaced[left] = loser
                left += 1
        bases[node] = chosen
        take(node, chosen, weight[node], cost, space)
        if left < fewest:
            fewest = left
            best[:] = bases
    bases[:] = best
    return fewest, step
