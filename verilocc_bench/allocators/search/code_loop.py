"""Annealing of a placement with items and soft exclusions, for its machine code.

A move puts a node that costs something where it costs least, among the bases that are
free or that at most two other nodes block. Those move to where they cost least. If one
finds no place, the move is undone. A move for the worse is accepted as in anneal_loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.anneal_loop import (
    MOST_IN_THE_WAY,
    NO_PRICE,
    blocked,
    cost_at,
    in_the_way,
    take,
    total_cost,
)
from verilocc_bench.allocators.search.placement_model import Integers, Space
from verilocc_bench.allocators.search.refinement_items import Items
from verilocc_bench.allocators.search.search_compilation import compiled, next_random, random_rise
from verilocc_bench.allocators.search.soft_exclusions import SoftExclusions

ATTEMPTS = 16
"""The most random nodes that a step looks at for one that costs something."""


class CodeCosts(NamedTuple):
    """What the placement of a model costs in machine code."""

    items: Items
    soft: SoftExclusions


class _CodeScene(NamedTuple):
    """A placement, its costs, the number of nodes that block each base of each node, and space.

    `prices` is room for the cost of each base of one node.
    """

    bases: Integers
    items: Items
    soft: SoftExclusions
    taken: NDArray[np.int32]
    space: Space
    prices: Integers


@compiled
def _scene(bases: Integers, space: Space, costs: CodeCosts) -> _CodeScene:
    prices = np.zeros(space.allowed.shape[1], np.int64)
    return _CodeScene(bases, costs.items, costs.soft, blocked(bases, space), space, prices)


@compiled
def _soft_cost_at(node: int, bases: Integers, soft: SoftExclusions) -> int:
    """The cost of the soft exclusions of a node."""
    total = 0
    for k in range(soft.start[node], soft.start[node + 1]):
        if soft.low[k] <= bases[node] - bases[soft.other[k]] <= soft.high[k]:
            total += soft.weight[k]
    return total


@compiled
def code_cost(bases: Integers, costs: CodeCosts) -> int:
    """The cost of a placement, over all items and soft exclusions."""
    total = 0
    for node in range(len(bases)):
        total += _soft_cost_at(node, bases, costs.soft)
    return total // 2 + total_cost(costs.items, bases)  # each pair is in two lists


@compiled
def _price_bases(node: int, scene: _CodeScene) -> None:
    """Fills `prices` with the cost of the node at each base that it may have."""
    bases, items, soft, _, space, prices = scene
    units = len(prices)
    prices[:] = 0
    for k in range(soft.start[node], soft.start[node + 1]):
        first = bases[soft.other[k]] + soft.low[k]
        last = bases[soft.other[k]] + soft.high[k]
        for base in range(max(first, 0), min(last, units - 1) + 1):
            prices[base] += soft.weight[k]
    if items.item_start[node + 1] > items.item_start[node]:
        own = bases[node]
        for base in range(units):
            if space.allowed[node, base]:
                bases[node] = base
                prices[base] += cost_at(items, bases, node)
        bases[node] = own


@compiled
def _cheapest_base(node: int, most: int, scene: _CodeScene, state: NDArray[np.uint64]) -> int:
    """Another base of the node with the least price that at most `most` nodes block, or -1."""
    best, least, ties = -1, NO_PRICE, 0
    for base in range(len(scene.prices)):
        open_to_it = scene.space.allowed[node, base] and scene.taken[node, base] <= most
        if open_to_it and base != scene.bases[node]:
            price = scene.prices[base]
            if price < least:
                best, least, ties = base, price, 1
            elif price == least:
                ties += 1
                if next_random(state, ties) == 0:
                    best = base
    return best


@compiled
def _move(node: int, base: int, scene: _CodeScene) -> None:
    take(node, scene.bases[node], -1, scene.taken, scene.space)
    scene.bases[node] = base
    take(node, base, 1, scene.taken, scene.space)


@compiled
def _costly_node(scene: _CodeScene, state: NDArray[np.uint64]) -> int:
    """A random node, and one that costs something if a few attempts find one."""
    node = 0
    for _ in range(ATTEMPTS):
        node = next_random(state, len(scene.bases))
        if _soft_cost_at(node, scene.bases, scene.soft) > 0:
            break
        if cost_at(scene.items, scene.bases, node) > 0:
            break
    return node


@compiled
def shuffle_loop(
    bases: Integers,
    space: Space,
    costs: CodeCosts,
    moves: int,
    state: NDArray[np.uint64],
) -> None:
    """Moves random nodes to random free bases, so that the cost of the placement does not rise."""
    scene = _scene(bases, space, costs)
    for _ in range(moves):
        node = next_random(state, len(bases))
        _price_bases(node, scene)
        base = _cheapest_base(node, 0, scene, state)
        if base >= 0 and scene.prices[base] <= scene.prices[bases[node]]:
            _move(node, base, scene)


@compiled
def code_loop(
    bases: Integers,
    space: Space,
    costs: CodeCosts,
    schedule: Integers,
    state: NDArray[np.uint64],
) -> int:
    """Makes a valid placement cheaper within the allowed bases. Returns its cost.

    `schedule` has the temperature of each step. `bases` becomes the cheapest
    placement found.
    """
    scene = _scene(bases, space, costs)
    current = code_cost(bases, costs)
    best, least = bases.copy(), current
    moved = np.empty(MOST_IN_THE_WAY + 1, np.int64)
    old = np.empty(MOST_IN_THE_WAY + 1, np.int64)
    for temperature in schedule:
        if least == 0:
            break
        node = _costly_node(scene, state)
        # One step of three makes room only where nothing is in the way.
        most = next_random(state, MOST_IN_THE_WAY + 1)
        _price_bases(node, scene)
        base = _cheapest_base(node, most, scene, state)
        if base < 0:
            continue
        # The node first, then each node in its way.
        moved[0] = node
        out = in_the_way(node, base, scene, moved)
        change, placed = 0, 0
        while placed < out:
            if placed:
                node = moved[placed]
                _price_bases(node, scene)
                base = _cheapest_base(node, 0, scene, state)
                if base < 0:
                    break
            change += scene.prices[base] - scene.prices[bases[node]]
            old[placed] = bases[node]
            _move(node, base, scene)
            placed += 1
        if placed == out and change <= random_rise(state, temperature):
            current += change
            if current < least:
                least = current
                best[:] = bases
            continue
        for turn in range(placed):
            _move(moved[turn], old[turn], scene)
    bases[:] = best
    return least
