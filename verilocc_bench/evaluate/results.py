"""The document of a run: what `results.json` holds."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verilocc_bench.dataset import BudgetChoice
from verilocc_bench.evaluate.models import ModelDescription
from verilocc_bench.evaluate.records import RowResult
from verilocc_bench.evaluate.summary import (
    OVERALL,
    Summary,
    group_results,
    kernel_record,
    summarise,
)

__all__ = ["Configuration", "make_results", "results_json", "versions"]

_VERSIONED = ("verilocc-bench", "datasets", "huggingface-hub", "numpy", "pyarrow")
_OF_LANGUAGE_MODELS = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was asked: everything that may change a number."""

    model: ModelDescription
    dataset: str
    revision: str | None
    dataset_hash: str
    split: str
    track: str
    budget: BudgetChoice
    archs: tuple[str, ...] | None
    families: tuple[str, ...] | None
    limit: int | None
    samples: int
    k: tuple[int, ...]
    seed: int

    @property
    def summary(self) -> Summary:
        """How results are to be summed up."""
        return Summary(
            self.model.assistance,
            self.model.decoding,
            self.track,
            self.k,
            self.seed,
            self.model.verifier_calls,
        )


def make_results(
    results: Sequence[RowResult], configuration: Configuration, timing: Mapping[str, float]
) -> dict[str, Any]:
    """The results document. Only `_seconds` and the date differ between runs of one kind."""
    summary, model = configuration.summary, configuration.model
    tasks: dict[str, list[RowResult]] = {}
    for result in results:
        tasks.setdefault(result.task, []).append(result)
    summaries = {task: summarise(rows, summary) for task, rows in sorted(tasks.items())}
    summaries[OVERALL] = summarise(results, summary)
    return {
        "results": summaries,
        "groups": {
            name: {value: summarise(rows, summary) for value, rows in groups.items()}
            for name, groups in group_results(results).items()
        },
        "kernels": [kernel_record(row, model.verifier_calls is not None) for row in results],
        "config": {
            **model.to_json(),
            "track": configuration.track,
            "split": configuration.split,
            "budget": configuration.budget.value,
            "arch": configuration.archs and list(configuration.archs),
            "family": configuration.families and list(configuration.families),
            "limit": configuration.limit,
            "samples": configuration.samples,
            "k": list(configuration.k),
        },
        "versions": versions(language_model=model.prompt is not None),
        "dataset": {
            "name": configuration.dataset,
            "revision": configuration.revision,
            "hash": configuration.dataset_hash,
        },
        "seed": configuration.seed,
        "git_revision": _git_revision(),
        "timing": dict(timing),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def results_json(document: Mapping[str, Any]) -> str:
    """The text of results.json."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def versions(*, language_model: bool) -> dict[str, str | None]:
    """The versions of Python and of what results stand on; None of what is not installed."""
    packages = _VERSIONED + (_OF_LANGUAGE_MODELS if language_model else ())
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
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
