"""The bootstrap's interval against the statistics of its own resamples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

from verilocc_bench.evaluation.metrics import bootstrap_interval, mean

VALUES = [1.1**n for n in range(40)]  # hardly any two resamples have one mean


def test_the_interval_leaves_two_and_a_half_percent_out_at_each_end() -> None:
    drawn: list[list[float]] = []

    def watched(values: Sequence[float]) -> float | None:
        drawn.append(list(values))
        return mean(values)

    low, high = bootstrap_interval(VALUES, 7, watched)
    generator = random.Random(7)
    assert drawn == [generator.choices(VALUES, k=len(VALUES)) for _ in range(1000)]
    means = sorted(map(fmean, drawn))
    assert low == means[25]
    assert high == means[974]
    assert means[24] < low < high < means[975]
    assert bootstrap_interval(VALUES, 7) == (low, high)
    assert bootstrap_interval(VALUES, 8) != (low, high)


def test_values_that_are_all_the_same_are_their_own_interval() -> None:
    assert bootstrap_interval([3.0], 1) == (3.0, 3.0)
    assert bootstrap_interval([2.0, 2.0, 2.0], 1) == (2.0, 2.0)
    assert bootstrap_interval([], 1) == (None, None)
