"""Programs as processes: their limit is time at work, not time on a busy machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verilocc_bench import tool_process
from verilocc_bench.errors import InputError
from verilocc_bench.machine import disassembly
from verilocc_bench.machine.disassembly import refuse_undecodable
from verilocc_bench.tool_process import run_tool
from verilocc_bench.work_clock import WorkClock

PYTHON = Path(sys.executable)
SLEEP = ["-c", "import time; time.sleep(1.2); print(1)"]


class BusyMachine(WorkClock):
    """The clock of a process that never gets a processor."""

    def seconds(self) -> float:
        return 0.0


def test_a_tool_that_waits_for_the_processor_is_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_process, "WorkClock", BusyMachine)
    ended = run_tool(PYTHON, SLEEP, tmp_path, 1)
    assert (ended.returncode, ended.stdout) == (0, b"1\n")


@pytest.mark.parametrize(
    ("program", "clock"),
    [
        ("while True: pass", WorkClock),
        ("import time; time.sleep(60)", WorkClock),
        # Its processor time has a limit of the operating system's, too.
        ("while True: pass", BusyMachine),
    ],
)
def test_a_tool_that_finds_no_end_is(
    program: str, clock: type[WorkClock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_process, "WorkClock", clock)
    with pytest.raises(TimeoutError, match=r"found no end in 1 seconds"):
        run_tool(PYTHON, ["-c", program], tmp_path, 1)


def test_a_disassembler_that_finds_no_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "llvm-objdump"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(disassembly, "find_objdump", lambda: program)
    monkeypatch.setattr(disassembly, "_SECONDS", 1)
    with pytest.raises(InputError, match=r"^llvm-objdump found no end in 1 seconds"):
        refuse_undecodable(b"", "gfx942")
