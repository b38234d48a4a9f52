"""Results as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from verilocc_bench.evaluate.records import RowResult

__all__ = ["failure_notes", "results_table"]

_NAMES = ("architecture", "family", "allocator")
_FIGURES = (
    "registers/label",
    "fewer",
    "more",
    "above bound",
    "occupancy +/-",
    "bank conflicts",
    "seconds",
)


def results_table(documents: Sequence[dict[str, Any]]) -> str:
    """Architecture by family by allocator, one row each; the overall rows at the end."""
    rows: list[tuple[Any, ...]] = []
    ks: list[int] = documents[0]["config"]["k"]
    tasks = dict.fromkeys(task for document in documents for task in document["results"])
    for task in tasks:
        for document in documents:
            record = document["results"].get(task)
            if record is not None:
                rows.append(_row(task, document["config"]["model"], record, ks))
    headers = (*_NAMES, "kernels", *(_pass_name(k, ks) for k in ks), *_FIGURES)
    alignment = ("left",) * len(_NAMES) + ("right",) * (len(headers) - len(_NAMES))
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=alignment)


def failure_notes(model: str, results: Sequence[RowResult]) -> list[str]:
    """A line for each task and kind of failure of one model, with the commonest reason."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for result in results:
        for sample in result.samples:
            if sample.kind is not None:
                key = result.task, sample.kind
                counts[key] += 1
                found = [sample.message or ""] if sample.failure else sample.finding_kinds
                reasons.setdefault(key, Counter()).update(found)
    notes = []
    for key, messages in sorted(reasons.items()):
        message, _ = min(messages.items(), key=lambda item: (-item[1], item[0]))
        task, failure = key
        notes.append(f"{model} on {task}: {counts[key]} × {failure}: {message}")
    return notes


def _pass_name(k: int, ks: Sequence[int]) -> str:
    return "valid" if len(ks) == 1 else f"pass@{k}"


def _row(task: str, model: str, record: dict[str, Any], ks: Sequence[int]) -> tuple[Any, ...]:
    arch, _, family = task.partition("/")
    occupancy = "–"
    if record["occupancy_gained"] is not None:
        occupancy = f"+{record['occupancy_gained']} −{record['occupancy_lost']}"
    return (
        arch,
        family or "–",
        model,
        record["n"],
        *(_percent(record[f"pass@{k}"]) for k in ks),
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
