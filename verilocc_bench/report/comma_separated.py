"""A report as comma-separated values: one row for each run and task."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from verilocc_bench.allocators import FailureKind
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.report.runs import ComparableRuns, ReportedRun, printable

_FORMULA = ("=", "+", "-", "@")
"""The characters with which a formula begins in a spreadsheet."""

_RUN = (
    "run",
    "model",
    "model_revision",
    "dataset",
    "dataset_revision",
    "dataset_hash",
    "track",
    "split",
    "assistance",
    "decoding",
    "seed",
    "date",
    "version",
)
_FIGURES = (
    "n",
    "samples",
    "pass@1",
    "pass@1_low",
    "pass@1_high",
    "registers_ratio",
    "share_better",
    "share_equal",
    "share_worse",
    "gap_to_bound",
    "occupancy_gained",
    "occupancy_lost",
    "copies_removed",
    "bank_conflicts",
    "bank_conflicts_all",
    "spill_cost",
    "move_cost",
    "verifier_calls",
    "allocate_seconds",
    "verify_seconds",
    "infrastructure_failures",
)
_FAILURES = tuple(
    sorted({"invalid", *(k.value for k in FailureKind)} - {FailureKind.INFRASTRUCTURE.value})
)
_FINDINGS = tuple(sorted(kind.value for kind in FindingKind))

COLUMNS = (
    *_RUN,
    "task",
    *_FIGURES,
    *(f"failures_{kind}" for kind in _FAILURES),
    *(f"findings_{kind}" for kind in _FINDINGS),
    "unparsable",
    "totals",
    "success_by_calls",
)
"""The columns of every file; pass@K of further k come after them."""


def render_csv(sections: Sequence[ComparableRuns]) -> str:
    """All runs; columns say under which conditions. A figure that cannot be computed is empty.

    Text is one printable line. An apostrophe stands before text that a spreadsheet
    would take for a formula.
    """
    ks = sorted({k for section in sections for run in section.runs for k in run.ks} - {1})
    further = [f"pass@{k}{end}" for k in ks for end in ("", "_low", "_high")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *further])
    for section in sections:
        for run in section.runs:
            for task, record in run.results.items():
                values = [*_run_values(run), task, *_figures(record)]
                values += [record.get(key) for key in further]
                writer.writerow([_cell(value) for value in values])
    return text.getvalue()


def _run_values(run: ReportedRun) -> list[Any]:
    document, told = run.document, run.conditions
    config = document["config"]
    return [
        run.name,
        config["model"],
        config["revision"],
        told["dataset"],
        told["revision"],
        told["hash"],
        told["track"],
        told["split"],
        told["assistance"],
        told["decoding"],
        document["seed"],
        document["date"],
        document["versions"].get("verilocc-bench"),
    ]


def _figures(record: Mapping[str, Any]) -> list[Any]:
    figures = [record[key] for key in _FIGURES]
    figures += [record["failures"].get(kind, 0) for kind in _FAILURES]
    figures += [record["findings"].get(kind, 0) for kind in _FINDINGS]
    for key in ("unparsable", "totals", "success_by_calls"):
        figures.append(record[key] and json.dumps(record[key], sort_keys=True))
    return figures


def _cell(value: object) -> object:
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return "" if value in (None, {}) else value
