"""Sums, shares and spreads over measurements: numbers without text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.allocation_study.records import Measured, Measurement

"""Ranges of virtual registers: from, and below."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some numbers, their 90 % quantile, and the largest."""

    median: float
    ninetieth: float
    largest: float


def spread(values: Iterable[float]) -> Spread | None:
    """The spread of some numbers (nearest rank); None without any."""
    ordered = sorted(values)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return Spread(rank(0.5), rank(0.9), ordered[-1])


@dataclass(frozen=True, slots=True)
class Worth:
    """An allocator against the compiler, over `kernels`.

    Counts of kernels: with a `valid` answer; of these proved `optimal`; with
    `fewer` or `more` registers than the compiler; of `higher` or `lower`
    occupancy. Means over the valid answers: `gap` to the lower bound and
    registers `saved`; `most_saved` is the maximum. `steps`: waves (or warps)
    won, minus those lost.
    """

    kernels: int
    valid: int
    optimal: int
    fewer: int
    more: int
    higher: int
    lower: int
    steps: int
    gap: float
    saved: float
    most_saved: int

    @property
    def equal(self) -> int:
        """The number of kernels with as many registers as the compiler's."""
        return self.valid - self.fewer - self.more


def worth(measurements: Sequence[Measurement], allocator: str) -> Worth | None:
    """The worth of an allocator's answers; None if it was asked about no kernel."""
    asked = [each for each in measurements if allocator in each.answers]
    if not asked:
        return None
    registers = []
    waves = []
    for each in asked:
        found, compiler = each.answers[allocator], each.answers["compiler"]
        if found.registers is not None and found.occupancy is not None:
            assert compiler.registers is not None
            assert compiler.occupancy is not None
            registers.append((found.registers, compiler.registers, each.bound))
            waves.append(found.occupancy - compiler.occupancy)
    count = max(1, len(registers))
    return Worth(
        len(asked),
        len(registers),
        sum(own == bound for own, _, bound in registers),
        sum(own < other for own, other, _ in registers),
        sum(own > other for own, other, _ in registers),
        sum(wave > 0 for wave in waves),
        sum(wave < 0 for wave in waves),
        sum(waves),
        sum(own - bound for own, _, bound in registers) / count,
        sum(other - own for own, other, _ in registers) / count,
        max((other - own for own, other, _ in registers), default=0),
    )


def cells(measurements: Iterable[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """The measurements by architecture and family, in order."""
    found: dict[tuple[str, str], list[Measurement]] = {}
    for each in sorted(measurements, key=lambda each: (each.arch, each.family, each.id)):
        found.setdefault((each.arch, each.family), []).append(each)
    return found


def total(
    measurements: Iterable[Measurement], allocator: str, count: Callable[[Measured], int | None]
) -> int:
    """The sum of a count over kernels where the allocator has a valid answer."""
    found = (count(each.answers[allocator]) for each in measurements)
    return sum(each for each in found if each is not None)


def solved_share(
    measurements: Iterable[Measurement], budget: str, allocator: str
) -> tuple[int, int, Mapping[str, float]]:
    """Kernels solved, kernels asked, and by id the seconds of those solved."""
    asked = [each for each in measurements if budget in each.budgets]
    seconds = {
        each.id: each.budgets[budget].seconds[allocator]
        for each in asked
        if allocator in each.budgets[budget].solved
    }
    return len(seconds), len(asked), seconds
