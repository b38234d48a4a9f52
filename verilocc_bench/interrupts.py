"""Interrupts of the terminal, and requests to end (SIGTERM), that are never lost.

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

PAUSE_SECONDS = 0.01
"""The time until a signal is sent again."""

LONGEST_IMPORT_SECONDS = 5.0
"""An import that takes longer is interrupted all the same: it may never end."""

SECOND_PAUSE_SECONDS = 1.0
"""The time until a signal is sent again after an interrupt in an import, which may be dropped."""


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _Interrupts:
    """The interrupts of the main thread. `waiting` is True while one is to be sent again."""

    def __init__(self) -> None:
        self.waiting = False
        self._number = signal.SIGINT
        self._patience_ends: float | None = None
        self._is_over = False
        # Never taken by what a signal calls: that would wait forever.
        self._sending = threading.Lock()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raises a KeyboardInterrupt as soon as no import is under way."""
        self._number = signal.Signals(number)
        if _is_importing(frame):
            now = time.monotonic()
            if self._patience_ends is None:
                self._patience_ends = now + LONGEST_IMPORT_SECONDS
            if now < self._patience_ends:
                self._send_again(PAUSE_SECONDS)
                return
            self._send_again(SECOND_PAUSE_SECONDS)
        else:
            self._patience_ends = None
        raise KeyboardInterrupt

    def hook(self, dropped: sys.UnraisableHookArgs) -> None:
        """Of what Python cannot raise: an interrupt comes again, all else is printed as always."""
        if dropped.exc_type is KeyboardInterrupt:
            self._send_again(PAUSE_SECONDS)
        else:
            sys.__unraisablehook__(dropped)

    def _send_again(self, pause: float) -> None:
        main_thread = threading.main_thread().ident
        assert main_thread is not None  # it runs

        def send(thread: int = main_thread) -> None:
            time.sleep(pause)
            with self._sending:
                if not self._is_over:
                    self.waiting = False
                    signal.pthread_kill(thread, self._number)  # which ends a sleep, too

        self.waiting = True
        threading.Thread(target=send, daemon=True).start()

    def end(self) -> None:
        """Sends nothing from now on."""
        with self._sending:
            self._is_over = True


@contextlib.contextmanager
def interrupts_arrive() -> Iterator[None]:
    """Loses no interrupt while it lasts. The main thread enters it.

    An interrupt that cannot be raised until its end is raised there. SIGTERM, by which
    clusters end a job, counts as one. If the program ignores a signal, as interrupts behind
    a shell's `&`, it stays ignored.
    """
    interrupts = _Interrupts()
    hook = sys.unraisablehook
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ends = [n for n, h in before.items() if h in (signal.default_int_handler, signal.SIG_DFL)]
    try:
        sys.unraisablehook = interrupts.hook
        for number in ends:
            signal.signal(number, interrupts.handle)
        yield
        interrupts.end()
        if interrupts.waiting:
            raise KeyboardInterrupt
    finally:
        interrupts.end()
        sys.unraisablehook = hook
        for number in ends:
            signal.signal(number, before[number])
