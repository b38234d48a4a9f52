"""All judges on one case, and the lower bounds on what they accept.

A bound rejects an answer that uses fewer registers than it proves necessary. The
analyses of a function are made once. The value walk takes few paths of answers
that all judges accept, which are most answers in `selftest`.
"""

from __future__ import annotations

from dataclasses import replace

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import NO_EDITS, Answer
from verilocc_bench.selftest.bound_law import Bounds
from verilocc_bench.selftest.case import Case
from verilocc_bench.settings.judges import JUDGES, JUDGES_OF_EDITS, SMT
from verilocc_bench.verification.judges import Effort, Judges, Opinion, Word

SMALL = 200
"""The most instructions of a small function."""


class BoundedJudges:
    """The judges of one function. With `solver`, a solver proves its bounds."""

    def __init__(self, problem: AllocationProblem, smt: bool = False, solver: bool = False) -> None:
        self.problem = problem
        self.bounds = Bounds(problem, solver)
        small = problem.function.instruction_count <= SMALL
        effort = Effort(paths_of_accepted=6 if small else 2)
        self._judges = Judges(problem, effort=effort)
        self._smt = smt

    def judge(self, case: Case, *, held: bool = True) -> Opinion:
        """The opinion of all judges. Raises InputError if guards exceed the bounds of an analysis.

        With `held`, an answer that they accept is compared with the lower bounds.
        """
        answer = Answer(case.assignment, case.edits or NO_EDITS)
        words: list[Word] = []
        for name in JUDGES_OF_EDITS if answer.has_edits else JUDGES:
            if name == SMT and not self._smt:
                continue
            words.append(self._judges.word(name, answer, words))
        opinion = Opinion(tuple(words))
        used = None if words[0].verdict is None else words[0].verdict.registers_used
        if not held or answer.has_edits or opinion.wrong or used is None:
            return opinion
        return replace(opinion, proved=self.bounds.contradiction(used))
