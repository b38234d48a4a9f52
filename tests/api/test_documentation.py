"""The examples of docs/python-api.md and of the package's docstring run, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import verilocc_bench as vb

ROOT = Path(__file__).parents[2]


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python-api.md").read_text()
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    assert len(blocks) == 4
    for block in blocks:
        exec(block, names)
    assert names["verdict"].valid
    assert (tmp_path / "kernel.mir").exists()


def test_the_readmes_lines_run() -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^```python\n(import verilocc_bench as vb\n.*?)^```$", text, re.S | re.M)
    exec(block, {})


def test_the_page_names_what_there_is() -> None:
    text = (ROOT / "docs" / "python-api.md").read_text()
    for name in vb.__all__:
        if name not in {"__version__", "Answer", "Verdict", "RunComparison", "Results"}:
            assert f"`{name}" in text or f"{name}(" in text or f"vb.{name}." in text, name
