"""Soft exclusions: distances of two nodes that are allowed, at a cost.

They come from false dependences (analysis.false_dependences). A pair of instructions
costs once if any of its lanes share a unit. Weights are on the scale of refinement_items: ten
times more for each loop around the pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel
from verilocc_bench.allocators.search.refinement_items import loop_weight
from verilocc_bench.analysis.false_dependences import FalseDependence


class SoftExclusions(NamedTuple):
    """The distances of each node from other nodes that cost something.

    The entries of node n are the k from `start[n]` to `start[n + 1]`: its base less the
    base of `other[k]` costs `weight[k]` if it is at least `low[k]` and at most `high[k]`.
    Each pair is in the lists of both nodes.
    """

    start: Integers
    other: Integers
    low: Integers
    high: Integers
    weight: Integers


class FalseDependenceWeights(NamedTuple):
    """The weights of a false dependence, and of one that needs wait states."""

    order: int = 4
    stall: int = 16


def collect_soft_exclusions(
    model: PlacementModel, dependences: Sequence[FalseDependence], weights: FalseDependenceWeights
) -> SoftExclusions:
    """The soft exclusions of a model. Dependences of other groups of files do not matter."""
    costs: dict[tuple[int, int, int, int], int] = defaultdict(int)
    for each in dependences:
        accessed, written = each.accessed, each.written
        earlier, later = model.node_of.get(accessed.register), model.node_of.get(written.register)
        if earlier is None or later is None or earlier[0] == later[0]:
            continue
        weight = weights.stall if each.stalls else weights.order
        weight *= loop_weight(model.problem, each.block)
        # The distance at which the first lanes of both coincide.
        distance = later[1] + written.first - earlier[1] - accessed.first
        low, high = distance - accessed.count + 1, distance + written.count - 1
        costs[earlier[0], later[0], low, high] += weight
        costs[later[0], earlier[0], -high, -low] += weight
    entries = np.array([(*key, cost) for key, cost in sorted(costs.items())], np.int64)
    node, other, low_ends, high_ends, weight_of = (
        np.ascontiguousarray(column) for column in entries.reshape(-1, 5).T
    )
    start = np.searchsorted(node, np.arange(len(model.nodes) + 1)).astype(np.int64)
    return SoftExclusions(start, other, low_ends, high_ends, weight_of)
