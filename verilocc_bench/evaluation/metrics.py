"""Metrics of answers, for one function and over many."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

BOOTSTRAP_RESAMPLES = 1000

NORMAL_95 = 1.959964
"""The half width of the normal distribution's central 95 %, in standard deviations."""

FEWEST_SEEDS = 5
"""The samples of a function that an interval over seeds needs."""


def pass_at_k(samples: int, valid: int, k: int) -> float | None:
    """The unbiased estimate of the chance that one of k samples is valid.

    1 - C(n - c, k) / C(n, k), from Chen et al., "Evaluating Large Language
    Models Trained on Code" (arXiv 2107.03374), section 2.1; None where
    there are fewer than k samples.
    """
    if samples < k:
        return None
    return 1.0 - math.comb(samples - valid, k) / math.comb(samples, k)


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None if there are no values."""
    return math.fsum(values) / len(values) if values else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean of positive numbers; None if there are no values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def bootstrap_interval(
    values: Sequence[float],
    seed: int,
    statistic: Callable[[Sequence[float]], float | None] = mean,
) -> tuple[float, float] | tuple[None, None]:
    """The 95 % percentile interval of a statistic over functions, by bootstrap.

    Efron's percentile method with 1,000 resamples; (None, None) of nothing.
    """
    if not values:
        return None, None
    if min(values) == max(values):
        return values[0], values[0]
    generator = random.Random(seed)  # noqa: S311  no secret depends on it
    found = sorted(
        result
        for _ in range(BOOTSTRAP_RESAMPLES)
        if (result := statistic(generator.choices(values, k=len(values)))) is not None
    )
    last = len(found) - 1
    return found[round(0.025 * last)], found[round(0.975 * last)]


def share_interval(shares: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the mean of functions' shares of valid answers, over functions.

    Wilson's score interval of as many functions with shares of 0 and 1 as would have this
    variance of the mean; (None, None) of nothing. So 9 of 9 have the interval from 0.70 to 1,
    where a bootstrap's has no width. Shares that hardly vary show no more: the interval begins
    no higher than if all were 1, and ends no lower than if all were 0.
    """
    if not shares:
        return None, None
    count = float(len(shares))
    least, most = (each / (count + NORMAL_95**2) for each in (NORMAL_95**2, count))
    middle = math.fsum(shares) / count
    variance = math.fsum((share - middle) ** 2 for share in shares) / count
    if max(shares) > min(shares):
        count *= middle * (1 - middle) / variance
    correction = NORMAL_95**2 / count
    center = middle + correction / 2
    half = math.sqrt(correction * (middle * (1 - middle) + correction / 4))
    low, high = ((center + side) / (1 + correction) for side in (-half, half))
    # Exact where all are wrong, or all right.
    low = max(0.0, min(low, most)) if middle else 0.0
    return low, min(1.0, max(high, least)) if middle < 1 else 1.0


def seed_interval(counts: Sequence[tuple[int, int]]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of pass@1 over seeds alone: of these functions, asked with others.

    `counts` has the samples and the valid ones of each function; every sample has a seed of its
    own. The variance of a function's share is estimated without bias, as c(n - c) / (n²(n - 1)),
    and the mean is taken as normal. (None, None) where a function has fewer than five samples.
    """
    if not counts or min(n for n, _ in counts) < FEWEST_SEEDS:
        return None, None
    variance = math.fsum(c * (n - c) / (n * n * (n - 1)) for n, c in counts)
    middle = math.fsum(c / n for n, c in counts) / len(counts)
    half = NORMAL_95 * math.sqrt(variance) / len(counts)
    return max(0.0, middle - half), min(1.0, middle + half)


def shares(ratios: Mapping[str, tuple[int, int]]) -> dict[str, float | None]:
    """Shares of functions with fewer, equal and more registers than the label.

    `ratios` maps a function to its registers and the label's.
    """
    count = len(ratios)
    if not count:
        return {"share_better": None, "share_equal": None, "share_worse": None}
    better = sum(own < label for own, label in ratios.values())
    equal = sum(own == label for own, label in ratios.values())
    return {
        "share_better": better / count,
        "share_equal": equal / count,
        "share_worse": (count - better - equal) / count,
    }
