"""Results: one record for each task, and the document that holds them all."""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verilocc_bench.evaluate.metrics import (
    bootstrap_interval,
    geometric_mean,
    mean,
    pass_at_k,
    shares,
)
from verilocc_bench.evaluate.runner import Outcome, RowResult

__all__ = ["OVERALL", "Configuration", "make_results", "results_json", "summarise"]

OVERALL = "overall"
_VERSIONED = ("verilocc-bench", "datasets", "huggingface-hub", "pyarrow")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was asked: everything that may change a number."""

    model: str
    assistance: str
    dataset: str
    revision: str | None
    dataset_hash: str
    split: str
    track: str
    archs: tuple[str, ...] | None
    families: tuple[str, ...] | None
    limit: int | None
    samples: int
    k: tuple[int, ...]
    seed: int


def make_results(results: Sequence[RowResult], configuration: Configuration) -> dict[str, Any]:
    """The results document: `results.json` as a dictionary."""
    tasks: dict[str, list[RowResult]] = {}
    for result in results:
        tasks.setdefault(result.task, []).append(result)
    summaries = {task: summarise(rows, configuration) for task, rows in sorted(tasks.items())}
    summaries[OVERALL] = summarise(results, configuration)
    return {
        "results": summaries,
        "config": {
            "model": configuration.model,
            "assistance": configuration.assistance,
            "split": configuration.split,
            "track": configuration.track,
            "arch": configuration.archs and list(configuration.archs),
            "family": configuration.families and list(configuration.families),
            "limit": configuration.limit,
            "samples": configuration.samples,
            "k": list(configuration.k),
        },
        "versions": {"python": platform.python_version(), **_versions()},
        "dataset": {
            "name": configuration.dataset,
            "revision": configuration.revision,
            "hash": configuration.dataset_hash,
        },
        "seed": configuration.seed,
        "git_revision": _git_revision(),
    }


def results_json(document: Mapping[str, Any]) -> str:
    """The text of results.json."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def summarise(rows: Sequence[RowResult], configuration: Configuration) -> dict[str, Any]:
    """One task's record. What cannot be computed is None."""
    outcomes = {row.row_id: row.outcome for row in rows if row.outcome is not None}
    record: dict[str, Any] = {"n": len(rows), "assistance": configuration.assistance}
    for k in configuration.k:
        record |= _pass_record(rows, k, configuration.seed)
    record |= _register_record(list(outcomes.items()))
    record |= _occupancy_record(list(outcomes.values()))
    found = outcomes.values()
    record["copies_removed"] = sum(o.identity_copies for o in found) if found else None
    record["bank_conflicts"] = sum(o.bank_conflicts.any for o in found) if found else None
    record["bank_conflicts_all"] = sum(o.bank_conflicts.all for o in found) if found else None
    samples = [sample for row in rows for sample in row.samples]
    record["allocate_seconds"] = sum(sample.allocate_seconds for sample in samples)
    record["verify_seconds"] = sum(sample.verify_seconds for sample in samples)
    failures = Counter(sample.failure or "invalid" for sample in samples if not sample.valid)
    record["failures"] = dict(sorted(failures.items()))
    record["findings"] = _finding_record(rows)
    # Allocators run in this process so far: nothing stands between that could fail.
    record["infrastructure_failures"] = 0
    return record


def _pass_record(rows: Sequence[RowResult], k: int, seed: int) -> dict[str, float | None]:
    estimates = [
        pass_at_k(len(row.samples), sum(sample.valid for sample in row.samples), k) for row in rows
    ]
    known = [estimate for estimate in estimates if estimate is not None]
    if len(known) < len(estimates):
        known = []
    low, high = bootstrap_interval(known, seed)
    return {f"pass@{k}": mean(known), f"pass@{k}_low": low, f"pass@{k}_high": high}


def _register_record(outcomes: Sequence[tuple[str, Outcome]]) -> dict[str, float | None]:
    labelled = {
        row_id: (outcome.registers, outcome.label_registers)
        for row_id, outcome in outcomes
        if outcome.label_registers is not None
    }
    ratios = [own / label for own, label in labelled.values() if own and label]
    return {
        "registers_ratio": geometric_mean(ratios),
        **shares(labelled),
        "gap_to_bound": mean([float(o.registers - o.bound) for _, o in outcomes]),
    }


def _occupancy_record(outcomes: Sequence[Outcome]) -> dict[str, int | None]:
    compared = [
        outcome.occupancy - outcome.label_occupancy
        for outcome in outcomes
        if outcome.label_occupancy is not None
    ]
    return {
        "occupancy_gained": sum(d > 0 for d in compared) if compared else None,
        "occupancy_lost": sum(d < 0 for d in compared) if compared else None,
    }


def _finding_record(rows: Sequence[RowResult]) -> dict[str, int]:
    """How many wrong answers have at least one finding of each kind."""
    kinds = Counter(
        kind
        for row in rows
        for sample in row.samples
        if sample.verdict is not None
        for kind in sample.finding_kinds
    )
    return dict(sorted(kinds.items()))


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for package in _VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _git_revision() -> str | None:
    """The commit of the package's own checkout; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        run = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()
