"""Programs as processes: their limit is their own processor time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verilocc_bench.backends import tool_process
from verilocc_bench.backends.tool_process import run_tool

PYTHON = Path(sys.executable)


def test_a_tool_that_waits_for_the_processor_is_not_stopped(tmp_path: Path) -> None:
    ended = run_tool(PYTHON, ["-c", "import time; time.sleep(1.2); print(1)"], tmp_path, 1)
    assert (ended.returncode, ended.stdout) == (0, b"1\n")


def test_a_tool_that_finds_no_end_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError, match=r"found no end in 1 seconds"):
        run_tool(PYTHON, ["-c", "while True: pass"], tmp_path, 1)
    monkeypatch.setattr(tool_process, "_BUSY", 1)
    with pytest.raises(TimeoutError, match=r"found no end in 1 seconds"):
        run_tool(PYTHON, ["-c", "import time; time.sleep(60)"], tmp_path, 1)
