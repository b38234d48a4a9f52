"""Functions of many items, computed by processes of this machine or of a Dask cluster.

The rules are the same in both places. If a task's process dies or runs out of
memory, the task is tried once more. After the second time, or past the time
limit, its item is lost, and the others go on.

A worker of a cluster can die, too, and nobody knows which of its items did it.
So the items that were under way are tried again one at a time. An item is lost
when its worker has died twice while the item was alone: it may have had no part
in the first death.
"""

from __future__ import annotations

import pickle
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from dataset_builders.execution.cluster import Cluster
from dataset_builders.execution.storage import is_storage_error, storage_error
from dataset_builders.execution.supervisor import LocalPool, Orders, TaskReply
from verilocc_bench.errors import InputError, VerilocError

DEFAULT_TIME_LIMIT_SECONDS = 600.0
MOST_FAILURES = 5
"""After this many items whose function raised an exception, no more items are begun."""

_PATIENCE_SECONDS = 2.0

Item = TypeVar("Item")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class Execution:
    """Where tasks run: in `jobs` processes here, or on the Dask cluster of a `scheduler`.

    `time_limit_seconds` is for each item; time in which it waits for a processor is not
    counted. `agreement` returns what decides the
    results (versions, flags): it must return the same on the workers of a
    cluster as in this process.
    """

    jobs: int = 1
    scheduler: str | None = None
    time_limit_seconds: float = DEFAULT_TIME_LIMIT_SECONDS
    agreement: Callable[[], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """An item without a result: its process died twice, or took too long.

    `reason` continues the words "the process": `died twice`, `ran out of memory
    twice`, `was not done after 600 seconds`. It is the same on any machine.
    """

    kind: Literal["crashed", "timeout"]
    reason: str


class _TaskRunner(Protocol):
    lost_worker: type[Exception]

    def submit(self, task: bytes) -> Future[TaskReply]: ...
    def width(self) -> int: ...
    def check(self) -> None: ...
    def close(self, *, at_once: bool) -> None: ...


def run_tasks(
    function: Callable[[Item], Output], items: Iterable[Item], execution: Execution
) -> Generator[tuple[Item, Output | Lost], None, None]:
    """Yields each item with its result, in the order in which they finish.

    The function must belong to a module (or be a partial of such a one); items
    and results are pickled. Items are taken as they are needed, so there may be
    any number of them. Close the iterator (`contextlib.closing`) if you do not
    read it to its end: then all workers end at once.

    An exception of the function is raised at the end, when the items under way
    are done. After MOST_FAILURES exceptions, or the first that is a VerilocError
    or a full disk, no more items are begun. Raises InputError if no scheduler
    answers, or if its workers have another version.
    """
    with _place(execution) as place:
        yield from _TaskRun(function, iter(items), place).outcomes()


@contextmanager
def _place(execution: Execution) -> Iterator[_TaskRunner]:
    place: _TaskRunner
    session, limit = uuid.uuid4().hex, execution.time_limit_seconds
    if execution.scheduler is None:
        place = LocalPool(Orders(session, limit), execution.jobs)
    else:
        question = expected = None
        if execution.agreement is not None:
            question = pickle.dumps((_answer, execution.agreement))
            expected = execution.agreement()
        place = Cluster(Orders(session, limit, question, expected), execution.scheduler)
    try:
        yield place
    except BaseException:
        place.close(at_once=True)
        raise
    place.close(at_once=False)


def _answer(agreement: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    return agreement()


class _TaskRun(Generic[Item, Output]):
    """The state of one call of run_tasks."""

    def __init__(
        self, function: Callable[[Item], Output], items: Iterator[Item], place: _TaskRunner
    ) -> None:
        self.function = function
        self.items = items
        self.place = place
        self.under_way: dict[Future[TaskReply], Item] = {}
        self.suspects: deque[Item] = deque()
        self.is_alone = False
        self.died_alone: Item | None = None
        self.failures: list[Exception] = []
        self.is_over = False

    def outcomes(self) -> Iterator[tuple[Item, Output | Lost]]:
        while self._begin():
            done, _ = wait(self.under_way, _PATIENCE_SECONDS, FIRST_COMPLETED)
            self.place.check()
            for future in done:
                item = self.under_way.pop(future)
                yield from self._settle(item, future)
        if self.failures:
            raise self.failures[0]

    def _begin(self) -> bool:
        """Submits tasks until all workers are busy. False if nothing is under way or left to do."""
        if self.suspects and not self.under_way:
            self._submit(self.suspects.popleft(), alone=True)
        while not (self.suspects or self.is_alone or self.is_over):
            if len(self.under_way) >= self.place.width():
                break
            try:
                item = next(self.items)
            except StopIteration:
                self.is_over = True
            else:
                self._submit(item, alone=False)
        return bool(self.under_way or self.suspects)

    def _submit(self, item: Item, *, alone: bool) -> None:
        task = pickle.dumps((self.function, item))
        try:
            self.under_way[self.place.submit(task)] = item
        except self.place.lost_worker:
            # A worker has just died. The futures under way will raise the same.
            self.suspects.append(item)
        else:
            self.is_alone = alone

    def _settle(
        self, item: Item, future: Future[TaskReply]
    ) -> Iterator[tuple[Item, Output | Lost]]:
        was_alone, self.is_alone = self.is_alone, False
        died_before, self.died_alone = self.died_alone is item, None
        try:
            reply = future.result()
        except self.place.lost_worker:
            if was_alone and died_before:
                yield item, Lost("crashed", "died twice")
            elif was_alone:
                self.died_alone = item
                self.suspects.appendleft(item)
            else:
                self.suspects.append(item)
        except CancelledError:
            self._fail(item, InputError("the cluster has dropped the work; what is done is kept"))
        except Exception as error:  # noqa: BLE001  raised again when the rest is done
            self._fail(item, error)
        else:
            match reply.kind:
                case "done":
                    yield item, pickle.loads(reply.value)  # noqa: S301  of our own workers
                case "failed":
                    self._fail(item, *pickle.loads(reply.value))  # noqa: S301  of our own workers
                case "crashed" | "timeout":
                    yield item, Lost(reply.kind, reply.reason)

    def _fail(self, item: Item, error: Exception, trace: str = "") -> None:
        if is_storage_error(error):
            assert isinstance(error, OSError)
            error = storage_error(error, "a worker's temporary folder")
        elif not isinstance(error, VerilocError):
            error.add_note(f"while working on {str(item)[:500]}\n{trace}")
        self.failures.append(error)
        if isinstance(error, VerilocError) or len(self.failures) >= MOST_FAILURES:
            self.is_over = True
            self.suspects.clear()
