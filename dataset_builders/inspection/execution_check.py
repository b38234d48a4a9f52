"""Execution of a dataset's rows: the machine code of their labels must compute what it should."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dataset_builders.inspection.findings import CheckedRow, CheckKind, Content, Findings
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.execution import AnswerExecutor, ExecutedAnswer
from verilocc_bench.machine.code_object import ARCHITECTURES


def check_execution(content: Content, count: int, findings: Findings) -> int:
    """Executes `count` rows and adds a finding for each that does not compute what it should.

    The rows are the ones of gfx90a and gfx942 whose ids have the least digests: the
    same each time, spread over the dataset. A row runs with its label and
    with its best answer; on the split track with llc's own allocation. Returns
    how many rows ran. Raises InputError where a tool is missing.
    """
    fit = [row for row in content.rows if row.arch in ARCHITECTURES.values()]
    fit.sort(key=lambda row: hashlib.sha256(row.id.encode()).digest())
    for checked in fit[:count]:
        row = _rows(content.folder, checked.split, checked.track)[checked.id]
        for name, done in _executed(content.folder, checked, row):
            if not done.accepted:
                bits = ", other bits than llc's own allocation's" if done.same_bits is False else ""
                message = f"{name}: executed, it gives {done.outcome}{bits} {done.why}".rstrip()
                findings.add(CheckKind.MACHINE_CODE, checked.file, message, row.id)
    return min(count, len(fit))


@cache
def _rows(folder: Path, split: str, track: str) -> dict[str, Row]:
    return {row.id: row for row in load_rows(str(folder), split=split, track=track).rows}


def _executed(folder: Path, checked: CheckedRow, row: Row) -> Iterator[tuple[str, ExecutedAnswer]]:
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    backend = backend_of(problem.target)
    backend.check_comparison()  # llc
    try:
        raw = load_raw_row(str(folder), row.id, split=checked.split)
        kernel = backend.read_raw(raw.content, problem, f"row {row.id}")
        executor = AnswerExecutor.of_row(kernel, row)
        if row.label is None:
            yield "llc's own allocation", executor.own
            return
        yield "the label", executor.execute(Answer(row.label))
        if row.best_label is not None:
            yield "the best answer", executor.execute(Answer(row.best_label))
    except InputError as error:
        yield "machine code", ExecutedAnswer("nothing", error.message)
