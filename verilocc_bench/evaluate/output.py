"""The files of a run: results.json, samples.jsonl and answers.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.ledger import Ledger
from verilocc_bench.evaluate.models import failure_to_json
from verilocc_bench.evaluate.records import RowResult, Sample
from verilocc_bench.evaluate.results import results_json
from verilocc_bench.files import read_json, write_atomically

__all__ = ["ANSWERS", "RESULTS", "SAMPLES", "write_run"]

RESULTS, SAMPLES, ANSWERS = "results.json", "samples.jsonl", "answers.jsonl"


def write_run(
    folder: Path,
    document: Mapping[str, Any],
    results: Sequence[RowResult],
    ledger: Ledger,
    *,
    anything_new: bool,
) -> None:
    """Writes the files of a run; results.json last, so that it never stands for others.

    Where the ledger had all samples, and the files say the same already but for
    times in results.json, all are left as they are.
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


def _lines(results: Sequence[RowResult], ledger: Ledger, line: Any) -> Iterator[str]:
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
    }


def _answer_line(result: RowResult, sample: Sample, recorded: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] | None = recorded["answer"]
    if answer is None:
        return failure_to_json(result.row.id, sample.failure or "", sample.message)
    return answer
