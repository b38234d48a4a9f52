"""Takes chosen assignments to machine code by `verilocc-bench compare`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.allocation_study.choosing import ComparisonChoice, choose
from benchmarks.allocation_study.questions import BEST
from benchmarks.allocation_study.running import read_study
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.allocators.search.options import SearchOptions
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import RawRow, Row, iterate_rows, read_parquet
from verilocc_bench.dataset.parquet import write_parquet
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically

_SPLIT = "test"
"""The split of the folder with the chosen rows."""


def compare(folder: Path, path: Path, output: Path) -> None:
    """Compares the choices of `choose` from the study in `path`, and writes the results.

    Raises InputError if `folder` holds another dataset, or if a tool is missing.
    """
    measurements = read_study(path).measurements
    choices = choose(measurements.values())
    with tempfile.TemporaryDirectory() as name:
        chosen = Path(name)
        rows = _copy_rows(folder, choices, chosen)
        bar = tqdm(choices, unit="kernel", disable=None)
        documents = [_compared(choice, rows[choice.measurement.id], chosen) for choice in bar]
    document = {"kernels": len(measurements), "comparisons": documents}
    write_atomically(output, json.dumps(document, indent=1) + "\n")


def _copy_rows(folder: Path, choices: Iterable[ComparisonChoice], chosen: Path) -> dict[str, Row]:
    """The chosen rows, and a dataset of them with their machine code."""
    by_split: dict[str, set[str]] = {}
    for choice in choices:
        by_split.setdefault(choice.measurement.split, set()).add(choice.measurement.id)
    rows: dict[str, Row] = {}
    for split, ids in by_split.items():
        found = {row.id: row for row in iterate_rows(str(folder), split=split) if row.id in ids}
        missing = ids - set(found)
        if missing:
            message = f"the split {split} has no row {min(missing)}: expected the study's dataset"
            raise InputError(message, source=folder)
        rows |= found
        for row in found.values():
            raw = _raw(folder, row, split)
            name = f"{row.arch}/{row.family}/{_SPLIT}-{row.id}.parquet"
            write_parquet([row], chosen / "data" / name)
            write_parquet([raw], chosen / "raw/data" / name)
    return rows


def _raw(folder: Path, row: Row, split: str) -> RawRow:
    for path in sorted(folder.glob(f"raw/data/{row.arch}/{row.family}/{split}-*.parquet")):
        for raw in read_parquet(path, RawRow):
            if raw.id == row.id:
                return raw
    raise InputError(f"there is no machine code of {row.id}", source=folder / "raw")


def _compared(choice: ComparisonChoice, row: Row, chosen: Path) -> dict[str, Any]:
    """The comparison of one choice; its files of machine code are temporary."""
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    found = Search(problem, SearchOptions(objective=BEST[choice.allocator])).run()
    answer = answer_from_assignment(problem, found.assignment)
    path = chosen / f"{row.id}.json"
    write_atomically(path, json.dumps(answer_to_json(row.id, Answer(answer))))
    command = [sys.executable, "-m", "verilocc_bench", "compare", row.id, str(path)]
    command += ["--dataset", str(chosen), "--json", "-o", str(chosen / row.id)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise InputError(f"compare: {result.stderr.strip()}", source=f"row {row.id}")
    document = json.loads(result.stdout)
    code = sorted(
        str(p.relative_to(chosen / row.id)) for p in (chosen / row.id).glob("*/kernel.[oc]*")
    )
    return {
        "id": row.id,
        "split": choice.measurement.split,
        "arch": row.arch,
        "family": row.family,
        "kernel": row.kernel,
        "allocator": choice.allocator,
        "measure": choice.measure,
        "answer": _side(document["answer"]),
        "compiler": _side(document["other"]),
        "words": document["words"],
        "versions": document["versions"],
        "machine_code": code,
    }


def _side(side: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": side["name"], "metrics": side["metrics"]}
    if "cubin" in side:
        kept["hazards"] = side["cubin"]["hazards"]
        kept["reasons"] = side["cubin"]["reasons"]
    return kept
