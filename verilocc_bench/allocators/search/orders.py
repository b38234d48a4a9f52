"""Orders for first fit. Each takes 1 ms; none is the best for all kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.model import PlacementModel
from verilocc_bench.analysis.interference import live_spans

Integers = NDArray[np.int64]


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
