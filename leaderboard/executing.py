"""Executes a sample of a submission's valid answers as machine code, on the CPU.

Two checkers judge texts. Execution sees the whole way from an answer to bytes: each answer of the
sample must leave, bit for bit, what llc's own allocation of the kernel leaves, and the numbers that
the kernel must compute. It needs llc and the extra `execute`; without them nothing is executed, and
the document says why.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.examining import Answers
from leaderboard.folder import open_file
from leaderboard.judging import FunctionVerdict
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.dataset import Row, load_raw_row
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import parse_answer
from verilocc_bench.errors import VerilocError
from verilocc_bench.machine.code_object import ARCHITECTURES

STEP_LIMIT = 20_000_000
"""Wave instructions of one run; the kernels of `mini` execute up to 180,000."""


@dataclass(frozen=True, slots=True)
class ExecutedSample:
    """What became of the sample: how many answers ran, which were wrong, why none ran."""

    executed: int = 0
    wrong: tuple[str, ...] = ()
    why_not: str | None = None
    seed: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields by name; the seed if there is one."""
        drawn = {"seed": self.seed} if self.seed else {}
        found = {"executed": self.executed, "wrong": list(self.wrong), "why_not": self.why_not}
        return found | drawn


def execute_sample(
    answers: Answers,
    rows: Mapping[str, Row],
    verdicts: Mapping[str, FunctionVerdict],
    *,
    dataset: str,
    split: str,
    revision: str | None,
    count: int,
    seed: str = "",
) -> ExecutedSample:
    """Executes the measured answers to up to `count` functions of gfx90a and gfx942.

    The functions are drawn by a hash of the seed, their ids and answers. A reviewer's seed is
    drawn by chance: a known one would let a submitter try out answers until others are drawn.
    """
    try:
        from verilocc_bench.execution import AnswerExecutor
    except VerilocError as error:
        return ExecutedSample(why_not=str(error), seed=seed)
    known = ARCHITECTURES.values()
    chosen = [
        row for row in rows.values() if row.arch in known and verdicts[row.id].outcome is not None
    ]
    chosen.sort(key=lambda row: _lot(seed, row.id, answers))
    executed = 0
    wrong: list[str] = []
    for row in chosen[:count]:
        problem = AllocationProblem.from_text(row.normalized, row.id)
        backend = backend_of(problem.target)
        try:
            backend.check_comparison()  # llc
            raw = load_raw_row(dataset, row.id, split=split, revision=revision)
            kernel = backend.read_raw(raw.content, problem, row.id)
            executor = AnswerExecutor.of_row(kernel, row, step_limit=STEP_LIMIT)
            if not executor.own.accepted:
                continue  # the kernel itself is beyond what is executed
        except VerilocError as error:
            return ExecutedSample(executed, tuple(wrong), str(error), seed)
        done = executor.execute(measured_answer(answers, row, verdicts[row.id]))
        if done.outcome == "refused":
            continue  # some edits are not lowered
        executed += 1
        if not done.accepted:
            wrong.append(row.id)
    return ExecutedSample(executed, tuple(wrong), seed=seed)


def _lot(seed: str, identifier: str, answers: Answers) -> str:
    digest = answers.lines[identifier].digest.hexdigest()
    return hashlib.sha256(f"{seed}{identifier} {digest}".encode()).hexdigest()


def measured_answer(answers: Answers, row: Row, verdict: FunctionVerdict) -> Answer:
    """The answer that the figures of a function are about; there is one if any was valid."""
    assert verdict.outcome is not None
    offset, length = answers.lines[row.id].places[verdict.outcome.sample]
    with os.fdopen(open_file(answers.path), "rb") as file:
        file.seek(offset)
        document = json.loads(file.read(length))
    return parse_answer(document, answers.path)[1]
