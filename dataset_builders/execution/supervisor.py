"""What a worker does with a task: it has it done by a process that may die or be ended.

Compilers crash, hang and eat memory, and neither Triton nor LLVM may be used
by two threads at once. So a worker (a process of a pool, or a thread of a Dask
worker, daemonic or not) never runs a task itself: each thread that is at work
has a task process of its own, which is started when first needed and kept for
the tasks to come. Tasks and results pass through as bytes.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from verilocc_bench.errors import InputError

__all__ = ["Orders", "TaskReply", "TaskReplyKind", "ask", "differences", "end_session", "supervise"]

TaskReplyKind: TypeAlias = Literal["done", "failed", "crashed", "timeout"]

_START_SECONDS = 120.0
_END_SECONDS = 5.0
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Orders:
    """What holds for all tasks of one run.

    Task processes belong to one `session`. `question` is a task whose answer
    must be `expected` before a worker does anything else; None asks nothing.
    """

    session: str
    time_limit_seconds: float
    question: bytes | None = None
    expected: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TaskReply:
    """What became of a task.

    `done`: `value` is the pickled result. `failed`: `value` is the pickled
    exception and its traceback as text. `crashed` (twice) and `timeout`: there
    is a reason, the same on any machine.
    """

    kind: TaskReplyKind
    value: bytes = b""
    reason: str = ""


class _TaskProcess:
    """One process of dataset_builders.execution.task_process."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="verilocc-bench-")
        self.connection, theirs = multiprocessing.Pipe()
        descriptor = theirs.fileno()
        module = "dataset_builders.execution.task_process"
        arguments = [str(descriptor), str(os.getpid()), self.folder]
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _START.format(sys.path, module), *arguments],
                    pass_fds=[descriptor],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # nothing that a library prints gets among results
                    start_new_session=True,
                    env={**os.environ, "TMPDIR": self.folder},
                )
        except BaseException:
            self.connection.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.is_ready = False

    def do(self, task: bytes, seconds: float) -> tuple[str, bytes]:
        """The process's answer. TimeoutError where it takes longer, EOFError where it dies."""
        if not self.is_ready:
            if not self.connection.poll(_START_SECONDS):
                raise EOFError  # it is not the task's fault
            self.is_ready = self.connection.recv() == "ready"
        self.connection.send_bytes(task)
        if not self.connection.poll(seconds):
            raise TimeoutError
        kind, value = self.connection.recv()
        return kind, value

    def close(self) -> None:
        """Lets an idle process end by itself."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Ends the process with everything that it has started, and removes its files."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


# It imports from where the supervisor does, whatever either was started as.
_START = "import sys; sys.path[:] = {!r}; import runpy; runpy.run_module({!r}, run_name='__main__')"


class _Sessions:
    """The task processes of this process, by session; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[_TaskProcess]] = {}
        self._at_work: dict[str, list[_TaskProcess]] = {}
        self._agreed: set[str] = set()
        self._ended: set[str] = set()

    def take(self, session: str) -> _TaskProcess:
        with self._lock:
            idle = self._idle.setdefault(session, [])
            while idle:
                process = idle.pop()
                if process.process.poll() is None:
                    break
                process.kill()
            else:
                process = _TaskProcess()
            self._at_work.setdefault(session, []).append(process)
        return process

    def give_back(self, session: str, process: _TaskProcess, *, usable: bool) -> None:
        with self._lock:
            self._at_work[session].remove(process)
            if usable and session not in self._ended:
                self._idle[session].append(process)
                return
        process.kill()

    def end(self, session: str) -> None:
        with self._lock:
            self._ended.add(session)
            idle = self._idle.pop(session, [])
            at_work = list(self._at_work.get(session, ()))
            for process in at_work:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.process.pid, signal.SIGKILL)
        for process in idle:
            process.kill()

    def close(self) -> None:
        with self._lock:
            idle = [process for processes in self._idle.values() for process in processes]
            at_work = [process for processes in self._at_work.values() for process in processes]
        for process in at_work:
            process.kill()
        for process in idle:
            process.close()

    def has_ended(self, session: str) -> bool:
        return session in self._ended

    def has_agreed(self, session: str) -> bool:
        return session in self._agreed

    def agree(self, session: str) -> None:
        with self._lock:
            self._agreed.add(session)


_sessions = _Sessions()
atexit.register(_sessions.close)


def supervise(orders: Orders, task: bytes) -> TaskReply:
    """Has a pickled pair of a function and its argument done, once more if that dies."""
    if orders.question is not None and not _sessions.has_agreed(orders.session):
        reply = ask(orders)
        if reply.kind != "done":
            return reply
        different = differences(orders.expected or {}, pickle.loads(reply.value))  # noqa: S301  ours
        if different:
            error = InputError(
                f"the worker on {socket.gethostname()} has another {different} than this machine"
            )
            return TaskReply("failed", pickle.dumps((error, "")))
        _sessions.agree(orders.session)
    return _attempt(orders, task)


def ask(orders: Orders) -> TaskReply:
    """The answer of this worker to the orders' question."""
    assert orders.question is not None
    return _attempt(orders, orders.question)


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Which entries are not the same, in words; empty where all are."""
    names: list[str] = []
    for name in sorted({*expected, *found}):
        ours, theirs = expected.get(name), found.get(name)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            inner = sorted({*ours, *theirs})
            names += [f"{name} of {key}" for key in inner if ours.get(key) != theirs.get(key)]
        elif ours != theirs:
            names.append(name)
    return ", ".join(names)


def end_session(session: str) -> None:
    """Ends the session's task processes in this process, whatever they are doing."""
    _sessions.end(session)


def _attempt(orders: Orders, task: bytes) -> TaskReply:
    reason = ""
    for _ in range(_ATTEMPTS):
        if _sessions.has_ended(orders.session):
            return TaskReply("crashed", reason="was ended")
        process = _sessions.take(orders.session)
        usable = False
        try:
            kind, value = process.do(task, orders.time_limit_seconds)
            usable = kind != "memory"
        except TimeoutError:
            return TaskReply(
                "timeout", reason=f"was not done after {orders.time_limit_seconds:g} seconds"
            )
        except (EOFError, OSError):
            reason = "died twice"
            continue
        finally:
            _sessions.give_back(orders.session, process, usable=usable)
        if kind == "memory":
            reason = "ran out of memory twice"
        else:
            return TaskReply("done" if kind == "done" else "failed", value)
    return TaskReply("crashed", reason=reason)
