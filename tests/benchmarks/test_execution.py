"""benchmarks/execution.py does only what its file lacks."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from verilocc_bench.dataset import load_rows

ROW = min(
    (r for r in load_rows("mini").rows if r.arch == "gfx90a"), key=lambda r: len(r.normalized)
)
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script, which finds the others beside it."""
    pytest.importorskip("numba")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_a_run_that_is_started_again_keeps_what_it_has(benchmark: Any, tmp_path: Path) -> None:
    execution = benchmark("execution")
    names = execution.names_of_answers(ROW)
    assert {"label", "linear-scan"} <= set(names)
    path = tmp_path / "results.jsonl"
    results = execution.Measurements(path)
    assert execution.missing(results, ROW, 1) == ["own", *names]
    results.add(("answers", ROW.id, 1, "own"), outcome="right numbers")
    results.add(("answers", ROW.id, 1, "linear-scan"), outcome="right numbers")
    left = [name for name in names if name != "linear-scan"]
    assert execution.missing(results, ROW, 1) == left
    whole = path.read_text()
    path.write_text(whole + '{"key": ["answers", "cut sho')
    again = execution.Measurements(path)
    assert path.read_text() == whole
    assert execution.missing(again, ROW, 1) == left
    assert execution.missing(again, ROW, 2) == ["own", *names]


def test_nothing_is_asked_where_the_compilers_own_code_does_not_run(
    benchmark: Any, tmp_path: Path
) -> None:
    execution = benchmark("execution")
    path = tmp_path / "results.jsonl"
    line = {"key": ["answers", ROW.id, 1, "own"], "outcome": "refused"}
    path.write_text(json.dumps(line) + "\n")
    assert execution.missing(execution.Measurements(path), ROW, 1) == []
