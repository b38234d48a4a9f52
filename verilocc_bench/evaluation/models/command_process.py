"""One run of a program that answers a line with a line.

The program runs in a session of its own, so that it and its children can be
killed together. It dies with the thread that started it (on Linux), and its
standard input ends when this process ends. All pipes are non-blocking: a
program that does not read, does not write, or writes without end costs at most
its time limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO

from verilocc_bench.allocators import FailureKind
from verilocc_bench.processes import LAUNCHER

LINE_LIMIT_BYTES = 32 << 20
"""As for an answer in a file."""

ERROR_TAIL_BYTES = 4096
ERROR_LINE_LENGTH = 160
CHUNK_BYTES = 1 << 16
READS_AT_THE_END = 64
"""Of errors: another process may hold the pipe, and write without end."""
SLICE_SECONDS = 0.1
"""How long a wait may last before the process itself is looked at."""
SHORTEST_SLICE_SECONDS = 0.0001
LONGEST_SLICE_SECONDS = 0.01
END_SECONDS = 1.0
"""How long a program may take to end once there is nothing left to ask."""


@dataclass(frozen=True, slots=True)
class ProgramReply:
    """A line of the program, without its end; or why it is missing."""

    line: bytes | None
    failure: FailureKind | None = None
    message: str | None = None


class ProgramProcess:
    """A started program. Only the thread that made it may use it.

    Raises OSError if no process can be made. A program that cannot be run
    is a process that ends at once.
    """

    def __init__(self, argv: Sequence[str], memory_limit_mib: int | None) -> None:
        memory_bytes = (memory_limit_mib or 0) << 20
        launcher = [sys.executable, "-I", "-S", LAUNCHER, str(os.getpid()), str(memory_bytes)]
        self._selector = selectors.DefaultSelector()
        try:
            self._process = subprocess.Popen(
                [*launcher, *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._selector.close()
            raise
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._stderr = self._process.stderr
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (self._stdout, self._stderr):
            self._selector.register(pipe, selectors.EVENT_READ)
        self._pending = memoryview(b"")
        self._output = bytearray()
        self._line_end = -1
        self._is_asked = False
        self._input_is_closed = False
        self._errors = bytearray()
        self._status: int | None = None
        self.answered = 0
        """How many lines it was asked for and gave."""

    def is_ready(self) -> bool:
        """True if it runs, and has written nothing that it was not asked for."""
        return not self._output and self._is_open(self._stdout) and not self._has_ended()

    def wrote_unasked(self) -> bool:
        """True if it has written more than it was asked for."""
        return bool(self._output)

    def exchange(
        self, line: bytes, limit_seconds: float, cancelled: threading.Event
    ) -> ProgramReply:
        """Sends a JSON object as a line, given without the line's end, and waits for a line.

        After a reply without a line the program is dead.
        """
        deadline = time.monotonic() + limit_seconds
        reply = self._send(line, deadline, cancelled) or self._receive(line, deadline, cancelled)
        if reply.failure is FailureKind.TIMEOUT:
            reply = replace(reply, message=f"no answer in {limit_seconds:g} s")
        if reply.line is None:
            self.kill()
        return reply

    def _send(
        self, line: bytes, deadline: float, cancelled: threading.Event
    ) -> ProgramReply | None:
        """Sends a line without the last character of its object, and waits until it is read.

        A program that reads on has finished its earlier answers, so whatever it
        has written by then was not asked for. None if it has written nothing.
        """
        self._pending = memoryview(line)[:-1]
        self._is_asked = False
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        pause = SHORTEST_SLICE_SECONDS
        while True:
            is_read = self._has_read_all()
            while self._read(self._stdout) and self._line_end < 0 and not self._is_too_long():
                pass
            if self._output:
                early = "something was written before the request was read"
                return ProgramReply(None, FailureKind.UNPARSABLE, early)
            if (stop := self._stopped(deadline, cancelled)) is not None:
                return stop
            if is_read:
                return None
            if not self._pending:  # nothing tells when a pipe becomes empty
                pause = min(2 * pause, LONGEST_SLICE_SECONDS)
            self._transfer(min(pause if not self._pending else SLICE_SECONDS, _rest(deadline)))

    def _receive(self, line: bytes, deadline: float, cancelled: threading.Event) -> ProgramReply:
        """Ends the line that was sent, and waits for the program's."""
        self._pending = memoryview(line[-1:] + b"\n")
        self._is_asked = True
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        while (found := self._take_line()) is None:
            if self._is_too_long():
                limit = f"a line of more than {LINE_LIMIT_BYTES >> 20} MiB"
                return ProgramReply(None, FailureKind.UNPARSABLE, limit)
            if (stop := self._stopped(deadline, cancelled)) is not None:
                return stop
            self._transfer(min(SLICE_SECONDS, _rest(deadline)))
        return ProgramReply(found)

    def _stopped(self, deadline: float, cancelled: threading.Event) -> ProgramReply | None:
        """Why waiting is over; None if it goes on."""
        if cancelled.is_set():
            return ProgramReply(None, FailureKind.INFRASTRUCTURE, "the run was ended")
        if self._input_is_closed or not self._is_open(self._stdout) or self._has_ended():
            return self._last_words()
        if not _rest(deadline):
            return ProgramReply(None, FailureKind.TIMEOUT)
        return None

    def _is_too_long(self) -> bool:
        return len(self._output) > LINE_LIMIT_BYTES

    def kill(self) -> None:
        """Kills the program and its children, and closes the pipes. May be called again."""
        if self._status is None:
            # Its number stays taken until it is waited for: this hits no other group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._status = self._process.wait()
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def end(self) -> None:
        """Ends its standard input, waits a moment for it to end, and kills what is left."""
        if self._status is None:
            self._stdin.close()
            self._await_end(END_SECONDS)
        self.kill()

    def _take_line(self) -> bytes | None:
        if self._line_end < 0 or self._pending or not self._is_asked:
            return None
        line = bytes(self._output[: self._line_end])
        del self._output[: self._line_end + 1]
        self._line_end = -1  # the rest was not asked for, and is never taken
        self.answered += 1
        return line

    def _has_read_all(self) -> bool:
        """True if all that was sent has been read."""
        if self._pending:
            return False
        try:
            unread = fcntl.ioctl(self._stdin.fileno(), termios.FIONREAD, bytes(4))
        except OSError:  # a system that does not tell
            return True
        return not any(unread)

    def _transfer(self, seconds: float) -> None:
        """Moves what can be moved through the pipes; waits for a limited time."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._stdin:
                self._write()
            elif key.fileobj is self._stdout:
                self._read(self._stdout)
            else:
                self._read(self._stderr)

    def _write(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._pending[:CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:
            self._input_is_closed = True
            written = len(self._pending)
        self._pending = self._pending[written:]
        if not self._pending:
            self._selector.unregister(self._stdin)

    def _is_open(self, pipe: IO[bytes]) -> bool:
        """True if the pipe is still watched."""
        return not pipe.closed and pipe in self._selector.get_map()

    def _read(self, pipe: IO[bytes]) -> bool:
        """Reads once; False if nothing is there to read."""
        if not self._is_open(pipe):
            return False
        try:
            data = os.read(pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(pipe)
            return False
        if pipe is self._stderr:
            self._errors = (self._errors + data)[-ERROR_TAIL_BYTES:]
            return True
        if self._line_end < 0 and (end := data.find(b"\n")) >= 0:
            self._line_end = len(self._output) + end
        self._output += data
        return True

    def _has_ended(self) -> bool:
        """True if the process has ended. It is not reaped, so that its number stays taken."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, flags) is not None
        except ChildProcessError:  # this process has its children waited for by the system
            return True

    def _await_end(self, seconds: float) -> bool:
        """True if it ends by itself in this time. Its errors are read meanwhile."""
        deadline = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() > deadline:
                return False
            self._read(self._stderr)
            time.sleep(0.005)
        return True

    def _last_words(self) -> ProgramReply:
        """The last thing that an ended program said: a line, or why it ended."""
        ended = self._await_end(END_SECONDS)
        while self._line_end < 0 and not self._is_too_long() and self._read(self._stdout):
            pass
        if (line := self._take_line()) is not None:
            return ProgramReply(line)
        for _ in range(READS_AT_THE_END):
            if not self._read(self._stderr):
                break
        self.kill()
        pipe = "input" if self._input_is_closed else "output"
        cause = _describe(self._status) if ended else f"it closed its standard {pipe}"
        within = "within a line" if self._output else "without an answer"
        lines = self._errors.decode(errors="replace").split("\n")
        last = next((line.strip()[:ERROR_LINE_LENGTH] for line in lines[::-1] if line.strip()), "")
        return ProgramReply(
            None, FailureKind.CRASHED, f"{cause}, {within}" + (f": {last}" if last else "")
        )


def _rest(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _describe(status: int | None) -> str:
    if status is not None and status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    return f"exit status {status}"
