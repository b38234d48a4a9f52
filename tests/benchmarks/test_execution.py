"""benchmarks/execution.py does only what its file lacks; benchmarks/tied_answers.py makes ties."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.verification import Verifier

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


def test_results_of_a_fused_product_become_registers_of_their_own(benchmark: Any) -> None:
    tied = benchmark("tied_answers")
    content = load_raw_row("mini", ROW.id).content
    text, made = tied.apart(content)
    assert made
    assert text.count("(tied-def 0)") == len(made) == 6
    with pytest.raises(InputError, match="tied to operand 0, and has another register"):
        tied.tied_kernel(ROW)
    with patch(tied.REFUSAL):
        kernel = tied.tied_kernel(ROW)
    problem = kernel.kernel.problem
    ties = tied_operands(problem.function)
    assert len(ties) == len(made)
    assert Verifier(problem).verify(kernel.answer).valid
    moved = dict(kernel.answer.assignment)
    name = f"%{ties[0].use.location.register}"  # type: ignore[union-attr]
    moved[name] = "v200"
    assert not Verifier(problem).verify(moved).valid
