"""Processes that this one starts: pools of them, and other programs under limits.

All of them end when this process ends, even when it is killed.

Run as a script, this module becomes another program under limits:

    python -I -S processes.py PARENT MEMORY_BYTES PROGRAM ARGUMENT…

Only system calls are safe between fork and exec of a process with threads, so
a process of its own sets the limits. It needs the standard library alone, and
imports little, because it starts for each program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when the thread that started it ends."""

LAUNCHER = __file__
"""The path of the script that becomes another program."""

NOT_STARTED = 127


@contextmanager
def process_pool(
    jobs: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool of `jobs` fresh processes, each of which first calls `start` with the arguments.

    Leaving the context cancels the tasks that have not begun, and does not wait
    for the others. A process that dies breaks the pool: its futures raise
    `BrokenProcessPool`. Ctrl-C interrupts this process alone.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _begin, (os.getpid(), start, arguments))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin(parent: int, start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start(*arguments)


def end_with_parent(parent: int) -> None:
    """Makes this process end when `parent`, which started it, ends (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_STARTED)  # it ended before the call


def become_program(parent: int, memory_bytes: int, argv: list[str]) -> None:
    """Becomes a program with at most this much memory (0: no limit); never returns.

    Ends with status 127 and a line on standard error if the program cannot be run.
    """
    _limit(resource.RLIMIT_CORE, 0)
    end_with_parent(parent)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would keep that
    if memory_bytes:
        _limit(resource.RLIMIT_AS, memory_bytes)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  no shell is what is wanted
    except OSError as error:
        os.write(2, f"cannot run {argv[0]}: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    become_program(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
