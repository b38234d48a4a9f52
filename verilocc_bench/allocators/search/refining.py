"""Refinement: fewer bank conflicts and copies, at no more registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verilocc_bench.allocators.search.anneal_loop import anneal_loop, total_cost
from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.placing import SearchBudget, place
from verilocc_bench.allocators.search.refinement_items import Items, Weights, collect_items
from verilocc_bench.allocators.search.search_compilation import random_state

ROUNDS = 4
"""The number of annealing runs, each from the best so far; interrupts take effect between them."""


def refine(
    items: Items,
    bases: Integers,
    space: Space,
    budget: SearchBudget,
    report: Callable[[Integers], None],
) -> Integers:
    """A placement whose items cost no more than `bases`, which must be complete and allowed.

    `report` gets every placement that is better than those before. The result
    depends only on the arguments.
    """
    best = bases.copy()
    cost = total_cost(items, best)
    if not cost or not len(items.weights):
        return best
    start = place(space, wanted_bases(items, space), budget.steps, budget.seed)
    if start is not None and total_cost(items, start) < cost:
        best, cost = start, total_cost(items, start)
        report(best)
    temperatures = _temperatures(items)
    steps_each = max(budget.steps // (ROUNDS * len(temperatures)), 1)
    for turn in range(ROUNDS):
        found = best.copy()
        schedule = np.repeat(temperatures[min(turn, len(temperatures) - 1) :], steps_each)
        state = random_state(budget.seed * 1_000 + turn)
        least, _ = anneal_loop(found, space, items, schedule, state)
        if least < cost:
            best, cost = found, least
            report(best)
        if not cost:
            break
    return best


def wanted_bases(items: Items, space: Space) -> Integers:
    """A partial placement of the nodes that prefer a certain register, by weight.

    Annealing moves few nodes at once and rarely makes room for them.
    """
    bases = np.full(len(space.allowed), -1, np.int64)
    pairs = range(items.site_count, len(items.weights))
    for item in sorted(pairs, key=lambda item: -items.weights[item]):
        (left, right), (offset, other) = items.nodes[item, :2], items.offsets[item, :2]
        if left < 0:
            left, right, offset, other = right, left, other, offset
        if right >= 0 or bases[left] >= 0:
            continue
        base = other - offset
        entries = slice(space.start[left], space.start[left + 1])
        placed = bases[space.other[entries]]
        collides = (placed >= 0) & (base - placed == space.distance[entries])
        if 0 <= base < space.allowed.shape[1] and space.allowed[left, base] and not collides.any():
            bases[left] = base
    return bases


def refinement_cost(model: PlacementModel, bases: Integers, weights: Weights) -> int:
    """The cost of a placement by these weights and the loop depths."""
    return int(total_cost(collect_items(model, weights), bases))


def _temperatures(items: Items) -> Integers:
    """The temperatures: a quarter of the greatest weight, halved again and again down to 0."""
    temperature = max(int(items.weights.max()) // 4, 1)
    found = []
    while temperature:
        found.append(temperature)
        temperature //= 2
    return np.array([*found, 0], np.int64)
