"""Refutes shapes by Hall's condition: a set of lanes that outnumbers the units for them.

The lanes at one point need different units, and a legal base of its register
must put each lane at its unit. By Hall's theorem ("On Representatives of
Subsets", Journal of the London Mathematical Society 1935) that is possible
exactly when no set of lanes outnumbers the units that may hold any of them. It
is enough to look at unions of the units of single kinds, and at all lanes that
must lie within such a union. Alignment makes such sets: if only one lane of each
of many tuples at even bases is live, all these lanes need even units.

Cost: for each shape a product of two matrices, unions by kinds and kinds by the
hottest points. Joining the units of rare kinds limits the unions. The units of
each file, and of several files together, are unions too. They come first if some
kind must lie in another file than the first (they are few, and then fail for
most shapes), and last otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import or_

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis.lower_bounds.demands import Demands, units_of_kind
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Refutation, Shape
from verilocc_bench.analysis.problem import AllocationProblem

MOST_UNIONS = 1024


@dataclass(frozen=True, slots=True)
class _Unions:
    """Sets of units, and for each set the kinds whose units all lie within it."""

    sizes: tuple[int, ...]
    within: NDArray[np.int64]


def refute_by_residues(demands: Demands, shape: Shape) -> Refutation | None:
    """A point at which Hall's condition fails within a shape, if there is one.

    The refutation is of kind `pressure` if the lanes outnumber all units that any
    of them may use.
    """
    if not demands.kinds:
        return None
    points = demands.hottest
    problem, liveness = demands.problem, demands.problem.liveness
    # A destroyed unit takes its place in a union, but none if it lies beyond the shape.
    destroyed = set(liveness.fixed_lanes) - set(liveness.named_units)
    units: list[int] = []
    needed: list[int] = []
    for each in demands.kinds:
        if isinstance(each[0], str) and each in destroyed:
            units.append(1 << problem.placements.first_unit[each[0]] + each[1])
        else:
            units.append(sum(1 << unit for unit in units_of_kind(problem, each, shape)))
            needed.append(units[-1])
    first_file = _mask_of_file(problem, *shape[0])
    divided = any(own and not own & first_file for own in needed)
    for by_files in (divided, not divided):
        if by_files:
            unions = _unions_of_files(problem, shape, needed, units)
        else:
            unions = _unions(needed, units)
        wanted = unions.within @ demands.counts[:, points]
        excess = wanted - np.array(unions.sizes)[:, None]
        # The last union is of all kinds. If it fails, readers expect to be told so.
        row = len(excess) - 1 if excess[-1].max() > 0 else int(excess.max(axis=1).argmax())
        column = int(excess[row].argmax())
        if excess[row, column] > 0:
            kinds = frozenset(int(k) for k in np.flatnonzero(unions.within[row]))
            all_kinds = len(kinds) == len(demands.kinds) or row == len(excess) - 1
            kind = BoundKind.PRESSURE if all_kinds else BoundKind.RESIDUES
            return Refutation(kind, shape, (demands.clique(int(points[column]), kinds),))
    return None


def _mask_of_file(problem: AllocationProblem, file: str, limit: int) -> int:
    """The first units of a file."""
    first: int = problem.placements.first_unit[file]
    return ((1 << limit) - 1) << first


def _unions(needed: list[int], units: list[int]) -> _Unions:
    """All unions of the sets `needed`, the last one of all, with the kinds of `units` in them."""
    unions = {0}
    whole = 0
    for mask in sorted(set(needed), key=lambda m: (m.bit_count(), m)):
        whole |= mask
        if 2 * len(unions) <= MOST_UNIONS:
            unions |= {union | mask for union in unions}
    chosen = [*sorted(unions - {whole}), whole]
    return _Unions(tuple(union.bit_count() for union in chosen), _within(chosen, units))


def _unions_of_files(
    problem: AllocationProblem, shape: Shape, needed: list[int], units: list[int]
) -> _Unions:
    """For each choice of files the union of their `needed`; the last is all files."""
    masks = [_mask_of_file(problem, file, limit) for file, limit in shape]
    chosen = [
        reduce(or_, some) for size in range(1, len(masks) + 1) for some in combinations(masks, size)
    ]
    had = [reduce(or_, (own for own in needed if own & ~mask == 0), 0) for mask in chosen]
    return _Unions(tuple(union.bit_count() for union in had), _within(had, units))


def _within(unions: list[int], units: list[int]) -> NDArray[np.int64]:
    words = 1 + max((mask.bit_length() for mask in (*unions, *units)), default=0) // 64
    outside, own = ~_words(unions, words), _words(units, words)
    return np.array(~(outside[:, None] & own).any(axis=2), np.int64)


def _words(masks: list[int], words: int) -> NDArray[np.uint64]:
    """Each mask as a row of `words` words."""
    data = b"".join(mask.to_bytes(8 * words, "little") for mask in masks)
    return np.frombuffer(data, "<u8").reshape(len(masks), words)
