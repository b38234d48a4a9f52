"""The figures of a dataset as one JSON document.

The document is sorted and has no dates: equal folders give equal bytes. Figures
that cannot be computed are null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dataset_builders.statistics.row_facts import RowFacts
from dataset_builders.statistics.summary import (
    DatasetStatistics,
    SplitDistance,
    by_key,
    mean,
    quartiles,
    share,
    total,
)


def statistics_document(statistics: DatasetStatistics) -> dict[str, Any]:
    """All figures, as JSON values."""
    rows, leakage = statistics.rows, statistics.leakage
    return {
        "rows": len(rows),
        "groups": len({row.group for row in rows}),
        "clusters": _clusters(rows),
        "counts": [
            {"track": t, "architecture": a, "family": f, "split": s, "rows": len(found)}
            for (t, a, f, s), found in by_key(
                rows, lambda row: (row.track, row.arch, row.family, row.split)
            ).items()
        ],
        "kernels": [
            {"kernel": kernel, "license": licence, "rows": len(found)}
            for (kernel, licence), found in by_key(
                rows, lambda row: (row.kernel, row.license)
            ).items()
        ],
        "tasks": [
            {"track": t, "architecture": a, "family": f, **_task(found)}
            for (t, a, f), found in by_key(
                rows, lambda row: (row.track, row.arch, row.family)
            ).items()
        ],
        "data_types": _by_split(statistics, lambda row: row.data_type),
        "tiles": _by_split(statistics, lambda row: row.tile),
        "head_dimensions": _by_split(statistics, lambda row: row.head_dimension),
        "licenses": _counts([row.license for row in rows]),
        "rejected": dict(statistics.rejected),
        "leakage": None
        if leakage is None
        else {
            "summary": {split: _distance(found) for split, found in leakage.summary.items()},
            "embedded": None if leakage.embedded is None else _distance(leakage.embedded),
        },
        "folders": {
            name: {"files": files, "bytes": size}
            for name, (files, size) in statistics.sizes.items()
        },
    }


def _task(rows: Sequence[RowFacts]) -> dict[str, Any]:
    """One track of one architecture and family: sizes, registers, labels.

    Gaps are in registers above the best lower bound that is known; bank
    conflicts are sums, each weighted by its loop depth.
    """
    used = [row.registers_used for row in rows if row.registers_used is not None]
    return {
        "rows": len(rows),
        "instructions": _quartiles([row.n_instructions for row in rows]),
        "virtual_registers": _quartiles([row.n_virtual_registers for row in rows]),
        "blocks": _quartiles([row.n_blocks for row in rows]),
        "lower_bound": _quartiles([row.lower_bound for row in rows]),
        "registers_used": _quartiles(used),
        "occupancy": _counts([row.occupancy for row in rows]),
        "label_sources": _counts([row.label_source for row in rows]),
        "alternatives": _counts([source for row in rows for source in row.alternatives]),
        "best_sources": _counts([row.best_source for row in rows]),
        "share_with_alternative": share(rows, lambda row: bool(row.alternatives)),
        "share_with_better": share(rows, lambda row: row.has_better),
        "share_with_fewer_registers": share(rows, lambda row: row.has_fewer),
        "share_label_proved_optimal": share(rows, lambda row: row.meets_bound),
        "share_best_proved_optimal": share(rows, lambda row: row.best_is_optimal),
        "mean_label_gap": mean(row.label_gap for row in rows),
        "mean_best_gap": mean(row.best_gap for row in rows),
        "label_bank_conflicts": total(row.bank_conflicts for row in rows),
        "best_bank_conflicts": total(row.best_bank_conflicts for row in rows),
    }


def _quartiles(values: Sequence[int]) -> dict[str, float] | None:
    found = quartiles(values)
    return None if found is None else asdict(found)


def _counts(values: Sequence[str | int | None]) -> dict[str, int]:
    """The number of occurrences of each value, with JSON keys; None is not counted."""
    return {str(value): count for value, count in Counter(values).items() if value is not None}


def _by_split(
    statistics: DatasetStatistics, value: Callable[[RowFacts], str | int | None]
) -> dict[str, dict[str, int]]:
    return {
        split: _counts([value(row) for row in statistics.rows if row.split == split])
        for split in statistics.splits
    }


def _clusters(rows: Sequence[RowFacts]) -> dict[str, int]:
    """Clusters of near-duplicates: their number, the rows in shared ones, and the largest size."""
    counts = Counter(row.cluster or row.id for row in rows)
    return {
        "count": len(counts),
        "rows_not_alone": sum(count for count in counts.values() if count > 1),
        "largest": max(counts.values(), default=0),
    }


def _distance(found: SplitDistance) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "minimum_distance": found.minimum,
        "median_distance": found.median,
        "share_below": dict(found.share_below),
    }
