"""Metrics against enumeration and hand-made cases."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from statistics import fmean

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.evaluation.metrics import (
    bootstrap_interval,
    geometric_mean,
    mean,
    pass_at_k,
    seed_interval,
    share_interval,
)
from verilocc_bench.ir import parse_function


def test_pass_at_k_is_the_share_of_subsets_with_a_valid_sample() -> None:
    for n, c in itertools.product(range(1, 7), range(7)):
        if c > n:
            continue
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(itertools.combinations(samples, k))
            share = sum(map(any, subsets)) / len(subsets)
            assert pass_at_k(n, c, k) == pytest.approx(share)
    assert pass_at_k(3, 3, 4) is None


def test_means() -> None:
    assert mean([]) is None
    assert mean([1.0, 2.0]) == 1.5
    assert geometric_mean([]) is None
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


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
    assert bootstrap_interval([], 1) == share_interval([]) == (None, None)


def test_intervals_of_shares_are_those_of_wilson() -> None:
    for right, low, high in ((0, 0, 0.1611), (10, 0.2993, 0.7007), (20, 0.8389, 1)):
        shares = [1.0] * right + [0.0] * (20 - right)
        assert share_interval(shares) == pytest.approx((low, high), abs=1e-4)
    for shares, low, high in (([1.0] * 8 + [0.9], 0.7009, 0.9979), ([0.5, 0.51], 0.3424, 0.6576)):
        assert share_interval(shares) == pytest.approx((low, high), abs=1e-4)
    # Equal shares, whose mean is not quite theirs: the fewer, the wider.
    for share in (0.4, 0.7):
        widths = [high - low for n in range(2, 12) for low, high in (share_interval([share] * n),)]
        assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("samples", [5, 20])
def test_intervals_have_the_variance_of_what_they_are_over(samples: int) -> None:
    """Chances of Beta(2, 1), drawn anew in each trial: mean 2/3, variance 1/18, E[p(1-p)] 1/6."""
    generator, kernels, trials = random.Random(3), 60, 200
    fixed = [(number + 0.5) / kernels for number in range(kernels)]
    of_seeds = math.fsum(p * (1 - p) for p in fixed) / samples / kernels**2
    both = (1 / 18 + 1 / 6 / samples) / kernels
    over_seeds, over_both, covered = [], [], 0
    for _ in range(trials):
        drawn = [(samples, sum(generator.random() < p for _ in range(samples))) for p in fixed]
        low, high = seed_interval(drawn)
        assert low is not None
        assert high is not None
        covered += low <= math.fsum(fixed) / kernels <= high
        over_seeds.append(((high - low) / 2 / 1.96) ** 2)
        chances = [generator.betavariate(2, 1) for _ in range(kernels)]
        shares = [sum(generator.random() < p for _ in range(samples)) / samples for p in chances]
        low, high = share_interval(shares)
        assert low is not None
        assert high is not None
        over_both.append(((high - low) / 2 / 1.96) ** 2)
    assert mean(over_seeds) == pytest.approx(of_seeds, rel=0.02)
    assert mean(over_both) == pytest.approx(both, rel=0.1)
    assert 0.92 * trials <= covered <= 0.98 * trials


def test_an_interval_over_seeds_needs_five() -> None:
    assert seed_interval([]) == (None, None)
    assert seed_interval([(5, 3), (4, 2)]) == (None, None)
    assert seed_interval([(5, 5), (6, 0)]) == (0.5, 0.5)
    assert seed_interval([(5, 4)])[1] == 1.0
    assert seed_interval([(5, 1)])[0] == 0.0


HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
"""


def test_bank_conflicts_are_weighted_by_loop_depth() -> None:
    function = parse_function(
        HEADER
        + "bb0->bb1\n%0=A\n%1=A\n%2=A\n%3=FMA %0,%1,%2\nbb1->bb1,bb2\n"
        + "%3=FMA %0,%1,%2\nbb2\nUSE %0,%0,%1\nUSE %3\n"
    )
    problem = AllocationProblem(function)
    answer = {"%0": "v0", "%1": "v1", "%2": "v5", "%3": "v6"}
    conflicts = count_bank_conflicts(problem, answer)
    assert (conflicts.any, conflicts.all) == (11, 0)  # v1 and v5: once outside, once in the loop
    answer["%0"] = "v9"
    conflicts = count_bank_conflicts(problem, answer)
    assert (conflicts.any, conflicts.all) == (11, 11)
    answer.update({"%0": "v0", "%2": "v2"})
    assert count_bank_conflicts(problem, answer).any == 0


def test_identity_copies() -> None:
    function = parse_function(HEADER + "bb0(v3)\n%0=COPY v3\n%1=COPY %0\nUSE %1\n")
    problem = AllocationProblem(function)
    assert count_identity_copies(problem, {"%0": "v3", "%1": "v3"}) == 2
    assert count_identity_copies(problem, {"%0": "v3", "%1": "v4"}) == 1
    assert count_identity_copies(problem, {"%0": "v2", "%1": "v4"}) == 0


SM_80 = """verilocc-bench 1
target sm_80
registers R:62 UR:63 P:7 UP:7
reserved R1 UR[0:3]
class R 1 R
class P 1 P
"""


def test_banks_of_sm_80_deliver_two_registers_and_slots_keep_theirs() -> None:
    function = parse_function(
        SM_80 + "bb0\n%0=A\n%1=A\n%2=A\n%3=A\n%4=FFMA %0,%1,%2\n%5=FFMA %0,%3,%2\nUSE %4,%5\n",
        canonical=False,
    )
    problem = AllocationProblem(function)
    answer = {"%0": "R2", "%1": "R4", "%2": "R6", "%3": "R8", "%4": "R3", "%5": "R5"}
    conflicts = count_bank_conflicts(problem, answer)
    assert (conflicts.any, conflicts.all) == (1, 1)  # the second reads R2 and R6 from its slots
    answer["%1"] = "R7"
    assert count_bank_conflicts(problem, answer).any == 0
    answer.update({"%1": "R4", "%4": "R2"})  # the first writes what the second's slot held
    function = parse_function(
        SM_80 + "bb0\n%0=A\n%1=A\n%2=A\n%3=A\n%0=FFMA %0,%1,%2\n%4=FFMA %0,%3,%2\nUSE %4\n",
        canonical=False,
    )
    answer = {"%0": "R2", "%1": "R4", "%2": "R6", "%3": "R8", "%4": "R3"}
    assert count_bank_conflicts(AllocationProblem(function), answer).any == 2


def test_copies_of_sm_80() -> None:
    function = parse_function(
        SM_80 + "bb0\n%0=A\n%1=MOV %0\n%2=IMAD.MOV.U32 %1\n%3=MOV\n%4:P=A %2,%3\n@%4 %5=MOV %2\n"
    )
    problem = AllocationProblem(function)
    answer = {"%0": "R2", "%1": "R2", "%2": "R2", "%3": "R3", "%4": "P0", "%5": "R2"}
    assert count_identity_copies(problem, answer) == 3
