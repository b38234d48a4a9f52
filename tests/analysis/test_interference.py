"""Interference sets against the definition, on generated functions."""

from __future__ import annotations

from itertools import pairwise

from tests.generated import random_function
from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.analysis.interference import interference_sets


def test_interference_is_a_definition_where_the_other_is_live() -> None:
    for seed in range(200):
        function = random_function(seed)
        liveness = AllocationProblem(function).liveness
        bounds = [*liveness.lane_offsets, liveness.virtual_lane_count]
        live, defined = [], []
        for first, last in pairwise(bounds):
            live.append(0)
            defined.append(0)
            for lane in range(first, last):
                live[-1] |= liveness.live[lane]
                defined[-1] |= liveness.defined[lane]
        expected = [
            {
                b
                for b in range(len(live))
                if a != b and (defined[a] & live[b] or live[a] & defined[b])
            }
            for a in range(len(live))
        ]
        assert [set(iterate_bits(mask)) for mask in interference_sets(liveness)] == expected
