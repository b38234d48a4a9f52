"""The verdict on any answer: by the fast check, or with edits by the independent checker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from verilocc_bench.analysis import VECTOR, AllocationProblem, parse_register_name
from verilocc_bench.edits import AnyAnswer, Edits, SplitAnswer, edit_function
from verilocc_bench.findings import Finding, FindingKind, Verdict
from verilocc_bench.ir import FixedUnits, RegisterClass
from verilocc_bench.verify.fast import FastVerifier
from verilocc_bench.verify.symbolic import SymbolicChecker

__all__ = ["IndependentVerifier", "Verifier"]


_UNASKED = Finding(
    FindingKind.INVALID_EDIT,
    "on the assign track every virtual register keeps one register: an answer has no edits",
)


class Verifier:
    """Judges any number of answers for one problem; without `edits` those that have some are wrong.

    Functions of the assign track ask for one register for each virtual
    register: with spills an answer could do with fewer than are live at once.
    """

    def __init__(self, problem: AllocationProblem, *, edits: bool = True) -> None:
        self.problem = problem
        self.edits = edits
        self.fast = FastVerifier(problem)
        self.independent = IndependentVerifier(problem)

    def verify(self, answer: AnyAnswer, findings: int | None = None) -> Verdict:
        """The verdict on an answer, with the first so many `findings`; the others are counted."""
        if isinstance(answer, SplitAnswer) and answer.edits.empty:
            answer = answer.assignment
        if isinstance(answer, SplitAnswer):
            if not self.edits:
                return Verdict(self.problem.id, False, (_UNASKED,), None, None)
            return self.independent.verify(answer, findings)
        return self.fast.verify(answer, findings)


class IndependentVerifier:
    """Judges answers of either track by the independent checker, as verdicts."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem

    @cached_property
    def _checker(self) -> SymbolicChecker:
        return SymbolicChecker(self.problem.function)

    def verify(self, answer: AnyAnswer, findings: int | None = None) -> Verdict:
        """The verdict; registers used count those of new virtual registers too.

        With the first so many `findings`; the others are counted.
        """
        problem = self.problem
        if not isinstance(answer, SplitAnswer):
            told, untold = self._checker.judge(answer, None, findings)
            answer = SplitAnswer(answer, Edits({}))
        else:
            told, untold = self._checker.judge(answer.assignment, answer.edits, findings)
        if told or untold:
            return Verdict(problem.id, False, told, None, None, untold)
        used = self._registers_used(answer)
        return Verdict(problem.id, True, (), used, problem.occupancy(used))

    def _registers_used(self, answer: SplitAnswer) -> dict[str, int]:
        target = self.problem.target
        highest = dict.fromkeys((file.name for file in target.files), 0)
        for file, end in self._ends(answer):
            highest[file] = max(highest[file], end)
        return {VECTOR: target.vector_use(highest), **highest}

    def _ends(self, answer: SplitAnswer) -> Iterator[tuple[str, int]]:
        """(file, index after the last unit) of all that the answer and the function name."""
        problem = self.problem
        for name, register_class in self._classes(answer):
            base = parse_register_name(problem.target, answer.assignment[name])
            assert base is not None
            yield base.file, base.index + register_class.width
        for units in problem.function.live_ins:
            yield units.file, units.first + units.count
        for _, _, instruction in problem.function.instructions():
            locations = [o.location for o in instruction.definitions + instruction.uses]
            if instruction.guard is not None:
                locations.append(instruction.guard.location)
            for location in locations:
                if isinstance(location, FixedUnits):
                    yield location.file, location.first + location.count

    def _classes(self, answer: SplitAnswer) -> Iterator[tuple[str, RegisterClass]]:
        edited, _ = edit_function(self.problem.function, self.problem.target, answer.edits)
        for number, register_class in edited.registers.items():
            yield f"%{number}", register_class
