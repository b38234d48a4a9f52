"""Who is asked for which samples, and when: here, in several processes, or in groups.

Built-in allocators and those in Python answer one request at a time, here or
in several processes. Language models, programs and servers answer groups of
requests. What a ledger has already is not asked again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.allocators import Allocator, SpeaksInTokens
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.asking import WantedSample, settled_samples
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.ledger import LedgerWriter
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.evaluation.prepared import PreparedRow, PreparedRows
from verilocc_bench.evaluation.records import Timing
from verilocc_bench.evaluation.storing import AllocatorRun, Progress, RowSamples, SampleKeeper
from verilocc_bench.model.transcripts import KeepsTranscripts, Transcripts
from verilocc_bench.processes import process_pool
from verilocc_bench.settings.allocator import AllocatorSettings

PREPARED_ROWS = 64
"""How many analysed functions are kept at once, in this process."""

SAMPLES_PER_TASK = 64
"""How many samples of one function are one task of a process."""


def complete_runs(
    runs: Sequence[AllocatorRun],
    jobs: int,
    progress: Progress,
    tell_tokens: Callable[[int], object] = lambda _: None,
) -> PreparedRows:
    """Does all that is missing in the runs. Returns the rows that were made ready last.

    `tell_tokens` is told how many tokens more a language model has said.
    """
    prepared_rows = PreparedRows(PREPARED_ROWS, _code_source(runs))
    for run in runs:
        _judge_again(run, prepared_rows, progress)
    one_by_one = [run for run in runs if run.allocator.group_size is None]
    if jobs > 1 and one_by_one:
        _in_processes(one_by_one, jobs, progress)
    else:
        for each in one_by_one[0].rows if one_by_one else ():
            for run in one_by_one:
                missing = run.missing(each.row)
                if missing:
                    prepared = prepared_rows.get(each.row)
                    keeper, seed = run.keeper(progress), run.configuration.seed
                    run.add(_ask_one_by_one(prepared, missing, run.allocator, seed, keeper))
    for run in runs:
        if run.allocator.group_size is not None:
            if isinstance(run.allocator, SpeaksInTokens):
                run.allocator.tell_tokens = tell_tokens
            try:
                _by_groups(run, run.allocator.group_size, prepared_rows, progress)
            finally:
                run.allocator.close()
    for run in runs:
        run.timing.prepare_seconds += prepared_rows.timing.prepare_seconds / len(runs)
    return prepared_rows


def _judge_again(run: AllocatorRun, prepared_rows: PreparedRows, progress: Progress) -> None:
    if run.ledger is None or all(entry.fresh for entry in run.ledger.entries.values()):
        return
    for each in run.rows:
        if run.missing(each.row):
            found = run.judge_again(prepared_rows.get(each.row))
            run.add(found)
            progress(len(found.samples))


def _ask_one_by_one(
    prepared: PreparedRow,
    indices: Sequence[int],
    allocator: Allocator,
    seed: int,
    keeper: SampleKeeper,
) -> RowSamples:
    """Some samples of one function. Each is settled before the next is asked for."""
    found = RowSamples(prepared.row.id)
    for index in indices:
        for _, judged in settled_samples([(prepared, index)], allocator, seed):
            keeper.keep(found, prepared, judged)
    return found


def _by_groups(
    run: AllocatorRun, group_size: int, prepared_rows: PreparedRows, progress: Progress
) -> None:
    allocator, seed, keeper = run.allocator, run.configuration.seed, run.keeper(progress)
    # A group that was interrupted may have to be asked again whole, to be the same.
    whole = allocator.keeps_groups_whole
    missing = {each.row.id: frozenset(run.missing(each.row)) for each in run.rows}
    for group in _groups(run, group_size):
        wanted = {(row.id, index) for row, index in group if index in missing[row.id]}
        if not wanted:
            continue
        asked: list[WantedSample[PreparedRow]] = [
            (prepared_rows.get(row), index)
            for row, index in group
            if whole or (row.id, index) in wanted
        ]
        found = {prepared.row.id: RowSamples(prepared.row.id) for prepared, _ in asked}
        for prepared, judged in settled_samples(asked, allocator, seed, run.examples):
            row_id = prepared.row.id
            if (row_id, judged.sample.index) in wanted:
                keeper.keep(found[row_id], prepared, judged)
        for each in found.values():
            run.add(each)


def _groups(run: AllocatorRun, size: int) -> Iterator[list[tuple[Row, int]]]:
    """All samples in groups, which are the same whatever is missing; a row's stay together."""
    order = [
        (each.row, index)
        for first in range(0, run.asked, size)
        for each in run.rows
        for index in range(first, min(first + size, run.asked))
    ]
    for start in range(0, len(order), size):
        yield order[start : start + size]


@dataclass(frozen=True, slots=True)
class _RunInProcess:
    """What a process has to know of one run.

    `ledger` has the arguments of LedgerWriter, `transcripts` those of Transcripts.
    """

    model: str
    settings: AllocatorSettings
    seed: int
    ledger: tuple[Path, str, str] | None
    transcripts: tuple[Path, str] | None


_runs: list[_RunInProcess] = []
_allocators: list[Allocator] = []
_writers: list[LedgerWriter | None] = []
_prepared_rows = PreparedRows(4)


def _code_source(runs: Sequence[AllocatorRun]) -> CodeSource:
    """Where the compiled code of the runs is; they have their rows in common."""
    configuration = runs[0].configuration
    return CodeSource(configuration.dataset, configuration.splits, configuration.revision)


def _start(runs: Sequence[_RunInProcess], code: CodeSource, threads: int) -> None:
    # PyTorch reads this when it is loaded. With more threads than processors they would wait
    # for one another.
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    _prepared_rows.code = code
    for run in runs:
        _runs.append(run)
        allocator = resolve_model(run.model, run.settings)
        if isinstance(allocator, KeepsTranscripts) and run.transcripts is not None:
            allocator.transcripts = Transcripts(*run.transcripts, beside=True)
        _allocators.append(allocator)
        _writers.append(None if run.ledger is None else LedgerWriter(*run.ledger))


def _work(place: int, row: Row, indices: Sequence[int]) -> tuple[RowSamples, Timing]:
    timing = _prepared_rows.timing = Timing()
    prepared = _prepared_rows.get(row)
    keeper = SampleKeeper(_writers[place], timing, lambda _: None)
    allocator, seed = _allocators[place], _runs[place].seed
    return _ask_one_by_one(prepared, indices, allocator, seed, keeper), timing


def _transcripts_of(allocator: Allocator) -> tuple[Path, str] | None:
    if isinstance(allocator, KeepsTranscripts) and allocator.transcripts is not None:
        return allocator.transcripts.path, allocator.transcripts.configuration
    return None


def _in_processes(runs: Sequence[AllocatorRun], jobs: int, progress: Progress) -> None:
    told = [
        _RunInProcess(
            run.allocator.name,
            run.allocator.settings,
            run.configuration.seed,
            None
            if run.ledger is None
            else (run.ledger.path, run.ledger.configuration, run.ledger.judge),
            _transcripts_of(run.allocator),
        )
        for run in runs
    ]
    tasks: dict[Future[tuple[RowSamples, Timing]], AllocatorRun] = {}
    try:
        threads = max(1, (os.cpu_count() or 1) // jobs)
        with process_pool(jobs, _start, (told, _code_source(runs), threads)) as pool:
            for each in runs[0].rows:
                for place, run in enumerate(runs):
                    missing = run.missing(each.row)
                    for start in range(0, len(missing), SAMPLES_PER_TASK):
                        indices = missing[start : start + SAMPLES_PER_TASK]
                        tasks[pool.submit(_work, place, each.row, indices)] = run
            waiting = set(tasks)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for task in done:
                    found, timing = task.result()
                    tasks[task].add(found)
                    tasks[task].timing.add(timing)
                    progress(len(found.samples))
    except BrokenProcessPool:
        names = ", ".join(run.allocator.name for run in runs)
        raise InputError(
            f"a process of {names} died; an allocator that can end its process is asked as "
            "command:PROGRAM, where that counts as a failure of its own; a script that asks for "
            "processes does so below `if __name__ == '__main__':`"
        ) from None
    finally:
        for run in runs:
            run.allocator.close()
