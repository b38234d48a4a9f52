"""Interrupts of the terminal that are never lost.

Python raises a KeyboardInterrupt wherever the program happens to be, and there
are places that drop it:

- an import. A module in C++ that imports another takes the exception for a module
  that is not there, and goes on; a class body turns it into a RuntimeError.
- a finalizer, or the callback of a weak reference. Nobody can catch what is raised
  there, so Python prints it and goes on.

In these places the signal is sent again until it arrives at another.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["interrupts_arrive"]

PAUSE_SECONDS = 0.01
"""The time until a signal is sent again."""

LONGEST_IMPORT_SECONDS = 5.0
"""An import that takes longer is interrupted after all: it may never end."""


def _send_again() -> None:
    """Sends the signal to the main thread once more, a little later."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None  # it runs

    def send(thread: int = main_thread) -> None:
        time.sleep(PAUSE_SECONDS)
        signal.pthread_kill(thread, signal.SIGINT)  # which ends a sleep, too

    threading.Thread(target=send, daemon=True).start()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _Handler:
    """Raises a KeyboardInterrupt as soon as no import is under way."""

    def __init__(self) -> None:
        self.patience_ends: float | None = None

    def __call__(self, _: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.patience_ends is None:
            self.patience_ends = now + LONGEST_IMPORT_SECONDS
        if _is_importing(frame) and now < self.patience_ends:
            _send_again()
            return
        self.patience_ends = None
        raise KeyboardInterrupt


def _hook(dropped: sys.UnraisableHookArgs) -> None:
    """Of what Python cannot raise: an interrupt comes again, all else is printed as always."""
    if dropped.exc_type is KeyboardInterrupt:
        _send_again()
    else:
        sys.__unraisablehook__(dropped)


@contextlib.contextmanager
def interrupts_arrive() -> Iterator[None]:
    """Within it no interrupt is lost. To be entered in the main thread.

    Interrupts that the program ignores, as those behind a shell's `&`, stay ignored.
    """
    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    raises = handler is signal.default_int_handler
    try:
        sys.unraisablehook = _hook
        if raises:
            signal.signal(signal.SIGINT, _Handler())
        yield
    finally:
        sys.unraisablehook = hook
        if raises:
            signal.signal(signal.SIGINT, handler)
