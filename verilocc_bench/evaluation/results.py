"""The document of a run, and its files: results.json, samples.jsonl and answers.jsonl."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verilocc_bench.dataset.versions import known_versions
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.configuration import allocator_record
from verilocc_bench.evaluation.ledger import Ledger
from verilocc_bench.evaluation.machine_code import CountedCode
from verilocc_bench.evaluation.models import failure_to_json
from verilocc_bench.evaluation.records import RowResult, Sample
from verilocc_bench.evaluation.storing import AllocatorRun
from verilocc_bench.evaluation.summary import kernel_record, summarise_by_group, summarise_by_task
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.settings.language_model import LanguageModelSettings

RESULTS, SAMPLES, ANSWERS = "results.json", "samples.jsonl", "answers.jsonl"

_VERSIONED = ("verilocc-bench", "datasets", "huggingface-hub", "numpy", "pyarrow")
_OF_LANGUAGE_MODELS = ("torch", "transformers", "tokenizers")


def make_results(
    run: AllocatorRun,
    results: Sequence[RowResult],
    dataset_hash: str,
    wall_seconds: float,
    machine_code: Mapping[str, CountedCode] | None = None,
) -> dict[str, Any]:
    """The results document. Only `_seconds` and the date differ between equal runs.

    `machine_code` has the valid answers' code by row id; None if it was not asked for.
    """
    configuration, settings = run.configuration, run.allocator.settings
    described = allocator_record(run.allocator, run.prompt)
    price = settings.price if isinstance(settings, LanguageModelSettings) else None
    how: dict[str, Any] = {
        "assistance": described["assistance"],
        "decoding": described["decoding"],
        "track": configuration.track,
        "ks": configuration.ks,
        "seed": configuration.seed,
        "calls": settings.verifier_calls if settings.guided else None,
        "machine_code": machine_code,
        "price": price,
    }
    return {
        "results": summarise_by_task(results, **how),
        "groups": summarise_by_group(results, **how),
        "kernels": [kernel_record(row, settings.guided, machine_code) for row in results],
        "config": {
            **described,
            **configuration.to_json(),
            **({} if price is None else {"price": list(price)}),
        },
        "versions": versions(language_model=run.prompt is not None),
        "dataset": {
            "name": configuration.dataset_name,
            "revision": configuration.revision,
            "hash": dataset_hash,
            "version": known_versions().get(dataset_hash),
        },
        "seed": configuration.seed,
        "git_revision": _git_revision(),
        "timing": run.timing.to_json(results, wall_seconds),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def results_json(document: Mapping[str, Any]) -> str:
    """The text of results.json."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def versions(*, language_model: bool) -> dict[str, str | None]:
    """The versions of Python and of the packages that results depend on; None if not installed."""
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


def write_run(
    folder: Path,
    document: Mapping[str, Any],
    results: Sequence[RowResult],
    ledger: Ledger,
    *,
    anything_new: bool,
) -> None:
    """Writes the files of a run; results.json last, so that it never stands beside older samples.

    Leaves all files as they are if the ledger had all samples, and they say the
    same already but for times in results.json.
    """
    ledger.refresh()
    if (
        not anything_new
        and _says_the_same(folder, document)
        and _holds(folder / SAMPLES, _lines(results, ledger, _sample_line))
        and _holds(folder / ANSWERS, _lines(results, ledger, _answer_line))
    ):
        return
    write_atomically(folder / SAMPLES, _lines(results, ledger, _sample_line))
    write_atomically(folder / ANSWERS, _lines(results, ledger, _answer_line))
    write_atomically(folder / RESULTS, results_json(document))


def _holds(path: Path, lines: Iterator[str]) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return all(file.read(len(line)) == line for line in map(str.encode, lines)) and (
            not file.read(1)
        )


def _says_the_same(folder: Path, document: Mapping[str, Any]) -> bool:
    try:
        old = read_json(folder / RESULTS)
    except InputError:
        return False
    if not isinstance(old, dict) or old.get("config") != document["config"]:
        return False
    return bool(_without_times(old) == _without_times(document))


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = [key for key in value if key != "date" and not key.endswith("_seconds")]
        return {key: _without_times(value[key]) for key in kept}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def _lines(
    results: Sequence[RowResult],
    ledger: Ledger,
    line: Callable[[RowResult, Sample, dict[str, Any]], dict[str, Any]],
) -> Iterator[str]:
    for result in results:
        recorded: dict[str, Any] = {}
        for sample in result.samples:
            found = ledger.read_line(result.row.id, sample.index)
            if found is not None:
                recorded = found
            elif not sample.counted:
                recorded = {"verdict": None, "answer": None}
            # Else a deterministic allocator says again what it said before.
            yield json.dumps(line(result, sample, recorded), allow_nan=False) + "\n"


def _sample_line(result: RowResult, sample: Sample, recorded: dict[str, Any]) -> dict[str, Any]:
    told = {} if sample.traceback is None else {"traceback": sample.traceback}
    if "asks" in sample.details and "configuration" in recorded:
        told["configuration"] = recorded["configuration"]  # which its transcript stands under
    return {
        "id": result.row.id,
        "task": result.task,
        "split": result.split,
        "sample": sample.index,
        "valid": sample.valid,
        "failure": sample.failure,
        "message": sample.message,
        "verdict": recorded["verdict"],
        "findings_count": sample.findings_count,
        "calls": sample.calls,
        "details": dict(sample.details),
        "allocate_seconds": sample.allocate_seconds,
        "verify_seconds": sample.verify_seconds,
        **told,
    }


def _answer_line(result: RowResult, sample: Sample, recorded: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] | None = recorded["answer"]
    if answer is None:
        return failure_to_json(result.row.id, sample.failure or "", sample.message)
    return answer
