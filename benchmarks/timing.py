"""How the benchmarks take times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MILLISECONDS = 1000


def least(action: Callable[[], Any], runs: int = 5) -> float:
    """The least time of an action, in milliseconds."""
    found = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        found.append(time.perf_counter() - started)
    return min(found) * MILLISECONDS
