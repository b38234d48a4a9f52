"""Machine code of accepted answers, executed: it must leave the bits that llc's own leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verilocc_bench.backends import backend_of
from verilocc_bench.dataset import Row, load_raw_row
from verilocc_bench.edits import Answer
from verilocc_bench.machine.code_object import ARCHITECTURES
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.case import Case
from verilocc_bench.verification import Verifier

if TYPE_CHECKING:
    from verilocc_bench.execution import AnswerExecutor


class ExecutedCases:
    """Runs up to `limit` answers to kernels of a dataset."""

    def __init__(self, limit: int, dataset: str) -> None:
        self.limit, self.dataset, self.executed = limit, dataset, 0
        self._executors: dict[str, AnswerExecutor] = {}

    def breach(self, case: Case, row: Row, judges: BoundedJudges) -> str | None:
        """What execution has against an answer that the verifier accepts.

        None where it agrees, and where the answer is wrong, cannot be lowered, or
        is one too many.
        """
        # The self-test itself does not need what executes.
        from verilocc_bench.execution import AnswerExecutor

        problem = judges.problem
        if self.executed >= self.limit or problem.target.name not in ARCHITECTURES.values():
            return None
        answer = Answer(case.assignment, case.edits) if case.edits else Answer(case.assignment)
        if not Verifier(problem).verify(answer).valid:
            return None
        if row.id not in self._executors:
            raw = load_raw_row(self.dataset, row.id)
            kernel = backend_of(problem.target).read_raw(raw.content, problem, f"row {row.id}")
            self._executors[row.id] = AnswerExecutor.of_row(kernel, row)
        done = self._executors[row.id].execute(answer)
        if done.outcome == "refused" and case.edits is not None:
            return None  # some edits are not lowered
        self.executed += 1
        if done.accepted:
            return None
        return f"execution gives {done.outcome} for an answer that the verifier accepts"
