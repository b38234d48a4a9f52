"""Takes chosen assignments to machine code by `verilocc-bench compare`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.allocation_study.choosing import ComparisonChoice, choose
from benchmarks.allocation_study.copying import copy_rows
from benchmarks.allocation_study.questions import BEST
from benchmarks.allocation_study.running import read_study
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.allocators.search.options import SearchOptions
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically


def compare(folder: Path, path: Path, output: Path) -> None:
    """Compares the choices of `choose` from the study in `path`, and writes the results.

    Raises InputError if `folder` holds another dataset, or if a tool is missing.
    """
    measurements = read_study(path).measurements
    choices = choose(measurements.values())
    with tempfile.TemporaryDirectory() as name:
        chosen = Path(name)
        rows = copy_rows(folder, [choice.measurement for choice in choices], chosen)
        bar = tqdm(choices, unit="kernel", disable=None)
        documents = [_compared(choice, rows[choice.measurement.id], chosen) for choice in bar]
    document = {"kernels": len(measurements), "comparisons": documents}
    write_atomically(output, json.dumps(document, indent=1) + "\n")


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
