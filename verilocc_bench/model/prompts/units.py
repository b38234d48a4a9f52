"""The legal bases of a class as ranges of units, and runs of some of them: `v4..v9`."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import RegisterClass

Run = tuple[int, int]
"""The first base and the last."""


def base_ranges(problem: AllocationProblem, register_class: RegisterClass) -> list[range]:
    """The legal bases of a class as units, range by range in the order of the class."""
    first_unit = problem.placements.first_unit
    found = (
        range(
            first_unit[bases.file] + bases.first,
            first_unit[bases.file] + bases.last + 1,
            bases.step,
        )
        for bases in register_class.ranges
    )
    return [bases for bases in found if bases]


def range_runs(bases: Collection[int], legal: range) -> list[Run]:
    """Runs of bases of one range without a gap between, given in ascending order."""
    runs: list[Run] = []
    for base in bases:
        if runs and base - runs[-1][1] == legal.step:
            runs[-1] = (runs[-1][0], base)
        else:
            runs.append((base, base))
    return runs


def runs_of(bases: Container[int], ranges: Sequence[range]) -> Iterator[Run]:
    """The runs of bases in each of these ranges, in their order."""
    for legal in ranges:
        yield from range_runs([base for base in legal if base in bases], legal)
