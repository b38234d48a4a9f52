"""Processes that this one starts."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["end_with_parent"]

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Ends this process when `parent`, which started it, ends in whatever way (on Linux)."""
    if sys.platform == "linux":
        # Nobody waits for a process whose parent was killed.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
