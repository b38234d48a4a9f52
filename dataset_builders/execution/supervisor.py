"""How a task is done: by a process that may die, hang or be killed.

Compilers crash, hang and eat memory, and neither Triton nor LLVM may be used
by two threads at once. So each thread that works (of this process, or of a
Dask worker) has a task process of its own, and never does a task itself. A
task process starts when it is first needed, and is kept for further tasks.
Tasks and results pass through as bytes.

pebble runs the task processes, and notices deaths. The time limit is one of work: time in
which a task waits for a processor is not counted (`work_clock`).
Each process has a pebble pool of its own, for two reasons. A process that is killed
while it holds the lock of a pool's channel blocks the others of that pool for a
minute. And pebble ends the process alone, not what it has started: to end its
whole group, one must know its id. pebble does not replace a process that dies
between two tasks: that breaks the pool, and another is made.
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
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dataset_builders.execution.task_process import begin, do_task
from verilocc_bench.errors import InputError
from verilocc_bench.work_clock import WorkClock

TaskReplyKind: TypeAlias = Literal["done", "failed", "crashed", "timeout"]

_START_SECONDS = 120.0
_POLL_SECONDS = 0.5
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
    """The fate of a task.

    `done`: `value` is the pickled result. `failed`: `value` is the pickled
    exception and its traceback as text. `crashed` (twice) and `timeout`:
    `reason` says why, in the same words on any machine.
    """

    kind: TaskReplyKind
    value: bytes = b""
    reason: str = ""


class _TaskProcess:
    """One task process, in a pebble pool of its own."""

    def __init__(self) -> None:
        from pebble import ProcessPool

        # A Dask worker is a daemon, which multiprocessing does not let have children.
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        self.folder = tempfile.mkdtemp(prefix="verilocc-bench-")
        self.group: int | None = None
        self.is_ended = False
        self._pool = ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn"))

    def do(self, task: bytes, seconds: float) -> tuple[str, bytes]:
        """The process's answer to a task.

        Raises TimeoutError if it works longer than `seconds`, and OSError or
        RuntimeError if the process dies.
        """
        if self.group is None:
            started = time.monotonic()
            future = self._pool.schedule(begin, (os.getpid(), self.folder))
            try:
                self.group = self._result(
                    future, lambda: time.monotonic() - started, _START_SECONDS
                )
            except TimeoutError:
                raise ChildProcessError("it did not begin") from None  # not the task's fault
        clock = WorkClock(self.group)
        future = self._pool.schedule(do_task, (task,))
        answer: tuple[str, bytes] = self._result(future, clock.seconds, seconds)
        return answer

    def _result(self, future: Future[Any], worked: Callable[[], float], seconds: float) -> Any:
        """The result of a future. Raises TimeoutError when `worked()` exceeds `seconds`."""
        # A pool that is stopped leaves its futures as they are.
        while not wait([future], timeout=_POLL_SECONDS).done:
            if self.is_ended:
                raise ChildProcessError("it was ended")
            if worked() > seconds:
                raise TimeoutError
        return future.result()

    def is_usable(self) -> bool:
        """True if the process can do another task: it lives, as far as pebble has noticed."""
        return bool(self._pool.active)

    def end(self) -> None:
        """Ends the process and all that it has started; another thread may wait for it."""
        self.is_ended = True
        self._pool.stop()
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)

    def close(self) -> None:
        """Ends the process, waits for its end, and removes its files."""
        self.end()
        self._pool.join()
        shutil.rmtree(self.folder, ignore_errors=True)


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
                if process.is_usable():
                    break
                process.close()
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
        process.close()

    def end(self, session: str) -> None:
        with self._lock:
            self._ended.add(session)
            idle = self._idle.pop(session, [])
            for process in self._at_work.get(session, ()):
                process.end()
        for process in idle:
            process.close()

    def close(self) -> None:
        for session in {*self._idle, *self._at_work}:
            self.end(session)

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
    """Has a pickled pair of a function and its argument done; once more if the process dies."""
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
    """The names of the entries that differ, in words; empty if all are the same."""
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
    """Ends the session's task processes in this process, even those at work."""
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
        except (OSError, RuntimeError):  # what pebble raises for a process that has died
            reason = "died twice"
            continue
        finally:
            _sessions.give_back(orders.session, process, usable=usable)
        if kind == "memory":
            reason = "ran out of memory twice"
        else:
            return TaskReply("done" if kind == "done" else "failed", value)
    return TaskReply("crashed", reason=reason)


class LocalPool:
    """Threads of this process, each with a task process of its own.

    The task processes end with all that they have started when this process
    ends, even when it is killed.
    """

    lost_worker: type[Exception] = BrokenExecutor
    """What a task's future raises if its worker has died. A thread does not die."""

    def __init__(self, orders: Orders, jobs: int) -> None:
        self.orders = orders
        self.jobs = jobs
        self._threads = ThreadPoolExecutor(jobs)

    def submit(self, task: bytes) -> Future[TaskReply]:
        """Has a worker do a task."""
        return self._threads.submit(supervise, self.orders, task)

    def width(self) -> int:
        """The most tasks under way: each worker finds its next one waiting."""
        return 2 * self.jobs

    def check(self) -> None:
        """Does nothing: the workers are always there."""

    def close(self, *, at_once: bool) -> None:
        """Ends all workers; `at_once` in the middle of their tasks."""
        if at_once:
            self._threads.shutdown(wait=False, cancel_futures=True)
            end_session(self.orders.session)
        self._threads.shutdown(wait=True, cancel_futures=True)
        end_session(self.orders.session)
