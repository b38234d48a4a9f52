"""The measurements behind docs/sm_80.md, on one small kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import distances, runnable
from tests.backends.nvidia.assembled_kernels import require_tools
from verilocc_bench.backends.nvidia.distance_table import distance_table, table_from_json
from verilocc_bench.dataset import RawRow, load_raw_row, load_rows

pytestmark = pytest.mark.slow

ROW = min((r for r in load_rows("mini").rows if r.arch == "sm_80"), key=lambda r: r.n_instructions)


def test_mining_goes_on_and_gives_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_tools()
    place = tmp_path / "set" / "raw" / "data" / "sm_80" / "gemm"
    place.mkdir(parents=True)
    (place / "test-00000-of-00001.parquet").touch()
    raw = load_raw_row("mini", ROW.id)
    monkeypatch.setattr(distances, "iterate_parquet", lambda *_: iter([raw]))
    measured, table = tmp_path / "measured.jsonl", tmp_path / "table.json"
    command = ["mine", str(tmp_path / "set"), "--measured", str(measured), "-o", str(table)]
    assert distances.main(command) == 0
    first = table.read_bytes()
    assert len(measured.read_text().splitlines()) == 1
    assert distances.main(command) == 0
    assert table.read_bytes() == first
    assert len(measured.read_text().splitlines()) == 1
    found = table_from_json(json.loads(first))
    assert found.corpus["kernels"] == 1
    # The package's table knows at least as much, and is never stricter.
    whole = distance_table()
    assert all(whole.cells[kind].cycles <= cell.cycles for kind, cell in found.cells.items())
    assert distances.main(["report", "--measured", str(measured)]) == 0
    assert "| all | all |" in capsys.readouterr().out
    assert isinstance(raw, RawRow)


def test_answers_and_mutants_are_judged_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_tools()
    rows = runnable.problems.load_problems(arch="sm_80")
    chosen = [row for row in rows if row.id == ROW.id]
    monkeypatch.setattr(runnable.problems, "load_problems", lambda *_, **__: chosen)
    answers, mutants = tmp_path / "answers.jsonl", tmp_path / "mutants.jsonl"
    assert runnable.main(["answers", "--measured", str(answers)]) == 0
    (record,) = map(json.loads, answers.read_text().splitlines())
    assert record["verdict"] == "runs by the compiler's own rules"
    assert record["destroyed"] == 0 < record["plain_destroyed"]
    assert record["plain"] <= record["runnable"] <= record["compiler"]
    assert runnable.main(["mutants", "--each", "40", "--measured", str(mutants)]) == 0
    (record,) = map(json.loads, mutants.read_text().splitlines())
    assert record["counts"]["nothing|neither"] > 0
    assert not any(key.startswith("nothing|") for key in record["counts"] if "neither" not in key)
    assert sum(n for key, n in record["counts"].items() if key.endswith("|both")) >= 8
    assert not any(key.endswith("|model") for key in record["counts"])
    assert "| nothing |" in capsys.readouterr().out
