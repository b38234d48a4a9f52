"""The fast check: is an assignment valid?

Two lanes collide where one is *defined* while the other is live in the same
unit (see analysis.liveness). An answer is judged as a whole, in a few
operations on arrays that are laid out once for a problem (verification.bulk).
Findings are computed only for wrong answers (verification.explain).

Cost of a valid answer: n log n in the number of live ranges, which is about the
number of instructions. An instruction of a real kernel takes 0.1 microseconds,
or twice that if lanes share a unit at a point and neither destroys the other.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.edits import AnswerLike, assignment_alone
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.verification.explain import Explainer

if TYPE_CHECKING:
    from verilocc_bench.verification.bulk import BulkCheck


class FastVerifier:
    """Judges any number of answers for one problem.

    >>> FastVerifier(problem).verify({"%0": "v1"}).valid  # doctest: +SKIP
    """

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self._ties = tied_operands(problem.function)
        placements = problem.placements
        self._files = [
            (file.name, placements.first_unit[file.name], file.count)
            for file in problem.target.files
        ]

    @cached_property
    def _bulk(self) -> BulkCheck:
        # numpy takes longer to import than all of the package.
        from verilocc_bench.verification.bulk import BulkCheck

        return BulkCheck(self.problem, self._ties)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.problem, self._ties)

    def verify(self, answer: AnswerLike, findings: int | None = None) -> Verdict:
        """The verdict on an answer without edits. Raises ValueError for an answer with edits.

        `findings` is the most findings that the verdict holds; it counts the others.
        """
        answer = assignment_alone(answer)
        bulk = self._bulk
        units = bulk.units(answer)
        used = occupancy = None
        if units is not None:
            used = self._registers_used(bulk.touched(units))
            occupancy = self.problem.occupancy(used)
            if len(answer) == len(units) - 1 and bulk.is_valid(units):
                return Verdict(self.problem.id, True, (), used, occupancy)
        told, untold, complete = self._explainer.explain(answer, findings)
        return Verdict(self.problem.id, False, told, used, occupancy, untold, not complete)

    def _registers_used(self, touched: bytes) -> dict[str, int]:
        """Highest index + 1 by file, and the scored number, of the units touched."""
        used = {VECTOR: 0}
        for name, first, count in self._files:
            used[name] = max(touched.rfind(1, first, first + count) - first + 1, 0)
        used[VECTOR] = self.problem.target.vector_use(used)
        return used
