"""Figures over functions: numbers without text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.model_study.records import KernelResult
from verilocc_bench.evaluation.metrics import bootstrap_interval, geometric_mean, mean, pass_at_k

SIZES = ((1, 300), (300, 1001), (1001, None))
"""Ranges of virtual registers: from, and below."""


@dataclass(frozen=True, slots=True)
class ResultFigures:
    """Figures over some functions; all but `kernels` are over those with a valid sample.

    `ratio`: registers over the label's, geometric mean. `better`, `equal`,
    `worse`: shares against the label. `gap`: registers above the bound, mean.
    `gained`, `lost`: functions with more or less occupancy than the label.
    Figures over nothing are None.
    """

    kernels: int
    ratio: float | None
    better: float | None
    equal: float | None
    worse: float | None
    gap: float | None
    gained: int
    lost: int


def figures(kernels: Sequence[KernelResult]) -> ResultFigures:
    """The figures of some functions."""
    pairs = [(k.registers, k.label_registers) for k in kernels]
    known = [(own, label) for own, label in pairs if own is not None and label is not None]
    gaps = [
        float(k.registers - k.bound)
        for k in kernels
        if k.registers is not None and k.bound is not None
    ]
    changes = [
        k.occupancy - k.label_occupancy
        for k in kernels
        if k.occupancy is not None and k.label_occupancy is not None
    ]

    def share(holds: Callable[[int, int], bool]) -> float | None:
        return mean([float(holds(own, label)) for own, label in known])

    return ResultFigures(
        len(kernels),
        geometric_mean([own / label for own, label in known if own and label]),
        share(lambda own, label: own < label),
        share(lambda own, label: own == label),
        share(lambda own, label: own > label),
        mean(gaps),
        sum(change > 0 for change in changes),
        sum(change < 0 for change in changes),
    )


def passed(
    kernels: Sequence[KernelResult], k: int, seed: int = 0
) -> tuple[float | None, float | None, float | None]:
    """pass@k and its 95 % interval over functions; None if there are too few samples."""
    found = [pass_at_k(kernel.samples, kernel.valid, k) for kernel in kernels]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None, None, None
    low, high = bootstrap_interval(known, seed)
    return mean(known), low, high


def of_size(kernels: Sequence[KernelResult], size: tuple[int, int | None]) -> list[KernelResult]:
    """The functions whose number of virtual registers is in a range."""
    first, end = size
    return [
        k
        for k in kernels
        if first <= k.virtual_registers and (end is None or k.virtual_registers < end)
    ]


def against(
    kernels: Sequence[KernelResult], others: Mapping[str, KernelResult], measure: str
) -> tuple[int, int] | None:
    """Sums of a measure on both sides, over functions that have it on both; None without any."""
    pairs = [
        (getattr(kernel, measure), getattr(others[kernel.id], measure))
        for kernel in kernels
        if kernel.id in others
    ]
    known = [(own, other) for own, other in pairs if own is not None and other is not None]
    if not known:
        return None
    return sum(own for own, _ in known), sum(other for _, other in known)
