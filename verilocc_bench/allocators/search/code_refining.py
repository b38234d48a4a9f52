"""Refinement for machine code: as refining, with the order that shared registers add.

The cost is a sum over what the hardware pays for, each part times ten for each loop
around it: copies that stay, reads that collide in a bank, long encodings, false
dependences, and false dependences that need wait states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from verilocc_bench.allocators.search.code_loop import CodeCosts, code_cost, code_loop, shuffle_loop
from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.placing import SearchBudget, place
from verilocc_bench.allocators.search.refinement_items import (
    OBJECTIVE_WEIGHTS,
    Items,
    collect_items,
)
from verilocc_bench.allocators.search.refining import wanted_bases
from verilocc_bench.allocators.search.search_compilation import random_state
from verilocc_bench.allocators.search.soft_exclusions import (
    FalseDependenceWeights,
    SoftExclusions,
    collect_soft_exclusions,
)
from verilocc_bench.analysis.false_dependences import FalseDependence
from verilocc_bench.settings.search import Objective

GENTLE = np.array([8, 2, 0], np.int64)
"""The temperatures of the first run: no worse than the cost of a few orders outside loops."""

_FACTOR_OF_NEW = 4
"""The factor on the weight of false dependences that the given placement does not have."""


def collect_costs(model: PlacementModel, dependences: Sequence[FalseDependence]) -> CodeCosts:
    """What the placement of a model costs in machine code."""
    soft = collect_soft_exclusions(model, dependences, FalseDependenceWeights())
    return CodeCosts(collect_items(model, OBJECTIVE_WEIGHTS[Objective.MACHINE_CODE]), soft)


def refine_code(
    costs: CodeCosts,
    bases: Integers,
    space: Space,
    budget: SearchBudget,
    report: Callable[[Integers], None],
) -> Integers:
    """A placement that costs no more than `bases`, which must be complete and allowed.

    `report` gets every placement that is better than those before. The result
    depends only on the arguments.
    """
    best = bases.copy()
    cost = code_cost(best, costs)
    if not cost:
        return best
    start = _start(costs, space, budget)
    for turn, temperatures in enumerate((GENTLE, _temperatures(*costs))):
        # The first run keeps nodes where they vanish as copies, the second may leave them.
        found = best.copy() if start is None or turn else start
        schedule = np.repeat(temperatures, max(budget.steps // (2 * len(temperatures)), 1))
        state = random_state(budget.seed * 1_000 + turn)
        least = code_loop(found, space, costs, schedule, state)
        if least < cost:
            best, cost = found, least
            report(best)
        if not cost:
            break
    return best


def _start(costs: CodeCosts, space: Space, budget: SearchBudget) -> Integers | None:
    """A placement in which the nodes that prefer a certain register have it, if there is one.

    If all of them together find no placement, they are only the first to be placed.
    """
    wanted = wanted_bases(costs.items, space)
    allowed = space.allowed.copy()
    for node in np.flatnonzero(wanted >= 0):
        allowed[node] = False
        allowed[node, wanted[node]] = True
    kept = place(space._replace(allowed=allowed), wanted, budget.steps, budget.seed)
    return kept if kept is not None else place(space, wanted, budget.steps, budget.seed)


def shuffled(costs: CodeCosts, bases: Integers, space: Space, share: int, seed: int) -> Integers:
    """A placement of no higher cost, in which one node of `share` may lie elsewhere."""
    found = bases.copy()
    if len(found):
        moves = max(len(found) // share, 1)
        shuffle_loop(found, space, costs, moves, random_state(seed))
    return found


def costs_beside(costs: CodeCosts, bases: Integers) -> CodeCosts:
    """Costs under which a placement keeps the order of instructions that `bases` makes.

    False dependences of `bases` are free, and all others cost more.
    """
    soft = costs.soft
    nodes = np.repeat(np.arange(len(soft.start) - 1), np.diff(soft.start))
    distance = bases[nodes] - bases[soft.other]
    has = (soft.low <= distance) & (distance <= soft.high)
    return costs._replace(soft=soft._replace(weight=np.where(has, 0, _FACTOR_OF_NEW * soft.weight)))


def descend(costs: CodeCosts, bases: Integers, space: Space, budget: SearchBudget) -> Integers:
    """A placement of equal or lower cost, reached by moves that never raise the cost."""
    found = bases.copy()
    if len(found):
        schedule = np.zeros(budget.steps, np.int64)
        code_loop(found, space, costs, schedule, random_state(budget.seed))
    return found


def _temperatures(items: Items, soft: SoftExclusions) -> Integers:
    """The temperatures: half the greatest weight of an order, down to 0 by factors of four."""
    temperature = max(int(soft.weight.max(initial=2)), int(items.weights.max(initial=2))) // 2
    found = []
    while temperature:
        found.append(temperature)
        temperature //= 4
    return np.array([*found, 0], np.int64)
