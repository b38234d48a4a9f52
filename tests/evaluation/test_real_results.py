"""What evaluate writes is what the schema says, for every track and decoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from verilocc_bench.evaluation.schema import read_results

STOCHASTIC = "python:tests.evaluation.allocators_for_tests:stochastic"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--model", "compiler"),
        ("--model", "compiler", "--track", "split"),
        ("--model", "spill-everywhere", "--track", "split", "--family", "gemm"),
        ("--model", STOCHASTIC, "--samples", "3", "--k", "1,3"),
        ("--model", STOCHASTIC, "--decoding", "guided", "--verifier-calls", "2"),
        ("--model", "command:/bin/false", "--arch", "sm_80"),
    ],
)
def test_results_meet_the_schema(
    options: tuple[str, ...], tmp_path: Path, run: CommandLine
) -> None:
    run("evaluate", *options, "--limit", "1", "--output-path", tmp_path)
    document = read_results(tmp_path / "results.json")
    assert document["results"]["overall"]["n"] == len(document["kernels"])
    run("report", tmp_path, "-o", tmp_path / "report.md")
