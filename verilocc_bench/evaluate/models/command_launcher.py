"""Becomes another program, under limits; run as a script of its own.

Called with the process that must live on, the memory limit in bytes (0: none)
and the program with its arguments. A process of its own sets the limits
because nothing but system calls is safe between fork and exec of a process
that has threads. Needs the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when the thread that started it ends."""

NOT_STARTED = 127


def main() -> None:
    """Never returns: becomes the program, or ends with status 127 and a line on standard error."""
    parent, memory_bytes, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _limit(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_STARTED)  # it ended before it could be watched
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
    main()
