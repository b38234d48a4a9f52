"""Chooses the improved assignments that are taken to machine code, by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from statistics import median

from benchmarks.allocation_study.records import Measurement

COUNTS = {"gfx90a": 5, "gfx942": 5, "sm_80": 10}
"""The number of kernels of each target."""


@dataclass(frozen=True, slots=True)
class ComparisonChoice:
    """A kernel, the allocator whose answer is compared, and the measure that it improves."""

    measurement: Measurement
    allocator: str
    measure: str


def choose(measurements: Iterable[Measurement]) -> list[ComparisonChoice]:
    """From the smaller half of each target's kernels, those with the largest improvements.

    GEMM and attention alternate, and so do registers saved (by `best`) and bank
    conflicts saved (by `best` for bank conflicts). A kernel comes once.
    """
    kernels = [each for each in measurements if each.lost is None]
    found: list[ComparisonChoice] = []
    for arch, count in COUNTS.items():
        own = [each for each in kernels if each.arch == arch]
        if own:
            middle = median(each.n_instructions for each in own)
            found += _of_target([each for each in own if each.n_instructions <= middle], count)
    return found


def _of_target(kernels: list[Measurement], count: int) -> list[ComparisonChoice]:
    families = sorted({each.family for each in kernels})
    queues = [
        [ComparisonChoice(each, allocator, measure) for each in ordered]
        for turn, family in enumerate(families * 2)
        for allocator, measure, saved in (_MEASURES[(turn + turn // len(families)) % 2],)
        for ordered in (_by_saving(kernels, family, saved),)
    ]
    chosen: dict[str, ComparisonChoice] = {}
    for queue in cycle(queues):
        if len(chosen) >= count or not any(queues):
            return list(chosen.values())
        while queue:
            choice = queue.pop(0)
            if choice.measurement.id not in chosen:
                chosen[choice.measurement.id] = choice
                break
    return []


def _by_saving(
    kernels: list[Measurement], family: str, saved: Callable[[Measurement], int]
) -> list[Measurement]:
    own = [each for each in kernels if each.family == family and saved(each) > 0]
    return sorted(own, key=lambda each: (-saved(each), each.n_instructions, each.id))


def _registers_saved(each: Measurement) -> int:
    return _saved(each, "best", "registers")


def _conflicts_saved(each: Measurement) -> int:
    return _saved(each, "best bank-conflicts", "conflicts")


def _saved(each: Measurement, allocator: str, measure: str) -> int:
    if allocator not in each.answers:
        return 0
    before = getattr(each.answers["compiler"], measure)
    after = getattr(each.answers[allocator], measure)
    return 0 if after is None else int(before - after)


_MEASURES = (
    ("best", "registers", _registers_saved),
    ("best bank-conflicts", "bank conflicts", _conflicts_saved),
)
