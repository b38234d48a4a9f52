"""The measurements behind docs/sm_80.md, on one small kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import runnable
from tests.backends.nvidia.assembled_kernels import require_tools
from verilocc_bench.dataset import load_rows

pytestmark = pytest.mark.slow

ROW = min((r for r in load_rows("mini").rows if r.arch == "sm_80"), key=lambda r: r.n_instructions)


def test_answers_are_judged_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_tools()
    chosen = [runnable.problems.load_problem(ROW.id)]
    monkeypatch.setattr(runnable.problems, "load_problems", lambda *_, **__: chosen)
    answers = tmp_path / "answers.jsonl"
    assert runnable.main(["answers", "--measured", str(answers)]) == 0
    (record,) = map(json.loads, answers.read_text().splitlines())
    assert record["verdict"] == "runs by the compiler's own rules"
    assert record["destroyed"] == 0 < record["plain_destroyed"]
    assert record["plain"] <= record["runnable"] <= record["compiler"]
    assert "| runs by the compiler's own rules | 0 values destroyed |" in capsys.readouterr().out
