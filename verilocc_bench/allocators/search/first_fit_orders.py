"""First fit in compiled form, and orders for it.

An order takes 1 ms, and none is the best for all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.search_compilation import compiled
from verilocc_bench.analysis.interference import live_spans


def node_orders(model: PlacementModel) -> Iterator[Integers]:
    """The nodes of a model in each of four orders.

    The widest first; by the first live point; the most lane-points first; by the last live
    point, backwards.
    """
    spans = live_spans(model.problem.liveness)
    classes = model.problem.function.virtual_registers
    width, start, end, size = [], [], [], []
    for node in model.nodes:
        of = [spans[register] for register, _ in node.members]
        width.append(sum(classes[register].width for register, _ in node.members))
        start.append(min(span[0] for span in of))
        end.append(max(span[1] for span in of))
        size.append(sum(span[2] for span in of))
    nodes = range(len(model.nodes))
    yield np.array(sorted(nodes, key=lambda n: (-width[n], -size[n], n)), np.int64)
    yield np.array(sorted(nodes, key=lambda n: (start[n], -width[n], -size[n], n)), np.int64)
    yield np.array(sorted(nodes, key=lambda n: (-size[n], n)), np.int64)
    yield np.array(sorted(nodes, key=lambda n: (-end[n], -width[n], -size[n], n)), np.int64)


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
