"""Bounds on what a model's own files can ask for: they are written by strangers.

A line of a configuration can ask for a million layers, or for more memory
than there is; a chat template is a program. Neither may take minutes, or the
machine.
"""

from __future__ import annotations

import re
import resource
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from verilocc_bench.errors import InputError
from verilocc_bench.files import MIB

MOST_PARTS = 10_000
"""Of layers, blocks or experts. The largest published models have some hundred of each."""

MOST_BYTES = 64 << 30
"""What a model that is made anew may have in 32-bit parameters and buffers."""

SLACK_BYTES = 1 << 30
"""Buffers of a model, which its weights do not have, and tied weights."""

_PARTS = re.compile(r"layer|block|expert|depth|stage|stack", re.IGNORECASE)


def check_counts(configuration: Mapping[str, Any], place: str, nested: int = 0) -> None:
    """Raises InputError if a configuration asks for too many layers, blocks or experts.

    transformers makes lists of such lengths while it reads a configuration.
    """
    if nested > 4:
        raise InputError(f"{place}: nested too deeply")
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            check_counts(value, f"{place}: {key[:60]}", nested + 1)
        elif _PARTS.search(key):
            count = len(value) if isinstance(value, list | str) else value
            if isinstance(count, int | float) and count > MOST_PARTS:
                raise InputError(f"{place}: {key[:60]}: expected at most {MOST_PARTS:,}")


def check_memory(configuration: Any, most_bytes: int = MOST_BYTES) -> None:
    """Raises InputError if a model of this configuration has more than `most_bytes`.

    It is made without memory for its parameters and buffers, and these are counted.
    """
    import torch
    import transformers

    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(configuration)
    tensors = [*model.parameters(), *model.buffers()]
    needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    if needed > most_bytes:
        raise InputError(
            f"a model of this configuration has {needed // MIB:,} MiB: expected at most "
            f"{most_bytes // MIB:,}"
        )


def check_weights(configuration: Any, place: Path) -> None:
    """Raises InputError if a configuration is of a much larger model than the weights are.

    What the files lack, transformers would make: random numbers, in any amount.
    """
    paths = place.glob("*.safetensors") if place.is_dir() else [place]
    stored = sum(path.stat().st_size for path in paths)
    # The files may have 4 bits for a number that is counted with 32.
    check_memory(configuration, 8 * stored + SLACK_BYTES)


@contextmanager
def limited(seconds: float, memory_bytes: int) -> Iterator[None]:
    """The body ends within a time, with no more than so much memory beyond what is used.

    Raises TimeoutError or MemoryError. Time is limited in the main thread
    alone, where Python handles signals, and where no other timer runs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + memory_bytes
    for bound in (soft, hard):
        limit = limit if bound == resource.RLIM_INFINITY else min(limit, bound)
    timed = threading.current_thread() is threading.main_thread()
    timed = timed and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)

    def end(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"it took more than {seconds:g} s")

    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    before = signal.signal(signal.SIGALRM, end) if timed else None
    try:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
