"""Runs a tool, such as llc or nvdisasm, as a process of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from verilocc_bench.errors import InputError
from verilocc_bench.work_clock import WorkClock

_POLL_SECONDS = 0.5


def run_tool(
    tool: Path,
    arguments: Sequence[str],
    folder: Path,
    seconds: int,
    stderr: int = subprocess.PIPE,
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The ended process of a tool, with its output.

    The tool runs in `folder` and sees nothing of this process's environment; `variables` are
    added to its own. `stdin` and `stderr` are as for `subprocess.Popen`. Raises InputError if
    the tool cannot be started, and TimeoutError if it does not end in `seconds` of work: time
    in which it waits for a processor is not counted (`work_clock`).
    """
    try:
        process = subprocess.Popen(
            [tool, *arguments],
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C", **(variables or {})},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    except OSError as error:
        raise InputError(f"cannot be run: {error.strerror}", source=tool) from None
    with process:
        # nvdisasm does not end on some damaged cubins. A tool must end even if this process
        # is killed, so its processor time has a limit, too.
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        clock = WorkClock(process.pid)
        ended = False
        try:
            while not ended and clock.seconds() <= seconds:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, errors = process.communicate(timeout=_POLL_SECONDS)
                    ended = True
        finally:
            process.kill()
    if not ended or process.returncode == -signal.SIGXCPU:
        raise TimeoutError(f"{tool.name} found no end in {seconds} seconds")
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
