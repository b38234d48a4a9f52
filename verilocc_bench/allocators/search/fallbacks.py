"""Fallbacks for models in which first fit and tabu search find no placement.

In the order of their cost: the orders of linear scan and of graph colouring
(milliseconds), ejection at dead ends (seconds), CP-SAT
(up to a minute). Each works on one model. Its placement is checked against the
model before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from verilocc_bench.allocators.ejection import Ejection
from verilocc_bench.allocators.exact.exact_placing import ExactStatus, solve
from verilocc_bench.allocators.first_fit import first_fit
from verilocc_bench.allocators.graph_coloring import coloring_order
from verilocc_bench.allocators.linear_scan import scan_order
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.allocators.search.first_fit_orders import node_orders
from verilocc_bench.allocators.search.options import SearchOptions
from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel
from verilocc_bench.errors import AllocationFailed

Fallback = Callable[[PlacementModel, SearchOptions], Integers | None]

EXACT_EFFORT = 5
"""The factor on CP-SAT's budget for a question, for an answer needs a placement."""


def place_otherwise(model: PlacementModel, options: SearchOptions) -> tuple[str, Integers] | None:
    """The name and the placement of the first fallback that finds one, or None.

    Raises AllocationFailed if CP-SAT proves that no placement exists.
    """
    for name, fallback in _FALLBACKS.items():
        bases = fallback(model, options)
        if bases is not None and model.is_valid(bases):
            return name, bases
    return None


def place_by_orders(model: PlacementModel) -> list[tuple[str, Integers]]:
    """The name and the placement of each allocator with a single order that finds one."""
    found = []
    for name in ("linear-scan", "graph-coloring"):
        bases = _FALLBACKS[name](model, SearchOptions())
        if bases is not None and model.is_valid(bases):
            found.append((name, bases))
    return found


def _first_fit(model: PlacementModel, order: Iterable[int]) -> Integers | None:
    own = [register for register in order if register in model.node_of]
    try:
        return model.bases(first_fit(model.problem, own))
    except AllocationFailed:
        return None


def _ejection(model: PlacementModel, options: SearchOptions) -> Integers | None:
    """Tries each order of first fit with few dead ends, then each with more."""
    orders = [
        [register for node in order for register, _ in model.nodes[node].members]
        for order in node_orders(model)
    ]
    for limit in options.ejection_limits(len(model.nodes)):
        for order in orders:
            placed = _eject(model, order, limit)
            if placed is not None:
                return placed
    return None


def _eject(model: PlacementModel, order: list[int], dead_ends: int) -> Integers | None:
    search = Ejection(RegisterState(model.problem), order)
    while search.register is not None:
        base = next(iter(search.choices()), None)
        if base is not None:
            search.take(base)
        elif search.steps >= dead_ends or not search.eject():
            return None
    placements = model.problem.placements
    placed = search.state.placed
    return model.bases({register: placements.register(base) for register, base in placed.items()})


def _exact(model: PlacementModel, options: SearchOptions) -> Integers | None:
    time = EXACT_EFFORT * options.exact_time
    result = solve(model, {}, deterministic_time=time, seed=options.seed)
    if result.status is ExactStatus.INFEASIBLE:
        files = "/".join(model.files)
        raise AllocationFailed(f"proved infeasible: CP-SAT finds that {files} have no room")
    return result.bases


_FALLBACKS: dict[str, Fallback] = {
    "linear-scan": lambda model, _: _first_fit(model, scan_order(model.problem)),
    "graph-coloring": lambda model, _: _first_fit(model, coloring_order(model.problem)),
    "ejection": _ejection,
    "cp-sat": _exact,
}
