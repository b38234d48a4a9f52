"""Places for the registers of a rewritten function, or those that found none.

First fit in several orders, then tabu search from the best of them
(allocators.search). Steps, not seconds: the same function gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.model import PlacementModel, Space
from verilocc_bench.ir import Assignment

__all__ = ["Placed", "place_nodes"]


@dataclass(frozen=True, slots=True)
class Placed:
    """The bases of a model's nodes, -1 for those left over."""

    model: PlacementModel
    bases: NDArray[np.int64]

    @property
    def unplaced(self) -> list[int]:
        """The nodes without a place."""
        return [int(node) for node in np.flatnonzero(self.bases < 0)]

    @property
    def assignment(self) -> Assignment:
        """The places of all registers, where none is left over."""
        return self.model.assignment(self.bases)


def place_nodes(
    model: PlacementModel,
    steps: int,
    seeds: range = range(1),
    hint: NDArray[np.int64] | None = None,
) -> Placed:
    """Places as many nodes of a model as search finds room for, `steps` for each seed.

    Room for a narrow register is sooner made than for a tuple: where tuples are
    left over, the widest are placed first and stay, and search is for the others.
    `hint`: bases to begin with, as far as they are legal.
    """
    from verilocc_bench.allocators.search.first_fit_loop import first_fit_loop
    from verilocc_bench.allocators.search.orders import node_orders

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
            best = min(best, other, key=lambda bases: _price(model, bases))
    return Placed(model, best)


def _search(bases: NDArray[np.int64], space: Space, steps: int, seeds: range) -> None:
    """Tabu search from some bases, which become the best found."""
    from verilocc_bench.allocators.search.compiled import random_state
    from verilocc_bench.allocators.search.tabu_loop import tabu_loop

    for seed in seeds:
        if not (bases < 0).any():
            break
        tabu_loop(bases, space, steps, random_state(seed))


def _price(model: PlacementModel, bases: NDArray[np.int64]) -> int:
    """How hard it is to make room for what is left over: the squares of the widths."""
    return int(((model.last[bases < 0] + 1) ** 2).sum())


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
    """The bases of a hint but for those that are not allowed, or exclude an earlier node's."""
    bases = np.full(len(hint), -1, np.int64)
    for node, base in enumerate(hint):
        if base < 0 or not model.domain[node, base]:
            continue
        span = slice(int(model.start[node]), int(model.start[node + 1]))
        others = bases[model.other[span]]
        if not ((others >= 0) & (base - others == model.distance[span])).any():
            bases[node] = base
    return bases
