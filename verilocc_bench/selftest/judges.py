"""All judges on one case, and the lower bounds on what they accept.

The bounds reject an answer that uses fewer registers than are proved to be
needed. The analyses of a function are made once. Few random paths are walked
of what all judges accept: that is most of what `selftest` sees.
"""

from __future__ import annotations

from dataclasses import replace

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import NO_EDITS, Answer
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.law import Bounds
from verilocc_bench.verify.judges import (
    EXECUTOR,
    FAST,
    INDEPENDENT,
    SMT,
    Effort,
    Judges,
    Opinion,
    Word,
)

__all__ = ["BoundedJudges"]

SMALL = 200
"""A function of so many instructions is a small one."""


class BoundedJudges:
    """The judges of one function. `solver`: its bounds are those that a solver proves."""

    def __init__(self, problem: AllocationProblem, smt: bool = False, solver: bool = False) -> None:
        self.problem = problem
        self.bounds = Bounds(problem, solver)
        small = problem.function.instruction_count <= SMALL
        effort = Effort(paths_of_accepted=6 if small else 2)
        self._judges = Judges(problem, effort=effort)
        self._smt = smt

    def judge(self, case: Case, *, held: bool = True) -> Opinion:
        """What all judges say. Raises InputError where guards are beyond an analysis.

        With `held`, an answer that they accept is held against the lower bounds.
        """
        answer = Answer(case.assignment, case.edits or NO_EDITS)
        names = [INDEPENDENT, EXECUTOR]
        if not answer.has_edits:
            names = [FAST, INDEPENDENT, *([SMT] if self._smt else []), EXECUTOR]
        words: list[Word] = []
        for name in names:
            words.append(self._judges.word(name, answer, words))
        opinion = Opinion(tuple(words))
        used = None if words[0].verdict is None else words[0].verdict.registers_used
        if not held or answer.has_edits or opinion.wrong or used is None:
            return opinion
        return replace(opinion, proved=self.bounds.contradiction(used))
