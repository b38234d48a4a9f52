"""Verdicts on any answer: the fast check judges, or the independent checker if it has edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.resolved_answer import resolve_answer
from verilocc_bench.edits import Answer, AnswerLike
from verilocc_bench.edits.findings import Finding, FindingKind, Verdict
from verilocc_bench.ir import FixedUnits, RegisterClass
from verilocc_bench.verification.fast import FastVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker

_UNASKED = Finding(
    FindingKind.INVALID_EDIT,
    "on the assign track every virtual register keeps one register: an answer has no edits",
)


class Verifier:
    """Judges any number of answers for one problem.

    With `edits` False, an answer with edits is wrong: the assign track asks for
    one register for each virtual register, and with spills an answer could use
    fewer registers than are live at once.
    """

    def __init__(self, problem: AllocationProblem, *, edits: bool = True) -> None:
        self.problem = problem
        self.edits = edits
        self.fast = FastVerifier(problem)
        self.independent = IndependentVerifier(problem)

    def verify(self, answer: AnswerLike, findings: int | None = None) -> Verdict:
        """The verdict on an answer.

        `findings` is the most findings that the verdict holds; it counts the others.
        """
        answer = Answer.of(answer)
        if not answer.has_edits:
            return self.fast.verify(answer.assignment, findings)
        if not self.edits:
            return Verdict(self.problem.id, False, (_UNASKED,), None, None)
        return self.independent.verify(answer, findings)


class IndependentVerifier:
    """Judges answers of either track by the independent checker, as verdicts."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem

    @cached_property
    def _checker(self) -> SymbolicChecker:
        return SymbolicChecker(self.problem.function)

    def verify(self, answer: AnswerLike, findings: int | None = None) -> Verdict:
        """The verdict. Its registers used include the registers of new virtual registers.

        `findings` is the most findings that the verdict holds; it counts the others.
        """
        problem, answer = self.problem, Answer.of(answer)
        edits = answer.edits if answer.has_edits else None
        told, untold = self._checker.judge(answer.assignment, edits, findings)
        if told or untold:
            return Verdict(problem.id, False, told, None, None, untold)
        highest = dict.fromkeys((file.name for file in problem.target.files), 0)
        for file, end in self._ends(answer):
            highest[file] = max(highest[file], end)
        used = {VECTOR: problem.target.vector_use(highest), **highest}
        return Verdict(problem.id, True, (), used, problem.occupancy(used))

    def _ends(self, answer: Answer) -> Iterator[tuple[str, int]]:
        """(file, index after the last unit) of every register that the answer or function names."""
        problem = self.problem
        resolved = resolve_answer(problem, answer)
        classes: Mapping[int, RegisterClass] = dict(enumerate(problem.function.virtual_registers))
        if resolved.edited is not None:
            classes = resolved.edited.registers
        for number, base in resolved.registers.items():
            yield base.file, base.index + classes[number].width
        for units in problem.function.live_ins:
            yield units.file, units.first + units.count
        for _, _, instruction in problem.function.instructions():
            locations = [o.location for o in instruction.definitions + instruction.uses]
            if instruction.guard is not None:
                locations.append(instruction.guard.location)
            for location in locations:
                if isinstance(location, FixedUnits):
                    yield location.file, location.first + location.count
