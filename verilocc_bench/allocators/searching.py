"""Allocators that search: the same arrays and loops, with more or fewer of the means.

They need numba, and `best` needs ortools besides (the extra `exact`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from verilocc_bench.allocator_options import AllocatorOptions
from verilocc_bench.allocators.protocol import (
    AllocationInterrupted,
    Answer,
    Assistance,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import SplitAnswer

if TYPE_CHECKING:
    from verilocc_bench.allocators.search.portfolio import Found

__all__ = ["SearchAllocator"]


@dataclass(frozen=True)
class SearchAllocator:
    """Searches for an assignment by some means, after an objective.

    With `takes_label` the search begins with the compiler's label, where there
    is one; the details of the response say where nothing better was found.
    """

    name: str
    description: str
    means: Means
    takes_label: bool = False
    options: SearchOptions = field(default_factory=SearchOptions)
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = True

    def configured(self, options: AllocatorOptions) -> SearchAllocator:
        """This allocator with the objective and the effort of the options."""
        own = replace(self.options, objective=options.objective, effort=options.effort)
        return replace(self, options=own)

    def allocate(self, request: Request) -> Answer:
        """The answer that was found. Raises AllocationFailed where there is none.

        AllocationInterrupted, with the best answer so far, on an interrupt.
        """
        answer = self.respond_to(request).answer
        assert answer is not None
        assert not isinstance(answer, SplitAnswer)
        return answer

    def respond_to(self, request: Request) -> Response:
        """The answer with the details `bound`, `optimal` and, if it may be taken, `label_taken`.

        `label_taken` is 1 where the search began with the label, and found
        nothing better.
        """
        problem = request.problem
        label = request.label if self.takes_label else None
        found = self._search(problem, label)
        answer = answer_from_assignment(problem, found.assignment)
        details = {"bound": found.bound.value, "optimal": int(found.is_optimal)}
        if not self.takes_label:
            return Response(answer, details=details)
        taken = label is not None and self._cost(problem, label) <= self._cost(problem, answer)
        return Response(label if taken else answer, details={**details, "label_taken": int(taken)})

    def _cost(self, problem: AllocationProblem, answer: Answer) -> tuple[int, ...]:
        from verilocc_bench.allocators.search.comparison import answer_cost

        return answer_cost(problem, answer, self.options.objective)

    def _search(self, problem: AllocationProblem, label: Answer | None) -> Found:
        from verilocc_bench.allocators.search.comparison import assignment_of
        from verilocc_bench.allocators.search.portfolio import Search

        start = None if label is None else assignment_of(problem, label)
        search = Search(problem, self.options, self.means, start)
        try:
            return search.run()
        except KeyboardInterrupt:
            if search.found is None:
                raise
            answer = answer_from_assignment(problem, search.found.assignment)
            raise AllocationInterrupted(answer) from None
