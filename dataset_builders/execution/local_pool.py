"""Processes of this machine as a place for tasks."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

from dataset_builders.execution.supervisor import Orders, TaskReply, end_session, supervise


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
