"""A Dask cluster as a place for tasks.

Its workers need this package and the compilers, and share no folder with this
machine. Before they do anything else, they say what decides a result there; it
must be the same as here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import time
from concurrent.futures import Executor, Future
from typing import Any

from dataset_builders.execution.supervisor import (
    Orders,
    TaskReply,
    ask,
    differences,
    end_session,
    supervise,
)
from verilocc_bench.errors import InputError, MissingExtraError

CONNECT_SECONDS = 5
WORKER_SECONDS = 15.0
"""The wait for a first worker."""
ABSENT_SECONDS = 120.0
"""The longest time that the cluster may be without any worker while it has tasks."""
REFRESH_SECONDS = 2.0


class Cluster:
    """The workers of the scheduler at an address."""

    lost_worker: type[Exception]
    """What a task's future raises when the task has killed too many workers."""

    def __init__(self, orders: Orders, address: str) -> None:
        self.orders = orders
        self.address = address
        try:
            import distributed
        except ModuleNotFoundError as error:
            if error.name not in ("dask", "distributed"):
                raise
            raise MissingExtraError("distributed", "dask", "working on a Dask cluster") from None
        self.lost_worker = distributed.KilledWorker
        self._client = _client(distributed, address)
        try:
            self._threads = self._count_threads()
            self._seen = self._counted = time.monotonic()
            while not self._threads:
                if time.monotonic() > self._seen + WORKER_SECONDS:
                    raise InputError("the scheduler has no workers", source=self.address)
                time.sleep(0.2)
                self._threads = self._count_threads()
            if orders.question is not None:
                answers: dict[str, Any] = self._client.run(ask, self.orders, on_error="return")
                for worker, answer in sorted(answers.items()):
                    reason = self._disagreement(answer)
                    if reason:
                        raise InputError(f"the worker {worker} {reason}", source=self.address)
            self._executor: Executor = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close(timeout=CONNECT_SECONDS)
            raise

    def submit(self, task: bytes) -> Future[TaskReply]:
        """Has a worker do a task."""
        return self._executor.submit(supervise, self.orders, task)

    def width(self) -> int:
        """The most tasks under way: each thread finds its next one waiting."""
        return max(2, 2 * self._threads)

    def check(self) -> None:
        """Raises InputError if there was no worker for ABSENT_SECONDS."""
        now = time.monotonic()
        if now < self._counted + REFRESH_SECONDS:
            return
        self._counted = now
        if self._client.status == "closed":
            raise self._gone()
        if self._client.status == "running":
            with contextlib.suppress(OSError):  # the client connects anew, or is closed
                self._threads = self._count_threads()
        else:
            self._threads = 0
        if self._threads:
            self._seen = now
        elif now > self._seen + ABSENT_SECONDS:
            raise self._gone()

    def close(self, *, at_once: bool) -> None:
        """Ends the task processes on the workers, and leaves the cluster to others."""
        with contextlib.suppress(
            Exception
        ):  # the cluster may be gone: then there is nothing to end
            if at_once:
                self._executor.shutdown(wait=False)
            self._client.run(end_session, self.orders.session, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_SECONDS)

    def _count_threads(self) -> int:
        return sum(self._client.nthreads().values())

    def _disagreement(self, answer: TaskReply | Exception) -> str:
        if isinstance(answer, Exception):
            return f"cannot take part: {type(answer).__name__}: {answer}"
        if answer.kind in ("crashed", "timeout"):
            return f"cannot take part: the process that it was asked with {answer.reason}"
        value = pickle.loads(answer.value)  # noqa: S301  of our own function on our own cluster
        if answer.kind == "failed":
            return f"cannot take part: {type(value[0]).__name__}: {value[0]}"
        different = differences(self.orders.expected or {}, value)
        return f"has another {different} than this machine" if different else ""

    def _gone(self) -> InputError:
        return InputError(
            "the scheduler does not answer any more, or has no workers; what is finished is kept",
            source=self.address,
        )


def _client(distributed: Any, address: str) -> Any:
    # Its log lines repeat the connection errors that this module reports.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        # A client takes long to give up on a wrong address: this bare connection is quicker.
        asyncio.run(_connect(address))
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # noqa: BLE001  an address can be wrong in many ways
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"no Dask scheduler answers at this address: {reason}", source=address
        ) from None


async def _connect(address: str) -> None:
    from distributed.comm import connect
    from distributed.security import Security

    connection = Security().get_connection_args("client")
    comm = await connect(address, timeout=CONNECT_SECONDS, **connection)
    await comm.close()
