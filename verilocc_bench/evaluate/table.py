"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

__all__ = ["results_table"]

_HEADERS = (
    "architecture",
    "family",
    "allocator",
    "kernels",
    "valid",
    "registers/LLVM",
    "fewer",
    "more",
    "above bound",
    "waves +/-",
    "bank conflicts",
    "seconds",
)


def results_table(documents: Sequence[dict[str, Any]]) -> str:
    """Architecture by family by allocator, one row each; the overall rows at the end."""
    rows: list[tuple[Any, ...]] = []
    tasks = dict.fromkeys(task for document in documents for task in document["results"])
    for task in tasks:
        for document in documents:
            record = document["results"].get(task)
            if record is not None:
                rows.append(_row(task, document["config"]["model"], record))
    return tabulate(rows, headers=_HEADERS, disable_numparse=True, colalign=_ALIGNMENT)


_ALIGNMENT = ("left",) * 3 + ("right",) * (len(_HEADERS) - 3)


def _row(task: str, model: str, record: dict[str, Any]) -> tuple[Any, ...]:
    arch, _, family = task.partition("/")
    passes = next(key for key in record if key.startswith("pass@"))
    occupancy = "–"
    if record["occupancy_gained"] is not None:
        occupancy = f"+{record['occupancy_gained']} −{record['occupancy_lost']}"
    return (
        arch,
        family or "–",
        model,
        record["n"],
        _percent(record[passes]),
        _number(record["registers_ratio"], 3),
        _percent(record["share_better"]),
        _percent(record["share_worse"]),
        _number(record["gap_to_bound"], 2),
        occupancy,
        _number(record["bank_conflicts"], 0),
        _number(record["allocate_seconds"] + record["verify_seconds"], 2),
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
