"""Answers from files: what is wrong with one line is counted, and harms no other."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.evaluation.metrics import seed_interval
from verilocc_bench.evaluation.models import read_predictions
from verilocc_bench.evaluation.schema import read_results

ROWS = [row for row in load_rows("mini").rows if row.arch == "gfx942"][:2]
FIRST, SECOND = ROWS


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """One right answer."""
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"id": FIRST.id, "assignment": FIRST.label}) + "\n")
    return path


def test_malformed_lines_are_samples_that_cannot_be_parsed(path: Path, run: CommandLine) -> None:
    good = path.read_text().strip()
    lines = [
        good,
        good[:-3],
        json.dumps({"id": FIRST.id, "assignment": ["v0"]}),
        json.dumps({"id": FIRST.id, "assignment": {"%0": 3}}),
        json.dumps({"id": FIRST.id, "assignment": {}, "edits": {"insert": 3}}),
        json.dumps({"id": FIRST.id, "failure": "timeout", "message": "too slow"}),
        json.dumps({"id": FIRST.id, "failure": "infrastructure"}),
        json.dumps({"id": FIRST.id, "failure": "a fine excuse"}),
        json.dumps({"id": FIRST.id}),
        good,
    ]
    path.write_text("\n\n".join(lines) + "\n")
    chosen = ("--arch", "gfx942", "--limit", "1", "--samples", len(lines))
    document = run.json("evaluate", "--model", f"predictions:{path}", *chosen)
    kernel = next(kernel for kernel in document["kernels"] if kernel["id"] == FIRST.id)
    assert (kernel["samples"], kernel["valid"], kernel["first_valid"]) == (10, 2, 0)
    failures = dict(document["results"]["overall"]["failures"])
    others = len(lines) * (len(document["kernels"]) - 1)
    assert failures.pop("no_answer") == others + 1
    assert failures == {"unparsable": 6, "timeout": 1}
    assert document["results"]["overall"]["infrastructure_failures"] == 0


@pytest.mark.parametrize(
    ("line", "place", "complaint"),
    [
        ("\n{]", ":3", "expected JSON"),
        ('{"assignment": {}}', ":2", "no 'id'"),
        ('{"id": "0123456789abcdef", "assignment": {}}', "", "no function"),
    ],
)
def test_a_line_of_no_function_is_bad_input(
    line: str, place: str, complaint: str, path: Path, run: CommandLine
) -> None:
    path.write_text(f"{path.read_text()}{line}\n")
    run.refuses(["evaluate", "--model", f"predictions:{path}"], f"{path}{place}", complaint)


def test_a_file_cannot_be_guided(path: Path, run: CommandLine) -> None:
    guided = ("--decoding", "guided")
    run.refuses(["evaluate", "--model", f"predictions:{path}", *guided], "cannot be guided")


def test_a_file_that_says_it_is_large(path: Path, run: CommandLine) -> None:
    os.truncate(path, 10 << 30)
    said = "10,737,418,240 bytes, more than the 4,294,967,296"
    run.refuses(["evaluate", "--model", f"predictions:{path}"], said)
    os.truncate(path, 0)
    os.truncate(path, 4 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="longer than the 33,554,432 bytes"):
            read_predictions("predictions:x", path)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_changes_is_no_failure_of_its_answers(path: Path) -> None:
    predictions = read_predictions(f"predictions:{path}", path)
    request = Request(AllocationProblem.from_text(FIRST.normalized), 0, 0)
    assert predictions.allocate(request).assignment == FIRST.label
    path.write_text(json.dumps({"id": SECOND.id, "assignment": SECOND.label}) + "\n" * 99999)
    with pytest.raises(InfrastructureError, match=r"(has changed|cannot be read again)"):
        predictions.allocate(request)
    path.unlink()
    with pytest.raises(InfrastructureError, match="no such file"):
        predictions.allocate(request)


def test_five_samples_tell_the_interval_over_seeds(tmp_path: Path, run: CommandLine) -> None:
    rows = [row for row in load_rows("mini").rows if row.arch == "gfx942" and row.family == "gemm"]
    path, valid = tmp_path / "answers.jsonl", {row.id: n % 6 for n, row in enumerate(rows)}
    lines = [
        {"id": row.id, "assignment": row.label if sample < valid[row.id] else {}}
        for row in rows
        for sample in range(5)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    low, high = seed_interval([(5, count) for count in valid.values()])
    assert low is not None
    assert high is not None
    shown = f", seeds {100 * low:.1f}–{100 * high:.1f})"
    options = ("evaluate", "--model", f"predictions:{path}", "--arch=gfx942", "--family=gemm")
    assert shown in run(*options, "--samples=5", "--output-path", tmp_path / "run").out
    found = read_results(tmp_path / "run" / "results.json")["results"]["overall"]
    assert (found["pass@1_seeds_low"], found["pass@1_seeds_high"]) == (low, high)
    assert found["pass@1_low"] < low < found["pass@1"] < high < found["pass@1_high"]
    assert shown in run("report", tmp_path / "run").out
    assert "seeds_low" not in run(*options, "--samples=4", "--json").out
