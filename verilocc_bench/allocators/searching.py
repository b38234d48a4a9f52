"""Allocators that search: the same arrays and loops, with more or fewer of the means.

They need numba, and `best` needs ortools besides (the extra `exact`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from verilocc_bench.allocator_options import AllocatorOptions
from verilocc_bench.allocators.protocol import (
    AllocationInterrupted,
    Assistance,
    NamedAssignment,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.allocators.search.options import SEARCH, Means, SearchOptions
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

if TYPE_CHECKING:
    from verilocc_bench.allocators.search.portfolio import Found

__all__ = ["LabelUse", "SearchAllocator"]

COMPILER = "compiler"
"""The source of what began with the compiler's label, or is that."""


class LabelUse(Enum):
    """What a search does with the compiler's label, where the function has one.

    `NONE`: it does not see it. `LAST`: it searches alone, and begins again with
    the label where it found nothing, only by a way beside search, or something
    worse than the label. `FIRST`: it begins with the label.
    """

    NONE = auto()
    LAST = auto()
    FIRST = auto()


@dataclass(frozen=True)
class SearchAllocator:
    """Searches for an assignment by some means, after an objective.

    Where it may use the compiler's label, the details of the response say
    whether nothing better was found.
    """

    name: str
    description: str
    means: Means
    label_use: LabelUse = LabelUse.NONE
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
        return answer

    def respond_to(self, request: Request) -> Response:
        """The answer with the details `bound`, `optimal`, `source` and perhaps `label_taken`.

        `source` names what found the first placement: `search`, the way that did
        where search had none, or `compiler`. `label_taken`, of those that may use
        the label, is 1 where the answer is the label itself.
        """
        from verilocc_bench.allocators.search.comparison import legal_assignment

        problem, use = request.problem, self.label_use
        label = None
        if use is not LabelUse.NONE and request.label is not None:
            label = legal_assignment(problem, request.label)
        found = self._found(problem, label)
        answer = answer_from_assignment(problem, found.assignment)
        details: dict[str, Any] = {"bound": found.bound.value, "optimal": int(found.is_optimal)}
        if use is LabelUse.NONE:
            return Response(Answer(answer), details={**details, "source": found.source})
        taken, source = False, found.source
        if source == COMPILER:
            assert request.label is not None
            taken = self._cost(problem, request.label) <= self._cost(problem, answer)
            answer = dict(request.label) if taken else answer
            if use is LabelUse.FIRST and not taken:
                source = SEARCH
        details |= {"source": source, "label_taken": int(taken)}
        return Response(Answer(answer), details=details)

    def _found(self, problem: AllocationProblem, label: Assignment | None) -> Found:
        """What search finds; of source `compiler` where it began with the label."""
        from verilocc_bench.allocators.search.comparison import first_cost

        if self.label_use is LabelUse.FIRST:
            return self._begun(problem, label) or self._search(problem, None)
        try:
            found = self._search(problem, None)
        except AllocationFailed:
            begun = self._begun(problem, label)
            if begun is None:
                raise
            return begun
        if label is None:
            return found
        objective = self.options.objective
        # What counts first: registers, or what they cost in waves or warps.
        worse = first_cost(problem, found.assignment, objective) > first_cost(
            problem, label, objective
        )
        if worse or (found.source != SEARCH and not found.is_optimal):
            begun = self._begun(problem, label)
            if begun is not None and self._cost_of(problem, begun) < self._cost_of(problem, found):
                return begun
        return found

    def _begun(self, problem: AllocationProblem, label: Assignment | None) -> Found | None:
        """What search finds that begins with the label; None without a valid one."""
        from verilocc_bench.allocators.search.comparison import is_valid_assignment

        if label is None or not is_valid_assignment(problem, label):
            return None
        return replace(self._search(problem, label), source=COMPILER)

    def _cost_of(self, problem: AllocationProblem, found: Found) -> tuple[int, ...]:
        return self._cost(problem, answer_from_assignment(problem, found.assignment))

    def _cost(self, problem: AllocationProblem, answer: NamedAssignment) -> tuple[int, ...]:
        from verilocc_bench.allocators.search.comparison import answer_cost

        return answer_cost(problem, answer, self.options.objective)

    def _search(self, problem: AllocationProblem, start: Assignment | None) -> Found:
        from verilocc_bench.allocators.search.portfolio import Search

        search = Search(problem, self.options, self.means, start)
        try:
            return search.run()
        except KeyboardInterrupt:
            if search.found is None:
                raise
            answer = answer_from_assignment(problem, search.found.assignment)
            raise AllocationInterrupted(Answer(answer)) from None
