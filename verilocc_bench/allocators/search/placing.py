"""Placements within given limits, and with as few registers as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from verilocc_bench.allocators.search.first_fit_orders import first_fit_loop, node_orders
from verilocc_bench.allocators.search.order_loop import order_loop
from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.search_compilation import random_state
from verilocc_bench.allocators.search.tabu_loop import COMPARED, tabu_loop

Limits = Mapping[str, int]
"""The number of units of each file that may be used."""

PATIENCE = 3
"""The usual factor on the budget for one register less than the best placement."""

NEAR_BOUND = 4
"""How many numbers of registers are tried one by one, from the bound up.

Most answers are there. Where none is, the answer may be a hundred registers away.
"""

PERSISTENCE = 2
"""The factor on the budget for each order if first fit places not all nodes in any."""

_ORDER_TEMPERATURES = np.array([2, 1, 0], np.int64)

MOST_LEFT = 3
"""Fresh starts follow where patience has left at most this number of nodes without a place."""

MANY_LEFT = 10
"""With more nodes left after the first chunk a search gives up."""

CHUNK_STEPS = 20_000
"""Steps of a first chunk, by which a search is judged."""

LONG_CHUNK_STEPS = 100_000
"""Steps of each further chunk, and of a fresh start.

Between chunks the search restarts from its best, and can be interrupted.
"""


class SearchBudget(NamedTuple):
    """Steps of a search, and the seed of its random numbers.

    `start`: a complete placement that is known, if there is one. `restarts`: a
    factor on the steps, for fresh starts where nothing else helps any more.
    `patience`: the factor for one register less than the best placement.
    """

    steps: int
    seed: int
    start: Integers | None = None
    restarts: int = 0
    patience: int = PATIENCE


@dataclass(frozen=True, slots=True)
class Shapes:
    """The limits on a model's files for a number of registers.

    `ways(registers)` gives limits under which at most that many are used, the
    most promising first; it gives none for a number that is known to be too
    small. `around(bases, registers)` gives the limits that a placement keeps.
    `used(bases)` is the number of registers that a placement uses. `most` is the
    largest number.
    """

    ways: Callable[[int], Sequence[Limits]]
    around: Callable[[Integers | None, int], Limits]
    used: Callable[[Integers], int]
    most: int


def brief(shapes: Shapes, budget: SearchBudget) -> tuple[Shapes, SearchBudget]:
    """One chunk of steps for each number of registers, within its most promising limits alone."""
    most_promising = replace(shapes, ways=lambda registers: shapes.ways(registers)[:1])
    steps = min(budget.steps, CHUNK_STEPS)
    return most_promising, SearchBudget(steps, budget.seed, budget.start, patience=1)


def within(bases: Integers, space: Space) -> Integers:
    """The bases, with -1 for those that are not allowed."""
    nodes = np.arange(len(bases))
    return np.where((bases >= 0) & space.allowed[nodes, np.maximum(bases, 0)], bases, -1)


class Placing(NamedTuple):
    """A placement of all nodes, or None; and the nodes for which no base was found."""

    bases: Integers | None
    left: int


def place(space: Space, hint: Integers | None, steps: int, seed: int) -> Integers | None:
    """A placement of all nodes at allowed bases by tabu search, or None; see `attempt`.

    However many nodes are left, all steps are taken: no other placement is known.
    """
    return attempt(space, hint, steps, seed, most_left=len(space.allowed)).bases


def attempt(
    space: Space,
    hint: Integers | None,
    steps: int,
    seed: int,
    *,
    is_hopeless: Callable[[], bool] = lambda: False,
    most_left: int = MANY_LEFT,
) -> Placing:
    """A placement of all nodes at allowed bases by tabu search.

    `hint` is a placement without collisions; it may be partial or contain bases
    that are not allowed. The search gives up after the first chunk if more than
    `most_left` nodes are left, or if it `is_hopeless`. The result depends only on the arguments.
    """
    left = len(space.allowed)
    if not space.allowed.any(axis=1).all():
        return Placing(None, left)
    bases = np.full(left, -1, np.int64) if hint is None else hint
    bases = within(bases, space)
    chunk = 0
    while steps > 0:
        state = random_state(seed * 1_000 + chunk)
        # With few nodes left, steps that take any of them wander further: long runs of these find
        # four to eight times as many placements in the same time.
        size = LONG_CHUNK_STEPS if chunk else CHUNK_STEPS
        compared = 1 if chunk and left <= MANY_LEFT else COMPARED
        left, taken = tabu_loop(bases, space, min(steps, size), compared, state)
        if left == 0:
            return Placing(bases, 0)
        steps -= max(taken, 1)
        if chunk == 0 and (left > most_left or is_hopeless()):
            break
        chunk += 1
    return Placing(None, left)


def _best_order(model: PlacementModel, shapes: Shapes) -> Integers | None:
    """The first-fit placement with the fewest registers over all orders; None if all fail."""
    best, space = None, model.within({})
    for order in node_orders(model):
        bases = first_fit_loop(order, space)
        if (bases >= 0).all() and (best is None or shapes.used(bases) < shapes.used(best)):
            best = bases
    return best


def _place_from_orders(model: PlacementModel, steps: int, seed: int) -> Integers | None:
    """A placement by tabu search from the partial first-fit placement of an order, or None."""
    space = model.within({})
    for order in node_orders(model):
        found = place(space, first_fit_loop(order, space), steps, seed)
        if found is not None:
            return found
    return None


def _place_within(
    model: PlacementModel,
    ways: Sequence[Limits],
    hint: Integers,
    budget: SearchBudget,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> Placing:
    """A placement within one of several limits; the budget is for each limit."""
    left = len(model.nodes)
    for limits in ways:
        found = attempt(
            model.within(limits), hint, budget.steps, budget.seed, is_hopeless=is_hopeless
        )
        left = min(left, found.left)
        if found.bases is not None or is_hopeless():
            return found
    return Placing(None, left)


def minimize(
    model: PlacementModel,
    shapes: Shapes,
    bound: int,
    budget: SearchBudget,
    report: Callable[[Integers], None],
    *,
    is_impossible: Callable[[int], bool] = lambda _: False,
) -> Integers | None:
    """A placement with as few registers as tabu search finds, down to `bound`.

    `report` gets every complete placement that is better than those before. The
    budget is for each number of registers that the search tries. A number that
    `is_impossible` costs no more than a chunk of it; that is asked only where the
    first chunk finds nothing.
    """
    steps, seed, start, restarts, patience = budget
    best = _best_order(model, shapes)
    if start is not None and (best is None or shapes.used(start) < shapes.used(best)):
        best = start
    if best is None and steps:
        best = _place_from_orders(model, PERSISTENCE * steps, seed)
    if best is None:
        return None
    report(best)
    if not steps:
        return best
    # Upwards from the bound, soon by halves; then one less, with more steps.
    least = bound
    while least < shapes.used(best):
        halfway = (least + shapes.used(best) - 1) // 2
        registers = least if least < bound + NEAR_BOUND else halfway
        hopeless = partial(is_impossible, registers)
        found, _ = _place_within(model, shapes.ways(registers), best, budget, hopeless)
        if found is None:
            least = registers + 1
        else:
            best = found
            report(best)
    patient = SearchBudget(patience * steps, seed + 1)
    left = 0
    while bound < shapes.used(best) and not is_impossible(shapes.used(best) - 1):
        ways = shapes.ways(shapes.used(best) - 1)
        found, left = _place_within(model, ways, best, patient)
        if found is None:
            break
        best = found
        report(best)
    # The limits take turns.
    for turn in range(restarts * steps // LONG_CHUNK_STEPS if left <= MOST_LEFT else 0):
        if bound >= shapes.used(best) or is_impossible(shapes.used(best) - 1):
            break
        ways = shapes.ways(shapes.used(best) - 1)
        this_turn = ways[turn % len(ways) :][:1] if ways else ()
        fresh = SearchBudget(LONG_CHUNK_STEPS, seed + 2 + turn)
        found, _ = _place_within(model, this_turn, best, fresh)
        if found is not None:
            best = found
            report(best)
    return best


def anneal_orders(
    model: PlacementModel,
    shapes: Shapes,
    bound: int,
    budget: SearchBudget,
    report: Callable[[Integers], None],
) -> Integers | None:
    """Like `minimize`, but by annealing on the order of first fit, from each of the orders."""
    steps, seed, *_ = budget
    space = model.within({})
    orders = list(node_orders(model))
    schedule = np.repeat(_ORDER_TEMPERATURES, max(steps // (3 * len(orders)), 1))
    best = None
    for number, order in enumerate(orders):
        target = bound
        if best is not None:
            target = max(bound, shapes.used(best) - 1)
        if best is not None and target >= shapes.used(best):
            break
        state = random_state(seed * 1_000 + number)
        bases, _ = order_loop(order, space, target, schedule, state)
        if (bases >= 0).all() and (best is None or shapes.used(bases) < shapes.used(best)):
            best = bases
            report(best)
    return best
