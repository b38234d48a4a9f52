"""A row made ready: parsed and analysed once, however many answers are judged."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property

from verilocc_bench.allocators import Answer
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.records import Timing
from verilocc_bench.findings import Verdict
from verilocc_bench.verify import Verifier

__all__ = ["PreparedProblem", "PreparedRow", "PreparedRows"]


class PreparedProblem:
    """A problem with its verifier, and the answers of compilers that may be replayed."""

    def __init__(
        self,
        problem: AllocationProblem,
        label: Answer | None = None,
        alternatives: Mapping[str, Answer] | None = None,
        *,
        edits: bool = True,
    ) -> None:
        self.problem, self.verifier = problem, Verifier(problem, edits=edits)
        self.compiler_answer, self.alternatives = label, alternatives

    @cached_property
    def lent_problem(self) -> AllocationProblem:
        """A problem for foreign code: what that does to it changes no verdict."""
        return AllocationProblem.from_text(self.problem.normalized)


class PreparedRow(PreparedProblem):
    """One row with its problem, its verifier and the verdict on its label.

    Raises InputError where the id does not fit the text, or the label is
    wrong: nothing may be compared with such a row.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
        if problem.id != row.id:
            raise InputError(f"row {row.id}: the id is not the hash of the normalized text")
        super().__init__(problem, row.label, row.other_labels, edits=row.track == "split")
        self.label: Verdict | None = None
        if row.label is not None:
            self.label = self.verifier.verify(row.label)
            if not self.label.valid:
                finding = self.label.findings[0].message
                raise InputError(f"row {row.id}: the label is wrong: {finding}")


class PreparedRows:
    """The rows that were made ready last; the oldest go where there are too many."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.timing = Timing()
        self._rows: OrderedDict[str, PreparedRow] = OrderedDict()

    def get(self, row: Row) -> PreparedRow:
        """The row made ready. Raises InputError for a row that contradicts itself."""
        found = self._rows.get(row.id)
        if found is None:
            started = time.perf_counter()
            found = self._rows[row.id] = PreparedRow(row)
            self.timing.prepare_seconds += time.perf_counter() - started
            if len(self._rows) > self.size:
                self._rows.popitem(last=False)
        self._rows.move_to_end(row.id)
        return found
