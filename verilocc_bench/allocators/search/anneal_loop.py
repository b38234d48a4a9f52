"""Annealing of a placement within given units: fewer bank conflicts and copies.

A move takes an item with a cost and puts one of its nodes elsewhere. Up to two
nodes in the way move to where they cost least; if they find no place, the move
is undone. A move for the worse is accepted with a probability that falls with
the temperature (Kirkpatrick, Gelatt and Vecchi, "Optimization by Simulated
Annealing", Science 1983).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.placement_model import Integers, Space
from verilocc_bench.allocators.search.refinement_items import Items
from verilocc_bench.allocators.search.search_compilation import compiled, next_random, random_rise

MOST_IN_THE_WAY = 2
NO_PRICE = 1 << 60


@compiled
def _unit(items: Items, bases: Integers, item: int, place: int) -> int:
    node = items.nodes[item, place]
    if node < 0:
        return int(items.offsets[item, place])
    return int(bases[node] + items.offsets[item, place])


@compiled
def _keeps(items: Items, bases: Integers, site: int) -> bool:
    """True if the operand slots still hold a site's three sources after it."""
    a = _unit(items, bases, site, 0)
    b = _unit(items, bases, site, 1)
    c = _unit(items, bases, site, 2)
    if a in (b, c) or b == c:
        return False
    for k in range(items.writes_start[site], items.writes_start[site + 1]):
        first = items.write_offsets[k]
        if items.write_nodes[k] >= 0:
            first += bases[items.write_nodes[k]]
        end = first + items.write_counts[k]
        if first <= a < end or first <= b < end or first <= c < end:
            return False
    return True


@compiled
def _cost(items: Items, bases: Integers, item: int) -> int:
    """The weighted cost of an item."""
    a = _unit(items, bases, item, 0)
    b = _unit(items, bases, item, 1)
    if item >= items.site_count:
        return 0 if a == b else int(items.weights[item])
    c = _unit(items, bases, item, 2)
    if a in (b, c) or b == c:
        return 0  # one register is read once, however often it is named
    # A slot that still holds its register does not ask the bank for it.
    read_a = read_b = read_c = True
    before = items.previous[item]
    if before >= 0 and _keeps(items, bases, before):
        read_a = a != _unit(items, bases, before, 0)
        read_b = b != _unit(items, bases, before, 1)
        read_c = c != _unit(items, bases, before, 2)
    bank_a, bank_b, bank_c = items.bank[a], items.bank[b], items.bank[c]
    most = 1
    if read_a and read_b and bank_a == bank_b:
        most = 2
    if read_a and read_c and bank_a == bank_c:
        most = 2
    if read_b and read_c and bank_b == bank_c:
        most = 2
    if read_a and read_b and read_c and bank_a == bank_b and bank_b == bank_c:
        most = 3
    return int(max(most - items.ports, 0) * items.weights[item])


@compiled
def total_cost(items: Items, bases: Integers) -> int:
    """The cost of a placement, over all items."""
    total = 0
    for item in range(len(items.weights)):
        total += _cost(items, bases, item)
    return total


@compiled
def cost_at(items: Items, bases: Integers, node: int) -> int:
    """The cost of the items that depend on a node."""
    total = 0
    for k in range(items.item_start[node], items.item_start[node + 1]):
        total += _cost(items, bases, items.items_of[k])
    return total


@compiled
def take(node: int, base: int, change: int, taken: NDArray[np.int32], space: Space) -> None:
    """Adds `change` at the bases that a node at `base` blocks for other nodes."""
    units = taken.shape[1]
    for k in range(space.start[node], space.start[node + 1]):
        unit = base - space.distance[k]
        if 0 <= unit < units:
            taken[space.other[k], unit] += change


@compiled
def blocked(bases: Integers, space: Space) -> NDArray[np.int32]:
    """The number of nodes that block each base of each node."""
    count, units = space.allowed.shape
    taken = np.zeros((count, units), np.int32)
    for node in range(count):
        take(node, bases[node], 1, taken, space)
    return taken


@compiled
def in_the_way(node: int, base: int, scene: Any, moved: Integers) -> int:
    """Fills `moved`, behind its first place, with the nodes that block a base of a node.

    Returns the end of those places: 1 more than the number of such nodes. A scene has
    `bases`, `taken` and `space`.
    """
    space, end = scene.space, 1
    if scene.taken[node, base]:
        for k in range(space.start[node], space.start[node + 1]):
            if base - scene.bases[space.other[k]] == space.distance[k]:
                moved[end] = space.other[k]
                end += 1
    return end


class _Scene(NamedTuple):
    """A placement, its items, the number of nodes that block each base of each node, and space."""

    bases: Integers
    items: Items
    taken: NDArray[np.int32]
    space: Space


@compiled
def _put(node: int, base: int, scene: _Scene) -> int:
    """Moves a node. Returns the change of the cost of its items."""
    bases, items, taken, space = scene
    change = -cost_at(items, bases, node)
    take(node, bases[node], -1, taken, space)
    bases[node] = base
    take(node, base, 1, taken, space)
    return change + cost_at(items, bases, node)


@compiled
def _free_base(node: int, scene: _Scene, state: NDArray[np.uint64]) -> int:
    """The free base at which a node costs least, or -1 if none is free."""
    bases, items, taken, space = scene
    own = bases[node]
    best, least, ties = -1, NO_PRICE, 0
    matters = items.item_start[node + 1] > items.item_start[node]
    for base in range(taken.shape[1]):
        if space.allowed[node, base] and taken[node, base] == 0:
            price = 0
            if matters:
                bases[node] = base
                price = cost_at(items, bases, node)
            if price < least:
                best, least, ties = base, price, 1
            elif price == least:
                ties += 1
                # The n-th equal base wins with probability 1/n: all are equally likely.
                if next_random(state, ties) == 0:
                    best = base
    bases[node] = own
    return best


@compiled
def _costly_item(items: Items, bases: Integers, state: NDArray[np.uint64]) -> int:
    """The next item with a cost after a random one, or -1 if no item has a cost."""
    count = len(items.weights)
    item = next_random(state, count)
    for _ in range(count):
        if _cost(items, bases, item):
            return item
        item = (item + 1) % count
    return -1


@compiled
def _pick_base(item: int, place: int, scene: _Scene, state: NDArray[np.uint64]) -> int:
    """A base for the node of an item, or -1 if there is nothing to try."""
    bases, items, taken, space = scene
    units = taken.shape[1]
    node = items.nodes[item, place]
    if item >= items.site_count:
        # A pair: its node moves to the other side.
        base = _unit(items, bases, item, 1 - place) - items.offsets[item, place]
        if 0 <= base < units and space.allowed[node, base]:
            return int(base) if taken[node, base] <= MOST_IN_THE_WAY else -1
        return -1
    base = next_random(state, units)
    for _ in range(units):
        open_to_it = space.allowed[node, base] and taken[node, base] <= MOST_IN_THE_WAY
        if open_to_it and base != bases[node]:
            return int(base)
        base = (base + 1) % units
    return -1


@compiled
def anneal_loop(
    bases: Integers, space: Space, items: Items, schedule: Integers, state: NDArray[np.uint64]
) -> tuple[int, int]:
    """Makes a valid placement cheaper within the allowed bases. Returns (cost, steps taken).

    `schedule` has the temperature of each step. `bases` becomes the cheapest
    placement found.
    """
    taken = blocked(bases, space)
    current = total_cost(items, bases)
    best, least = bases.copy(), current
    scene = _Scene(bases, items, taken, space)
    moved = np.empty(MOST_IN_THE_WAY + 1, np.int64)
    old = np.empty(MOST_IN_THE_WAY + 1, np.int64)
    steps = 0
    for temperature in schedule:
        if least == 0:
            break
        steps += 1
        item = _costly_item(items, bases, state)
        if item < 0:
            break
        # Items before `site_count` are reads of three sources, the others pairs.
        place = next_random(state, 3 if item < items.site_count else 2)
        node = items.nodes[item, place]
        if node < 0:
            continue
        base = _pick_base(item, place, scene, state)
        if base < 0:
            continue
        # The node first, then each node in its way.
        moved[0] = node
        out = in_the_way(node, base, scene, moved)
        for turn in range(out):
            old[turn] = bases[moved[turn]]
        change = _put(node, base, scene)
        placed = 1
        while placed < out:
            free = _free_base(moved[placed], scene, state)
            if free < 0:
                break
            change += _put(moved[placed], free, scene)
            placed += 1
        if placed == out and change <= random_rise(state, temperature):
            current += change
            if current < least:
                least = current
                best[:] = bases
            continue
        for turn in range(placed):
            _put(moved[turn], old[turn], scene)
    bases[:] = best
    return least, steps
