"""The benchmark behind the table of docs/triton.md, on one small kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("triton")

from benchmarks import triton_plugin

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("llc")
def test_both_codes_leave_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "measured.jsonl"
    command = ["triton_plugin", "--arch", "gfx942", "--limit", "1", "--output", str(output)]
    monkeypatch.setenv("TRITON_CACHE_DIR", "")  # the benchmark sets its own
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    monkeypatch.setattr("sys.argv", command)
    triton_plugin.main()
    (row,) = map(json.loads, output.read_text().splitlines())
    assert row["replaced"]
    assert row["same_bits"] is True
    table = capsys.readouterr().out.splitlines()[-1]
    cells = [cell.strip() for cell in table.strip("|").split("|")]
    shown = f"| {' | '.join(cells[:7])} |"
    assert shown in (ROOT / "docs" / "triton.md").read_text()
    triton_plugin.main()  # goes on from there
    assert len(output.read_text().splitlines()) == 1
