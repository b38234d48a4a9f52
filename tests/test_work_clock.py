"""Time at work: waiting for a processor is not counted, sleeping is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from verilocc_bench.work_clock import WorkClock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

SPIN = "import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\nwhile True: pass"


@pytest.mark.parametrize("beginning", [[], ["/bin/sh", "-c", '"$@" & wait', "sh"]])
def test_waiting_for_a_processor_is_not_counted(beginning: list[str]) -> None:
    """Two processes share one processor: together they work no longer than the time that passes.

    So do the children of two shells, which sleep themselves.
    """
    processor = min(os.sched_getaffinity(0))
    command = [*beginning, sys.executable, "-I", "-S", "-c", SPIN % processor]
    spinning = [
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) for _ in range(2)
    ]
    try:
        for process in spinning:
            assert process.stdout is not None
            process.stdout.readline()
        clocks = [WorkClock(process.pid) for process in spinning]
        started = time.monotonic()
        for _ in range(5):
            time.sleep(0.1)
            worked = [clock.seconds() for clock in clocks]
        passed = time.monotonic() - started
    finally:
        for process in spinning:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert 0 < sum(worked) <= passed + 0.05


def test_sleep_is_counted() -> None:
    with subprocess.Popen(["sleep", "10"]) as sleeping:
        clock, started = WorkClock(sleeping.pid), time.monotonic()
        time.sleep(0.1)
        assert clock.seconds() == pytest.approx(time.monotonic() - started, abs=0.05)
        sleeping.kill()
