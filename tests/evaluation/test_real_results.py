"""What evaluate writes is what the schema says, for every track and decoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from verilocc_bench.cli import main
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
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *options, "--limit", "1", "--output-path", str(tmp_path)]) == 0
    document = read_results(tmp_path / "results.json")
    assert document["results"]["overall"]["n"] == len(document["kernels"])
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report.md")]) == 0
    capsys.readouterr()
