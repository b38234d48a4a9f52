"""The cells of tables."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.model_study.figures import figures
from benchmarks.model_study.records import KernelResult
from verilocc_bench.evaluation.table import NONE, number, percent

REGISTERS = ("registers", "fewer", "equal", "more", "above bound", "occupancy")
"""The headers of `of_kernels`."""


def interval(low: float | None, high: float | None) -> str:
    """From one share to another."""
    return NONE if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f} %"


def change(own: int, other: int) -> str:
    """The relative difference of a sum from a second one."""
    return f"{100 * (own - other) / other:+.1f} %".replace("-", "−") if other else NONE


def of_kernels(kernels: Sequence[KernelResult]) -> tuple[str, ...]:
    """Registers and occupancy over the functions with a valid answer."""
    found = figures(kernels)
    return (
        number(found.ratio, 3),
        *map(percent, (found.better, found.equal, found.worse)),
        number(found.gap, 2),
        f"+{found.gained} −{found.lost}",
    )
