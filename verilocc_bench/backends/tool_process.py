"""Runs a vendor's program as a process of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from verilocc_bench.errors import InputError

_BUSY = 50
"""How much longer than its processor time a tool may take: where others use the processors."""


def run_tool(
    tool: Path,
    arguments: Sequence[str],
    folder: Path,
    seconds: int,
    stderr: int = subprocess.PIPE,
    *,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The ended process of a tool, with its output.

    The tool runs in `folder` and sees nothing of this process's environment; `variables` are
    added to its own. `stderr` is as for `subprocess.Popen`. Raises InputError if the tool
    cannot be started, and TimeoutError if it does not end in `seconds` of processor time:
    on a busy machine that may be much longer.
    """
    try:
        process = subprocess.Popen(
            [tool, *arguments],
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C", **(variables or {})},
            stdin=subprocess.DEVNULL,
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
        try:
            output, errors = process.communicate(timeout=_BUSY * seconds)
            ended = process.returncode != -signal.SIGXCPU
        except subprocess.TimeoutExpired:
            ended = False
            process.kill()
        except BaseException:
            process.kill()
            raise
    if not ended:
        raise TimeoutError(f"{tool.name} found no end in {seconds} seconds")
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
