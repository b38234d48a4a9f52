"""Register units in few words: runs as first and last unit, `v4..v9 v12..v12`."""

from __future__ import annotations

from collections.abc import Iterable

from verilocc_bench.analysis import Placements

__all__ = ["Run", "format_runs", "runs_of"]

Run = tuple[int, int]
"""The first unit and how many."""


def runs_of(units: Iterable[int], placements: Placements) -> list[Run]:
    """The runs of units without a gap, given in ascending order; none goes over files."""
    starts = set(placements.first_unit.values())
    runs: list[Run] = []
    for unit in units:
        if runs and runs[-1][0] + runs[-1][1] == unit and unit not in starts:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((unit, 1))
    return runs


def format_runs(runs: Iterable[Run], placements: Placements) -> str:
    """Runs in one line; `none` for no run at all."""
    name = placements.unit_name
    return " ".join([f"{name(unit)}..{name(unit + length - 1)}" for unit, length in runs]) or "none"
