"""The side of a task process: how it begins, what it does with a task, and how it ends.

A task process leads a session of its own, so that everything that it starts
can be ended with it. It keeps its temporary files in a folder of its own. When
its supervisor dies, it removes that folder and ends with all that it started.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import traceback
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

from dataset_builders.execution.supervisor import Orders, TaskReply, end_session, supervise

POLL_SECONDS = 0.5


def begin(supervisor: int, folder: str) -> int:
    """Makes this process a task process; returns its id, which is also its group's."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what libraries print does not get among results
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    threading.Thread(target=_watch, args=(supervisor, folder), daemon=True).start()
    return os.getpid()


def do_task(task: bytes) -> tuple[str, bytes]:
    """Does a pickled pair of a function and its argument.

    Returns `done` and the pickled result; `failed` and the pickled exception
    with its traceback as text; or `memory` and nothing.
    """
    try:
        function, item = pickle.loads(task)  # noqa: S301  from our own supervisor
        return "done", pickle.dumps(function(item))
    except MemoryError:
        return "memory", b""
    except SystemExit:
        os._exit(1)
    except Exception as error:  # noqa: BLE001  the supervisor raises it again
        return "failed", _pickled(error)


def _pickled(error: Exception) -> bytes:
    text = traceback.format_exc()
    try:
        data = pickle.dumps((error, text))
        pickle.loads(data)  # noqa: S301  some exceptions can be pickled, but not unpickled
    except Exception:  # noqa: BLE001  anything may go wrong in a class of other people
        data = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text))
    return data


def _watch(supervisor: int, folder: str) -> None:
    """Ends the whole group when the supervisor is gone: nobody would collect its work."""
    while os.getppid() == supervisor:
        time.sleep(POLL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


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
