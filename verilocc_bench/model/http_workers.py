"""Work in threads that never hold up the end of the program.

Python waits for the threads of concurrent.futures when the program ends, so a
request that hangs would outlive Ctrl-C by its whole time limit. The threads
here are daemons: they end with the program.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

Result = TypeVar("Result")
Jobs = SimpleQueue[tuple[int, Future[Result]]]


def in_threads(work: Callable[[int], Result], count: int, workers: int) -> list[Result]:
    """`work` of 0 to `count` - 1, at most `workers` at once; the results in order.

    The first exception is raised at once. Work that has not begun by then never
    begins; work under way ends by itself.
    """
    futures: list[Future[Result]] = [Future() for _ in range(count)]
    jobs: Jobs[Result] = SimpleQueue()
    for job in enumerate(futures):
        jobs.put(job)
    stopped = Event()
    try:
        for _ in range(min(workers, count)):
            Thread(target=_serve, args=(work, jobs, stopped), daemon=True).start()
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        stopped.set()
    for future in futures:
        if future.done():
            future.result()
    return [future.result() for future in futures]


def _serve(work: Callable[[int], Result], jobs: Jobs[Result], stopped: Event) -> None:
    while not stopped.is_set():
        try:
            index, future = jobs.get_nowait()
        except Empty:
            return
        try:
            future.set_result(work(index))
        except BaseException as error:  # noqa: BLE001  raised where the results are awaited
            future.set_exception(error)
