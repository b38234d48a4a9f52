"""Allocators that search, by different means over the same arrays and loops.

They need numba, and `best` also needs ortools (the extra `exact`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from verilocc_bench.allocators.protocol import (
    AllocationInterrupted,
    Assistance,
    LabelUse,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.allocators.search.options import COMPILER, SEARCH, Means, SearchOptions
from verilocc_bench.allocators.single import SingleAllocator
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.search import SearchSettings

if TYPE_CHECKING:
    from verilocc_bench.allocators.search.compiled_answers import CompiledAnswers
    from verilocc_bench.allocators.search.found import Found


@dataclass(frozen=True)
class SearchAllocator(SingleAllocator):
    """Searches for an assignment by some means, for an objective.

    If it may use the compiler's label, the details of the response say if the
    answer is the label.
    """

    name: str
    description: str
    means: Means
    label_use: LabelUse = LabelUse.NONE
    settings: SearchSettings = field(default_factory=SearchSettings)

    revision: ClassVar[None] = None
    assistance: ClassVar[Assistance] = Assistance.TEXT
    deterministic: ClassVar[bool] = True

    @property
    def options(self) -> SearchOptions:
        """What the search is for, and how much of it."""
        return SearchOptions(self.settings.objective, self.settings.effort)

    def allocate(self, request: Request) -> Answer:
        """The answer that the search finds.

        Raises AllocationFailed if it finds none, and AllocationInterrupted, with
        the best answer so far, on an interrupt.
        """
        answer = self.respond_to(request).answer
        assert answer is not None
        return answer

    def respond_to(self, request: Request) -> Response:
        """The answer with the details `bound`, `optimal`, `source` and perhaps `label_taken`.

        `source` names the method that found the first placement: `search`, a
        fallback, or `compiler`. An allocator that may use the label also gives
        `label_taken`: 1 if the answer is the label itself.
        """
        from verilocc_bench.allocators.search.answer_comparison import legal_assignment

        problem, use = request.problem, self.label_use
        label = None
        if use is not LabelUse.NONE and request.label is not None:
            label = legal_assignment(problem, request.label)
        compiled = self._compiled(request, label)
        found = self._found(problem, label, compiled)
        answer = answer_from_assignment(problem, found.assignment)
        details: dict[str, Any] = {"bound": found.bound.value, "optimal": int(found.is_optimal)}
        if use is LabelUse.NONE:
            return Response(Answer(answer), details={**details, "source": found.source})
        taken, source = False, found.source
        if source == COMPILER:
            assert request.label is not None
            if compiled is not None and compiled.own is not None:
                taken = found.assignment == compiled.own
            else:
                taken = self._cost(problem, request.label) <= self._cost(problem, answer)
            answer = dict(request.label) if taken else answer
            if use is LabelUse.FIRST and not taken:
                source = SEARCH
        details |= {"source": source, "label_taken": int(taken)}
        return Response(Answer(answer), details=details)

    def _compiled(self, request: Request, label: Assignment | None) -> CompiledAnswers | None:
        """How to compile answers, if that is asked for. They begin with a label that is valid."""
        from verilocc_bench.allocators.search.answer_comparison import is_valid_assignment
        from verilocc_bench.allocators.search.compiled_answers import CompiledAnswers

        problem, code_cost = request.problem, request.code_cost
        if code_cost is None or not self.settings.compiled:
            return None
        return CompiledAnswers(
            self.settings.compiled,
            lambda assignment: code_cost(answer_from_assignment(problem, assignment)),
            own=label if label is not None and is_valid_assignment(problem, label) else None,
        )

    def _found(
        self,
        problem: AllocationProblem,
        label: Assignment | None,
        compiled: CompiledAnswers | None,
    ) -> Found:
        """The result of the search; its source is `compiler` if it began with the label."""
        from verilocc_bench.allocators.search.answer_comparison import first_cost

        if self.label_use is LabelUse.FIRST:
            begun = self._begun(problem, label, compiled)
            return begun or self._search(problem, None, compiled)
        try:
            found = self._search(problem, None, compiled)
        except AllocationFailed:
            begun = self._begun(problem, label, compiled)
            if begun is None:
                raise
            return begun
        if label is None or (compiled is not None and compiled.own is not None):
            return found  # the label was one of those that were compiled
        objective = self.options.objective
        # The first figure: registers, or the waves or warps that they cost.
        worse = first_cost(problem, found.assignment, objective) > first_cost(
            problem, label, objective
        )
        if worse or (found.source != SEARCH and not found.is_optimal):
            begun = self._begun(problem, label, compiled)
            if begun is not None and self._cost_of(problem, begun) < self._cost_of(problem, found):
                return begun
        return found

    def _begun(
        self,
        problem: AllocationProblem,
        label: Assignment | None,
        compiled: CompiledAnswers | None,
    ) -> Found | None:
        """The result of the search that begins with the label; None without a valid label."""
        from verilocc_bench.allocators.search.answer_comparison import is_valid_assignment

        if label is None or not is_valid_assignment(problem, label):
            return None
        return replace(self._search(problem, label, compiled), source=COMPILER)

    def _cost_of(self, problem: AllocationProblem, found: Found) -> tuple[int, ...]:
        return self._cost(problem, answer_from_assignment(problem, found.assignment))

    def _cost(self, problem: AllocationProblem, answer: NamedAssignment) -> tuple[int, ...]:
        from verilocc_bench.allocators.search.answer_comparison import answer_cost

        return answer_cost(problem, answer, self.options.objective)

    def _search(
        self,
        problem: AllocationProblem,
        start: Assignment | None,
        compiled: CompiledAnswers | None,
    ) -> Found:
        from verilocc_bench.allocators.search.portfolio import Search

        search = Search(problem, self.options, self.means, start, compiled)
        try:
            return search.run()
        except KeyboardInterrupt:
            if search.found is None:
                raise
            answer = answer_from_assignment(problem, search.found.assignment)
            raise AllocationInterrupted(Answer(answer)) from None
