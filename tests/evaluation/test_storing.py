"""Samples that come in any order, in several runs, judged by several verifiers: one result."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from verilocc_bench.allocators import (
    Answer,
    FailureKind,
    Response,
    answer_from_assignment,
    linear_scan,
)
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.chosen_rows import SplitRow
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.ledger import Ledger
from verilocc_bench.evaluation.outcome import measure_outcome
from verilocc_bench.evaluation.prepared import PreparedRow, PreparedRows
from verilocc_bench.evaluation.records import Judged, Outcome, Sample
from verilocc_bench.evaluation.storing import AllocatorRun, RowSamples

ROWS = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)[:2]
SPLIT_ROWS = [SplitRow(row, f"split {number}") for number, row in enumerate(ROWS)]
SAMPLES = 4


def responses(prepared: PreparedRow, generator: random.Random) -> list[Response]:
    """One response a sample: the label, another right answer, a wrong one, or none."""
    label = prepared.compiler_answer
    assert label is not None
    scan = answer_from_assignment(prepared.problem, linear_scan(prepared.problem))
    wrong = {**scan, "%0": "no register"}
    answers = generator.choices([label, scan, wrong, None], (1, 1, 2, 1), k=SAMPLES)
    return [
        Response(None, FailureKind.UNPARSABLE, "nothing")
        if answer is None
        else Response(Answer(dict(answer)), seconds=1.5, details={"number": number})
        for number, answer in enumerate(answers)
    ]


def without_times(sample: Sample) -> Sample:
    return replace(sample, verify_seconds=0.0)


def expected(prepared: PreparedRow, judged: list[Judged]) -> Outcome | None:
    """The quality of the first valid answer, measured on the spot."""
    for number, each in enumerate(judged):
        if each.valid:
            assert each.answer is not None
            assert each.verdict is not None
            return measure_outcome(prepared, each.answer, each.verdict, number)
    return None


def run_of(
    ledger: Ledger | None, *, deterministic: bool = False, rows: int = len(ROWS)
) -> AllocatorRun:
    configuration = RunConfiguration("any", samples=SAMPLES)
    allocator: Any = SimpleNamespace(deterministic=deterministic)
    return AllocatorRun(configuration, allocator, SPLIT_ROWS[:rows], ledger=ledger)


@pytest.fixture(scope="module")
def prepared_rows() -> PreparedRows:
    return PreparedRows(4)


def fingerprints(generator: random.Random) -> Iterator[str]:
    """The verifiers of one run after the other."""
    while True:
        yield generator.choice(("this", "this", "that"))


def test_however_a_run_is_cut_its_results_are_the_same(
    tmp_path: Path, prepared_rows: PreparedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = 0
    for seed in range(25):
        generator = random.Random(seed)
        judges = fingerprints(generator)
        said = {row.id: responses(prepared_rows.get(row), generator) for row in ROWS}
        judged = {
            row.id: [
                replace(each, sample=replace(each.sample, calls=index + 2))
                for index, response in enumerate(said[row.id])
                for each in [judge(prepared_rows.get(row).verifier, response, index)]
            ]
            for row in ROWS
        }
        asked, told, done = list[tuple[str, int]](), list[int](), False
        while not done:
            present = next(judges)
            monkeypatch.setattr(f"{Ledger.__module__}.code_fingerprint", lambda name=present: name)
            ledger = Ledger(tmp_path / str(seed), {})
            run = run_of(ledger)
            for row in ROWS:
                missing = run.missing(row)
                old = {
                    index
                    for (row_id, index), entry in ledger.entries.items()
                    if row_id == row.id and not entry.fresh
                }
                assert old <= set(missing)
                before = {index for row_id, index in asked if row_id == row.id}
                assert set(range(SAMPLES)) - before == set(missing) - old
                found = run.judge_again(prepared_rows.get(row))
                assert [sample.index for sample in found.samples] == sorted(old)
                again += len(old)
                run.add(found)
                ledger.refresh()
                assert all(e.fresh for key, e in ledger.entries.items() if key[0] == row.id)
            done = generator.random() < 0.4
            for row in ROWS:
                missing = run.missing(row)
                chosen = missing if done else generator.sample(missing, len(missing) // 2)
                found, keeper = RowSamples(row.id), run.keeper(told.append)
                for index in chosen:
                    asked.append((row.id, index))
                    each = judged[row.id][index]
                    if not done and generator.random() < 0.5:
                        ledger.writer.append(row, each)  # killed before it was measured
                    else:
                        keeper.keep(found, prepared_rows.get(row), each)
                run.add(found)
            assert not done or run.missing_count == 0
            if done:
                for result, row, split_row in zip(
                    run.results(prepared_rows), ROWS, SPLIT_ROWS, strict=True
                ):
                    assert (result.row, result.split) == (row, split_row.split)
                    assert list(map(without_times, result.samples)) == [
                        without_times(each.sample) for each in judged[row.id]
                    ]
                    own = expected(prepared_rows.get(row), judged[row.id])
                    assert result.outcome == own, seed
            ledger.close()
        assert len(asked) == len(set(asked)) == SAMPLES * len(ROWS)
        assert set(told) <= {1}
        assert len(told) <= len(asked)
    assert again > 10


def test_a_deterministic_allocator_is_asked_once(prepared_rows: PreparedRows) -> None:
    run = run_of(None, deterministic=True)
    assert run.missing_count == len(ROWS)
    for row in ROWS:
        assert run.missing(row) == [0]
        prepared = prepared_rows.get(row)
        answer = Answer(dict(prepared.compiler_answer or {}))
        found = RowSamples(row.id)
        run.keeper(lambda _: None).keep(
            found, prepared, judge(prepared.verifier, Response(answer), 0)
        )
        run.add(found)
    for result in run.results(prepared_rows):
        assert [sample.index for sample in result.samples] == list(range(SAMPLES))
        assert all(sample.valid for sample in result.samples)
        assert result.outcome is not None
        assert result.outcome.registers == result.outcome.label_registers
    assert run.timing.measure_seconds > 0


def test_what_the_infrastructure_failed_is_asked_again(
    tmp_path: Path, prepared_rows: PreparedRows
) -> None:
    ledger = Ledger(tmp_path / "ledger", {})
    run, prepared = run_of(ledger), prepared_rows.get(ROWS[0])
    failed = judge(prepared.verifier, Response(None, FailureKind.INFRASTRUCTURE), 0)
    found = RowSamples(ROWS[0].id)
    run.keeper(lambda _: None).keep(found, prepared, failed)
    assert found.samples == [failed.sample]
    ledger.refresh()
    assert ledger.entries == {}
    ledger.close()


def test_a_quality_is_kept_beside_its_sample(
    tmp_path: Path, prepared_rows: PreparedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger", {})
    run, outcomes = run_of(ledger), []
    for row in ROWS:
        prepared = prepared_rows.get(row)
        answer = Answer(dict(prepared.compiler_answer or {}))
        found, each = RowSamples(row.id), judge(prepared.verifier, Response(answer), 0)
        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter", count(start=7).__next__)
            run.keeper(lambda _: None).keep(found, prepared, each)
        outcomes.append(found.outcome)
    ledger.refresh()
    assert [ledger.outcome(row) for row in ROWS] == outcomes
    assert None not in outcomes
    assert run.timing.measure_seconds == len(ROWS)  # the clock went on by one at each look
    ledger.close()
    ledger = Ledger(tmp_path / "ledger", {})
    nothing_measured: Any = None
    results = run_of(ledger, deterministic=True).results(nothing_measured)
    assert [result.outcome for result in results] == outcomes
    ledger.close()


def test_the_first_of_two_samples_counts(prepared_rows: PreparedRows) -> None:
    """Samples of one index that come twice are the first one; a failure of others is kept out."""
    run, row = run_of(None, rows=1), ROWS[0]
    prepared = prepared_rows.get(row)
    scan = answer_from_assignment(prepared.problem, linear_scan(prepared.problem))
    label = dict(prepared.compiler_answer or {})
    for answers in ([label, scan], [scan, label]):
        found = RowSamples(row.id)
        for index, answer in enumerate(answers):
            each = judge(prepared.verifier, Response(Answer(dict(answer))), index)
            run.keeper(lambda _: None).keep(found, prepared, each)
        assert found.outcome is not None
        assert found.outcome.sample == 0
        run.add(found)
    assert run.missing(row) == [2, 3]
    later = RowSamples(row.id)
    for index in (3, 2):
        each = judge(prepared.verifier, Response(Answer(dict(scan))), index)
        run.keeper(lambda _: None).keep(later, prepared, each)
    assert later.outcome is not None
    assert later.outcome.sample == 2
    run.add(later)
    nothing_measured: Any = None
    (result,) = run.results(nothing_measured)
    assert result.outcome is not None
    assert result.outcome.sample == 0
