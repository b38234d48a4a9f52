"""How long another process has been at work, on a machine that others use too.

A limit of time on the wall says little on a busy machine: the same work takes ten
times as long there. So the clock stands still while a process only waits for a
processor. It counts

- the processor time of the process and of all that it has started, and
- the time in which no such process wants a processor: it sleeps, or waits for a disk.

Where there is no `/proc` with lists of children (Linux has them), it is a clock on the
wall. The state is looked at when `seconds` is called: call it a few times a second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Places in /proc/PID/stat after the name, see proc(5): the state, and four times in ticks:
# own in user and in kernel mode, and of children that have ended.
_STATE, _TIMES = 0, slice(11, 15)


class WorkClock:
    """Counts from its creation for the process with this id; see the module."""

    def __init__(self, process: int) -> None:
        self.process = process
        self._worked = 0.0
        self._looked_at = time.monotonic()
        self._computed, _ = _usage(process)

    def seconds(self) -> float:
        """The time at work so far."""
        now = time.monotonic()
        computed, wants_processor = _usage(self.process)
        if wants_processor:
            self._worked += max(computed - self._computed, 0.0)
        else:
            self._worked += now - self._looked_at
        self._looked_at, self._computed = now, computed
        return self._worked


def _usage(process: int) -> tuple[float, bool]:
    """The processor time in seconds of a process and all below it, and if one wants a processor."""
    ticks, wants_processor = 0, False
    pending = [process]
    while pending:
        folder = Path("/proc", str(pending.pop()))
        try:
            ticks += sum(int(value) for value in _stat(folder)[_TIMES])
            for thread in (folder / "task").iterdir():
                wants_processor |= _stat(thread)[_STATE] == "R"
                pending += [int(child) for child in (thread / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):  # it has ended, or there is no /proc
            continue
    return ticks / _TICKS_PER_SECOND, wants_processor


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(") ")[2].split()
