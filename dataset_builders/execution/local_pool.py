"""Processes of this machine as a place for tasks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection

from dataset_builders.execution.supervisor import Orders, TaskReply, end_session, supervise

__all__ = ["LocalPool"]


class LocalPool:
    """A pool of processes that end, with all they have started, when this process ends."""

    lost_worker: type[Exception] = BrokenProcessPool
    """What a task's future raises when its worker has died."""

    def __init__(self, orders: Orders, jobs: int) -> None:
        self.orders = orders
        self.jobs = jobs
        self._open()

    def _open(self) -> None:
        # The workers hold one end, this process alone the other: it closes when this
        # process ends, however it ends.
        reader, self._life = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("spawn")
        self._reader = reader
        self._pool = ProcessPoolExecutor(
            self.jobs, context, _start_worker, (reader, self.orders.session)
        )

    def submit(self, task: bytes) -> Future[TaskReply]:
        """Has a worker do a task. Raises `lost_worker` where the pool is broken."""
        return self._pool.submit(supervise, self.orders, task)

    def width(self) -> int:
        """How many tasks may be under way: each worker finds its next one waiting."""
        return 2 * self.jobs

    def check(self) -> None:
        """Raises InputError where nobody works any more; never here."""

    def renew(self) -> None:
        """A pool that has lost a worker takes nothing more: here is another."""
        self.close(at_once=True)
        self._open()

    def close(self, *, at_once: bool) -> None:
        """Ends all workers; `at_once` in the middle of their tasks."""
        if at_once:
            self._life.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._life.close()
        self._reader.close()


def _start_worker(reader: Connection, session: str) -> None:
    # A key that interrupts goes to every process of a terminal; the first one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow, args=(reader, session), daemon=True).start()


def _follow(reader: Connection, session: str) -> None:
    reader.poll(None)
    end_session(session)
    os._exit(1)
