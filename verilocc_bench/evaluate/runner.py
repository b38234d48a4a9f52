"""Asks allocators about every row, judges every answer, and keeps every sample.

Built-in allocators and those in Python are asked here, or in several
processes; those that answer many requests at once (language models, programs,
servers) by groups. With a ledger, what stands in it is not asked again.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from verilocc_bench.allocators import (
    Allocator,
    AllocatorOptions,
    Decoding,
    Example,
    FailureKind,
    Feedback,
    FeedbackKind,
    Request,
    Response,
    answers_batches,
    sees_labels,
)
from verilocc_bench.dataset import Row
from verilocc_bench.evaluate.asking import ask, feedback_of, judge, sample_seed
from verilocc_bench.evaluate.ledger import Ledger, LedgerWriter
from verilocc_bench.evaluate.outcome import measure_outcome
from verilocc_bench.evaluate.prepared import PreparedProblem, PreparedRow, PreparedRows
from verilocc_bench.evaluate.records import Judged, Outcome, RowResult, Sample, Timing

__all__ = ["Ask", "Chunk", "Run", "RunSettings", "SplitRow", "settle"]

_Prepared = TypeVar("_Prepared", bound=PreparedProblem)

Ask = tuple[_Prepared, int]
"""A function and the index of the sample that is wanted."""


@dataclass(frozen=True, slots=True)
class SplitRow:
    """A row, and the split that it comes from."""

    row: Row
    split: str


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run asks for. `calls` is how many attempts a sample may have."""

    samples: int = 1
    seed: int = 0
    calls: int = 1
    feedback: bool = False

    @classmethod
    def make(cls, samples: int, seed: int, options: AllocatorOptions) -> RunSettings:
        """The settings that allocator options ask for."""
        guided = options.decoding is Decoding.GUIDED
        calls = options.verifier_calls if guided else 1
        feedback = guided and options.feedback is not FeedbackKind.RESAMPLE
        return cls(samples, seed, calls, feedback)


@dataclass(slots=True)
class _Attempt(Generic[_Prepared]):
    place: int
    prepared: _Prepared
    index: int
    judged: list[Judged] = field(default_factory=list)
    feedback: tuple[Feedback, ...] = ()


def settle(
    asks: Sequence[Ask[_Prepared]],
    allocator: Allocator,
    settings: RunSettings,
    examples: Callable[[_Prepared], tuple[Example, ...]] | None = None,
) -> Iterator[tuple[_Prepared, Judged]]:
    """Each sample as soon as it is settled: valid, or out of attempts."""
    pending = [_Attempt(place, *each) for place, each in enumerate(asks)]
    while pending:
        requests = [_request(each, allocator, settings, examples) for each in pending]
        again: list[_Attempt[_Prepared]] = []
        for place, response in _respond(allocator, requests):
            attempt = pending[place]
            judged = judge(attempt.prepared.verifier, response, attempt.index)
            attempt.judged.append(judged)
            if _settled(attempt, allocator, settings):
                yield attempt.prepared, _summary(attempt.judged)
            else:
                if settings.feedback:
                    attempt.feedback = (*attempt.feedback, feedback_of(judged))
                again.append(attempt)
        again.sort(key=lambda each: each.place)  # whatever order they came back in
        pending = again


def _settled(attempt: _Attempt[_Prepared], allocator: Allocator, settings: RunSettings) -> bool:
    last = attempt.judged[-1].sample
    spent = len(attempt.judged) >= settings.calls or allocator.deterministic
    return last.valid or spent or not last.counted


def _summary(attempts: Sequence[Judged]) -> Judged:
    """The last attempt, with the time and the figures of all."""
    last = attempts[-1]
    if len(attempts) == 1:
        return last
    details = dict(last.sample.details)
    for name, value in details.items():
        figures = [each.sample.details.get(name) for each in attempts]
        if all(type(figure) is int for figure in figures) and type(value) is int:
            details[name] = sum(figure for figure in figures if figure is not None)
    sample = replace(
        last.sample,
        calls=len(attempts),
        details=details,
        allocate_seconds=sum(each.sample.allocate_seconds for each in attempts),
        verify_seconds=sum(each.sample.verify_seconds for each in attempts),
    )
    return replace(last, sample=sample)


def _request(
    attempt: _Attempt[_Prepared],
    allocator: Allocator,
    settings: RunSettings,
    examples: Callable[[_Prepared], tuple[Example, ...]] | None,
) -> Request:
    prepared = attempt.prepared
    seed = sample_seed(settings.seed, prepared.problem.id, attempt.index, len(attempt.judged))
    foreign = getattr(allocator, "foreign", False)
    problem = prepared.lent_problem if foreign else prepared.problem
    request = Request(problem, attempt.index, seed, feedback=attempt.feedback)
    if sees_labels(allocator):
        answers = prepared.compiler_answer, prepared.alternatives
        return replace(request, label=answers[0], alternatives=answers[1])
    if examples is not None:
        return replace(request, examples=examples(prepared))
    return request


def _respond(allocator: Allocator, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
    """A response to every request, whatever the allocator does."""
    if not answers_batches(allocator):
        for place, request in enumerate(requests):
            yield place, ask(allocator, request)
        return
    waiting = set(range(len(requests)))
    with contextlib.redirect_stdout(sys.stderr):
        for place, response in allocator.respond(requests):
            if place in waiting:
                waiting.remove(place)
                yield place, response
    for place in sorted(waiting):
        yield place, Response(None, FailureKind.CRASHED, "the allocator said nothing")


@dataclass(slots=True)
class Chunk:
    """What became of some samples of one function."""

    row_id: str
    samples: list[Sample] = field(default_factory=list)
    outcome: Outcome | None = None

    def take(
        self, prepared: PreparedRow, judged: Judged, writer: LedgerWriter | None, timing: Timing
    ) -> None:
        """Keeps a sample, in the ledger too; measures it where it is the first valid one."""
        index, outcome = judged.sample.index, None
        if judged.valid and (self.outcome is None or self.outcome.sample > index):
            started = time.perf_counter()
            assert judged.answer is not None
            assert judged.verdict is not None
            outcome = measure_outcome(prepared, judged.answer, judged.verdict, index)
            self.outcome = outcome
            timing.measure_seconds += time.perf_counter() - started
        if writer is not None and judged.sample.counted:
            writer.append(prepared.row, judged, outcome)
        self.samples.append(judged.sample)


class Run:
    """One allocator's run over rows; resumes where its ledger has samples already."""

    def __init__(
        self,
        allocator: Allocator,
        rows: Sequence[SplitRow],
        settings: RunSettings,
        *,
        ledger: Ledger | None = None,
        examples: Callable[[PreparedRow], tuple[Example, ...]] | None = None,
    ) -> None:
        self.allocator, self.rows, self.settings = allocator, rows, settings
        self.ledger, self.examples, self.timing = ledger, examples, Timing()
        # A deterministic allocator is asked once.
        self.asked = 1 if allocator.deterministic else settings.samples
        self._samples: dict[str, dict[int, Sample]] = {each.row.id: {} for each in rows}
        self._outcomes: dict[str, Outcome] = {}
        if ledger is not None:
            self._outcomes = {
                each.row.id: outcome
                for each in rows
                if (outcome := ledger.outcome(each.row)) is not None
            }
            for (row_id, index), entry in ledger.entries.items():
                if row_id in self._samples and index < self.asked and entry.fresh:
                    self._samples[row_id][index] = entry.sample

    @property
    def ledger_path(self) -> Path | None:
        """Where workers write samples to."""
        return None if self.ledger is None else self.ledger.path

    def missing(self, row: Row) -> list[int]:
        """The samples of a row that are to be asked for, or judged anew."""
        present = self._samples[row.id]
        return [index for index in range(self.asked) if index not in present]

    @property
    def missing_count(self) -> int:
        """How many samples there are to do."""
        return sum(len(self.missing(each.row)) for each in self.rows)

    def add(self, chunk: Chunk) -> None:
        """Keeps what became of some samples."""
        samples = self._samples[chunk.row_id]
        for sample in chunk.samples:
            samples.setdefault(sample.index, sample)
        known, new = self._outcomes.get(chunk.row_id), chunk.outcome
        if new is not None and (known is None or new.sample <= known.sample):
            self._outcomes[chunk.row_id] = new

    def judge_again(self, prepared: PreparedRow) -> Chunk:
        """Judges what the ledger has of a row from before the verifier changed."""
        assert self.ledger is not None
        chunk = Chunk(prepared.row.id)
        for index in self.missing(prepared.row):
            entry = self.ledger.entries.get((prepared.row.id, index))
            if entry is None:
                continue
            answer, _ = self.ledger.read(entry)
            old = entry.sample
            response = Response(answer, None, None, old.allocate_seconds, old.details)
            judged = judge(prepared.verifier, response, index)
            judged = replace(judged, sample=replace(judged.sample, calls=old.calls))
            chunk.take(prepared, judged, self.ledger.writer, self.timing)
        return chunk

    def results(self, prepared_rows: PreparedRows) -> list[RowResult]:
        """All samples of every row; those of a deterministic allocator repeated."""
        results = []
        for each in self.rows:
            row = each.row
            found = self._samples[row.id]
            samples = [found[index] for index in range(self.asked)]
            samples += [
                samples[0].repeated(index) for index in range(self.asked, self.settings.samples)
            ]
            outcome = self._outcome(row, samples, prepared_rows)
            results.append(RowResult(row, each.split, tuple(samples), outcome))
        return results

    def _outcome(
        self, row: Row, samples: Sequence[Sample], prepared_rows: PreparedRows
    ) -> Outcome | None:
        first = next((sample.index for sample in samples if sample.valid), None)
        known = self._outcomes.get(row.id)
        if first is None or (known is not None and known.sample == first):
            return None if first is None else known
        # The run was killed between a sample and its measure.
        assert self.ledger is not None
        prepared = prepared_rows.get(row)
        self.ledger.refresh()
        answer, _ = self.ledger.read(self.ledger.entries[row.id, first])
        assert answer is not None
        verdict = prepared.verifier.verify(answer)
        return measure_outcome(prepared, answer, verdict, first)
