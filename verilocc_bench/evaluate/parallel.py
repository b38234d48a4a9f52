"""Runs to their end: rows one after the other, or shared among processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.allocators import Allocator, AllocatorOptions, BatchAllocator, answers_batches
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.ledger import LedgerWriter
from verilocc_bench.evaluate.models import resolve_model
from verilocc_bench.evaluate.prepared import PreparedRow, PreparedRows
from verilocc_bench.evaluate.records import Judged, Timing
from verilocc_bench.evaluate.runner import Ask, Chunk, Run, RunSettings, settle
from verilocc_bench.processes import process_pool

__all__ = ["complete_runs"]

PREPARED_ROWS = 64
"""How many analysed functions are kept at once, in this process."""

CHUNK = 64
"""How many samples of one function are a process's work."""

Progress = Callable[[int], None]
"""Is told how many samples more are done."""


def complete_runs(
    runs: Sequence[Run], options: AllocatorOptions, jobs: int, progress: Progress
) -> PreparedRows:
    """Does all that is missing in the runs. Gives back the rows that were made ready last."""
    prepared_rows = PreparedRows(PREPARED_ROWS)
    for run in runs:
        _judge_again(run, prepared_rows, progress)
    alone = [run for run in runs if not answers_batches(run.allocator)]
    if jobs > 1 and alone:
        _in_processes(alone, options, jobs, progress)
    else:
        _here(alone, prepared_rows, progress)
    for run in runs:
        if answers_batches(run.allocator):
            try:
                _by_groups(run, run.allocator, prepared_rows, progress)
            finally:
                run.allocator.close()
    for run in runs:
        run.timing.prepare_seconds += prepared_rows.timing.prepare_seconds / len(runs)
    return prepared_rows


def _judge_again(run: Run, prepared_rows: PreparedRows, progress: Progress) -> None:
    if run.ledger is None or all(entry.fresh for entry in run.ledger.entries.values()):
        return
    for each in run.rows:
        if run.missing(each.row):
            chunk = run.judge_again(prepared_rows.get(each.row))
            run.add(chunk)
            progress(len(chunk.samples))


def _here(runs: Sequence[Run], prepared_rows: PreparedRows, progress: Progress) -> None:
    """Row after row, so that all allocators share what is computed about it."""
    for each in runs[0].rows if runs else ():
        for run in runs:
            missing = run.missing(each.row)
            if missing:
                prepared = prepared_rows.get(each.row)
                sink = _sink(run, progress)
                run.add(_chunk(prepared, missing, run.allocator, run.settings, sink))


@dataclass(frozen=True, slots=True)
class _Sink:
    """Where samples of a run go."""

    writer: LedgerWriter | None
    timing: Timing
    progress: Progress

    def take(self, chunk: Chunk, prepared: PreparedRow, judged: Judged) -> None:
        """Keeps a sample that is settled."""
        chunk.take(prepared, judged, self.writer, self.timing)
        self.progress(1)


def _sink(run: Run, progress: Progress) -> _Sink:
    return _Sink(None if run.ledger is None else run.ledger.writer, run.timing, progress)


def _chunk(
    prepared: PreparedRow,
    indices: Sequence[int],
    allocator: Allocator,
    settings: RunSettings,
    sink: _Sink,
) -> Chunk:
    chunk = Chunk(prepared.row.id)
    # One after the other: an attempt at one sample is no other's business.
    for index in indices:
        for _, judged in settle([(prepared, index)], allocator, settings):
            sink.take(chunk, prepared, judged)
    return chunk


def _by_groups(
    run: Run, allocator: BatchAllocator, prepared_rows: PreparedRows, progress: Progress
) -> None:
    sink = _sink(run, progress)
    # A language model's numbers depend, in their last bits, on what else is in
    # its batch: a group that was interrupted is asked again whole.
    whole = bool(getattr(allocator, "group_matters", False))
    missing = {each.row.id: frozenset(run.missing(each.row)) for each in run.rows}
    for group in _groups(run, allocator.group_size):
        wanted = {(row.id, index) for row, index in group if index in missing[row.id]}
        if not wanted:
            continue
        asks: list[Ask[PreparedRow]] = [
            (prepared_rows.get(row), index)
            for row, index in group
            if whole or (row.id, index) in wanted
        ]
        chunks = {prepared.row.id: Chunk(prepared.row.id) for prepared, _ in asks}
        for prepared, judged in settle(asks, allocator, run.settings, run.examples):
            row_id = prepared.row.id
            if (row_id, judged.sample.index) in wanted:
                sink.take(chunks[row_id], prepared, judged)
        for chunk in chunks.values():
            run.add(chunk)


def _groups(run: Run, size: int) -> Iterator[list[tuple[Row, int]]]:
    """All samples in groups that are the same whatever is missing; of one row where that fits."""
    order = [
        (each.row, index)
        for first in range(0, run.asked, size)
        for each in run.rows
        for index in range(first, min(first + size, run.asked))
    ]
    for start in range(0, len(order), size):
        yield order[start : start + size]


@dataclass(frozen=True, slots=True)
class _Worker:
    """What a process has to know of one run."""

    model: str
    settings: RunSettings
    ledger: tuple[Path, str, str] | None


_allocators: list[Allocator] = []
_writers: list[LedgerWriter | None] = []
_workers: list[_Worker] = []
_prepared_rows = PreparedRows(4)


def _start(workers: Sequence[_Worker], options: AllocatorOptions) -> None:
    for worker in workers:
        _workers.append(worker)
        _allocators.append(resolve_model(worker.model, options))
        _writers.append(None if worker.ledger is None else LedgerWriter(*worker.ledger))


def _work(place: int, row: Row, indices: Sequence[int]) -> tuple[Chunk, Timing]:
    timing = _prepared_rows.timing = Timing()
    prepared = _prepared_rows.get(row)
    allocator, settings = _allocators[place], _workers[place].settings
    sink = _Sink(_writers[place], timing, _nothing)
    chunk = _chunk(prepared, indices, allocator, settings, sink)
    return chunk, timing


def _nothing(_: int) -> None:
    return


def _in_processes(
    runs: Sequence[Run], options: AllocatorOptions, jobs: int, progress: Progress
) -> None:
    workers = [
        _Worker(
            run.allocator.name,
            run.settings,
            None
            if run.ledger is None
            else (run.ledger.path, run.ledger.configuration, run.ledger.judge),
        )
        for run in runs
    ]
    tasks: dict[Future[tuple[Chunk, Timing]], Run] = {}
    try:
        with process_pool(jobs, _start, (workers, options)) as pool:
            for each in runs[0].rows:
                for place, run in enumerate(runs):
                    missing = run.missing(each.row)
                    for start in range(0, len(missing), CHUNK):
                        indices = missing[start : start + CHUNK]
                        tasks[pool.submit(_work, place, each.row, indices)] = run
            waiting = set(tasks)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for task in done:
                    chunk, timing = task.result()
                    tasks[task].add(chunk)
                    tasks[task].timing.add(timing)
                    progress(len(chunk.samples))
    except BrokenProcessPool:
        names = ", ".join(run.allocator.name for run in runs)
        raise InputError(
            f"a process of {names} died; an allocator that can end its process is asked as "
            "command:PROGRAM, where that counts as a failure of its own"
        ) from None
