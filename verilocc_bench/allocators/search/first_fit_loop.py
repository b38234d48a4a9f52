"""First fit in compiled form: nodes one by one, each at its lowest free base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.compiled import compiled
from verilocc_bench.allocators.search.model import Space

Integers = NDArray[np.int64]


@compiled
def first_fit_loop(order: Integers, space: Space) -> Integers:
    """The base of every node; -1 for a node that fits nowhere."""
    count, units = space.allowed.shape
    bases = np.full(count, -1, np.int64)
    stamp = np.zeros(units, np.int64)
    for turn, node in enumerate(order, 1):
        for k in range(space.start[node], space.start[node + 1]):
            placed = bases[space.other[k]]
            if placed >= 0:
                base = placed + space.distance[k]
                if 0 <= base < units:
                    stamp[base] = turn
        for base in range(units):
            if space.allowed[node, base] and stamp[base] != turn:
                bases[node] = base
                break
    return bases
