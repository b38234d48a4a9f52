"""Annealing on the order of first fit, in compiled form.

A move takes a node that lies above the target or found no place, and puts it
earlier into the order. If no node lies above the target, it moves any node
anywhere. The cost is the sum of units by which nodes exceed the target. At
temperature 0 this is hill climbing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.first_fit_orders import first_fit_loop
from verilocc_bench.allocators.search.placement_model import Integers, Space
from verilocc_bench.allocators.search.search_compilation import compiled, next_random, random_rise

UNPLACED = 10_000
"""The cost of a node that fits nowhere, in units above the target."""


@compiled
def _excess(bases: Integers, last: Integers, target: int) -> int:
    total = 0
    for node in range(len(bases)):
        if bases[node] < 0:
            total += UNPLACED
        else:
            total += max(int(bases[node] + last[node]) + 1 - target, 0)
    return total


@compiled
def _moved(
    order: Integers, bases: Integers, last: Integers, target: int, state: NDArray[np.uint64]
) -> Integers:
    """The order with one node elsewhere."""
    count = len(order)
    source = next_random(state, count)
    if next_random(state, 4) == 0:
        to = next_random(state, count)
    else:
        # The next node above the target after a random one moves earlier.
        for _ in range(count):
            node = order[source]
            if bases[node] < 0 or bases[node] + last[node] >= target:
                break
            source = (source + 1) % count
        to = next_random(state, source) if source else 0
    node = order[source]
    changed = order.copy()
    if to <= source:
        changed[to + 1 : source + 1] = order[to:source]
    else:
        changed[source:to] = order[source + 1 : to + 1]
    changed[to] = node
    return changed


@compiled
def order_loop(
    order: Integers,
    space: Space,
    target: int,
    schedule: Integers,
    state: NDArray[np.uint64],
) -> tuple[Integers, int]:
    """The best placement, and the sum of units by which it exceeds `target`.

    `schedule` has the temperature of each step. `order` becomes the order that
    gave the placement.
    """
    bases = first_fit_loop(order, space)
    current = _excess(bases, space.last, target)
    best, best_order, least = bases.copy(), order.copy(), current
    for temperature in schedule:
        if least == 0:
            break
        changed = _moved(order, bases, space.last, target, state)
        found = first_fit_loop(changed, space)
        excess = _excess(found, space.last, target)
        if excess - current <= random_rise(state, temperature):
            order[:] = changed
            bases, current = found, excess
            if current < least:
                least = current
                best[:] = bases
                best_order[:] = order
    order[:] = best_order
    return best, least
