"""Step three: keeps every sample, in memory and in the ledger, and measures the first valid one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from verilocc_bench.allocators import Allocator, Example, PromptIdentity, Response
from verilocc_bench.dataset import Row
from verilocc_bench.evaluation.chosen_rows import SplitRow
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.ledger import Ledger, LedgerWriter
from verilocc_bench.evaluation.outcome import measure_outcome
from verilocc_bench.evaluation.prepared import PreparedRow, PreparedRows
from verilocc_bench.evaluation.records import Judged, Outcome, RowResult, Sample, Timing

Progress = Callable[[int], object]
"""Is told how many samples more are done."""


@dataclass(slots=True)
class RowSamples:
    """Some samples of one function, and the quality of the first valid one among them."""

    row_id: str
    samples: list[Sample] = field(default_factory=list)
    outcome: Outcome | None = None

    def keep(
        self, prepared: PreparedRow, judged: Judged, writer: LedgerWriter | None, timing: Timing
    ) -> None:
        """Keeps a sample, in the ledger too. Measures it if it is the first valid one."""
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


@dataclass(frozen=True, slots=True)
class SampleKeeper:
    """Where samples go besides: a ledger, clocks, and whoever counts them."""

    writer: LedgerWriter | None
    timing: Timing
    progress: Progress

    def keep(self, found: RowSamples, prepared: PreparedRow, judged: Judged) -> None:
        """Keeps a sample that is settled."""
        found.keep(prepared, judged, self.writer, self.timing)
        self.progress(1)


class AllocatorRun:
    """One allocator's samples of all rows; resumes if its ledger has some already.

    `prompt` is the allocator's, with the source of its examples.
    `examples` chooses these for each function.
    """

    def __init__(
        self,
        configuration: RunConfiguration,
        allocator: Allocator,
        rows: Sequence[SplitRow],
        *,
        prompt: PromptIdentity | None = None,
        examples: Callable[[PreparedRow], tuple[Example, ...]] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.configuration, self.allocator, self.rows = configuration, allocator, rows
        self.prompt, self.examples, self.ledger = prompt, examples, ledger
        self.timing = Timing()
        # A deterministic allocator is asked once.
        self.asked = 1 if allocator.deterministic else configuration.samples
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

    def missing(self, row: Row) -> list[int]:
        """The samples of a row that are to be asked for, or judged anew."""
        present = self._samples[row.id]
        return [index for index in range(self.asked) if index not in present]

    @property
    def missing_count(self) -> int:
        """How many samples there are to do."""
        return sum(len(self.missing(each.row)) for each in self.rows)

    @property
    def kept_count(self) -> int:
        """How many samples the ledger has, of those that are asked for."""
        if self.ledger is None:
            return 0
        self.ledger.refresh()
        return sum(
            row_id in self._samples and index < self.asked for row_id, index in self.ledger.entries
        )

    def add(self, found: RowSamples) -> None:
        """Takes over some samples of a row."""
        samples = self._samples[found.row_id]
        for sample in found.samples:
            samples.setdefault(sample.index, sample)
        known, new = self._outcomes.get(found.row_id), found.outcome
        if new is not None and (known is None or new.sample <= known.sample):
            self._outcomes[found.row_id] = new

    def keeper(self, progress: Progress) -> SampleKeeper:
        """Keeps samples of this run that are settled in this process."""
        writer = None if self.ledger is None else self.ledger.writer
        return SampleKeeper(writer, self.timing, progress)

    def judge_again(self, prepared: PreparedRow) -> RowSamples:
        """Judges what the ledger has of a row from before the verifier changed."""
        assert self.ledger is not None
        found = RowSamples(prepared.row.id)
        for index in self.missing(prepared.row):
            entry = self.ledger.entries.get((prepared.row.id, index))
            if entry is None:
                continue
            answer, _ = self.ledger.read(entry)
            old = entry.sample
            response = Response(answer, None, None, old.allocate_seconds, old.details)
            judged = judge(prepared.verifier, response, index)
            judged = replace(judged, sample=replace(judged.sample, calls=old.calls))
            found.keep(prepared, judged, self.ledger.writer, self.timing)
        return found

    def results(self, prepared_rows: PreparedRows) -> list[RowResult]:
        """All samples of every row; a deterministic allocator's are repeated."""
        results = []
        for each in self.rows:
            row = each.row
            found = self._samples[row.id]
            samples = [found[index] for index in range(self.asked)]
            samples += [
                samples[0].repeated(index)
                for index in range(self.asked, self.configuration.samples)
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
