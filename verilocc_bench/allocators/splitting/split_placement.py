"""Finds places for the registers of a rewritten function.

First fit in several orders, then tabu search from the best of them
(allocators.search). Budgets are steps, so the same function gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.placement_model import PlacementModel, Space
from verilocc_bench.ir import Assignment


@dataclass(frozen=True, slots=True)
class Placed:
    """The bases of a model's nodes; -1 for a node without a place."""

    model: PlacementModel
    bases: NDArray[np.int64]

    @property
    def unplaced(self) -> list[int]:
        """The nodes without a place."""
        return [int(node) for node in np.flatnonzero(self.bases < 0)]

    @property
    def assignment(self) -> Assignment:
        """The places of all registers. No node may be without a place."""
        return self.model.assignment(self.bases)


def place_nodes(
    model: PlacementModel,
    steps: int,
    seeds: range = range(1),
    hint: NDArray[np.int64] | None = None,
) -> Placed:
    """Places as many nodes of a model as search can, with `steps` for each seed.

    It is easier to make room for a narrow register than for a tuple. If tuples are
    left over, the widest ones are placed first and stay, and search places the
    others. `hint` are bases to begin with, as far as they are legal.
    """
    from verilocc_bench.allocators.search.first_fit_orders import first_fit_loop, node_orders

    space = model.within({})
    starts = [] if hint is None else [_legal(model, hint)]
    for order in node_orders(model):
        if starts and not (starts[-1] < 0).any():
            break
        starts.append(first_fit_loop(order, space))
    first = starts[0]
    best = min(starts, key=lambda bases: int((bases < 0).sum())).copy()
    if steps:
        _search(best, space, steps, seeds)
        widest = int(model.last[best < 0].max(initial=0))
        if widest:
            other = first.copy()
            _search(other, _with_fixed(model, space, other, widest), steps, seeds[:1])
            # The difficulty of the nodes without a place is the sum of the squares of their widths.
            best = min(best, other, key=lambda bases: int(((model.last[bases < 0] + 1) ** 2).sum()))
    return Placed(model, best)


def _search(bases: NDArray[np.int64], space: Space, steps: int, seeds: range) -> None:
    """Improves some bases by tabu search, in place."""
    from verilocc_bench.allocators.search.search_compilation import random_state
    from verilocc_bench.allocators.search.tabu_loop import COMPARED, tabu_loop

    for seed in seeds:
        if not (bases < 0).any():
            break
        tabu_loop(bases, space, steps, COMPARED, random_state(seed))


def _with_fixed(
    model: PlacementModel, space: Space, bases: NDArray[np.int64], widest: int
) -> Space:
    """A space in which the placed nodes at least as wide as `widest` keep their bases."""
    allowed = space.allowed.copy()
    fixed = np.flatnonzero((model.last >= widest) & (bases >= 0))
    for node in fixed:
        span = slice(int(model.start[node]), int(model.start[node + 1]))
        taken = bases[node] - model.distance[span]
        inside = (taken >= 0) & (taken < allowed.shape[1])
        allowed[model.other[span][inside], taken[inside]] = False
    allowed[fixed] = False
    allowed[fixed, bases[fixed]] = True
    return space._replace(allowed=allowed)


def _legal(model: PlacementModel, hint: NDArray[np.int64]) -> NDArray[np.int64]:
    """A hint without the bases that are not allowed or exclude the base of an earlier node."""
    bases = np.full(len(hint), -1, np.int64)
    for node, base in enumerate(hint):
        if base < 0 or not model.domain[node, base]:
            continue
        span = slice(int(model.start[node]), int(model.start[node + 1]))
        others = bases[model.other[span]]
        if not ((others >= 0) & (base - others == model.distance[span])).any():
            bases[node] = base
    return bases
