"""Hall's condition: sets of lanes that want more units than may hold any of them.

Lanes at one point need different units, each of them one at which a legal
base of its register puts it. By Hall's theorem ("On Representatives of
Subsets", Journal of the London Mathematical Society 1935) that is possible
exactly when no set of lanes outnumbers the units that may hold any of them.
It is enough to look at the sets of all lanes that must lie within some union
of the units of single kinds. Alignment makes those sets: of tuples at even
bases of which one lane is live, all such lanes want even units.

Cost: for each shape a product of two matrices, unions by kinds by the hottest
points; the unions are limited by joining the units of rare kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis.lower_bounds.demands import Demands, units_of_kind
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Refutation, Shape

__all__ = ["refute_by_residues"]

MOST_UNIONS = 1024


@dataclass(frozen=True, slots=True)
class _Unions:
    """Sets of units, and for each the kinds whose units all lie within."""

    sizes: tuple[int, ...]
    within: NDArray[np.int64]


def refute_by_residues(demands: Demands, shape: Shape) -> Refutation | None:
    """A point at which Hall's condition fails within a shape, if there is one.

    Where the lanes are more than all units that any of them may have, the
    refutation is one by pressure.
    """
    points = demands.hottest
    if not len(points) or not len(demands.kinds):
        return None
    units = [_mask(units_of_kind(demands.problem, kind, shape)) for kind in demands.kinds]
    unions = _unions(units)
    wanted = unions.within @ demands.counts[:, points]
    excess = wanted - np.array(unions.sizes)[:, None]
    # The last union is of all kinds: where that fails already, it is what readers expect.
    row = len(excess) - 1 if excess[-1].max() > 0 else int(excess.max(axis=1).argmax())
    column = int(excess[row].argmax())
    if excess[row, column] <= 0:
        return None
    kinds = frozenset(int(k) for k in np.flatnonzero(unions.within[row]))
    kind = BoundKind.PRESSURE if len(kinds) == len(demands.kinds) else BoundKind.RESIDUES
    return Refutation(kind, shape, (demands.clique(int(points[column]), kinds),))


def _mask(units: frozenset[int]) -> int:
    return sum(1 << unit for unit in units)


def _unions(units: list[int]) -> _Unions:
    """All unions of the kinds' sets of units; the whole is the last."""
    unions = {0}
    whole = 0
    for mask in sorted(set(units), key=lambda m: (m.bit_count(), m)):
        whole |= mask
        if 2 * len(unions) <= MOST_UNIONS:
            unions |= {union | mask for union in unions}
    chosen = [*sorted(unions - {whole}), whole]
    within = np.array([[mask & ~union == 0 for mask in units] for union in chosen], np.int64)
    return _Unions(tuple(union.bit_count() for union in chosen), within)
