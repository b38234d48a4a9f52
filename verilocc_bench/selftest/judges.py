"""All judges on one answer: the fast check, the independent checker, the executor, perhaps Z3.

An answer that they accept is held against the lower bounds too: these reject what
uses fewer registers than are proved to be needed.

The analyses of a function are made once. The executor walks up to `PATHS` random
paths of what another judge rejects for its values, half of them toward the
blocks of the findings, and few of what all accept. What is rejected because a
register is not there or not allowed is no question of values, and not run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.edits import edit_function
from verilocc_bench.findings import OF_VALUES, Finding
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.law import Bounds
from verilocc_bench.verify import FastVerifier
from verilocc_bench.verify.executor import Executor, Miscompile
from verilocc_bench.verify.symbolic import SymbolicChecker

__all__ = ["BOUND", "EXECUTOR", "FAST", "INDEPENDENT", "PATHS", "SMT", "Judges", "Opinion"]

FAST, INDEPENDENT, SMT, EXECUTOR = "fast", "independent", "smt", "executor"
BOUND = "lower bound"

PATHS = 200
PATHS_OF_ACCEPTED = 6
SMALL = 200
"""A function of so many instructions is a small one."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the judges say of one answer.

    `findings` of each judge that looked at it, none where it accepts; `shown`
    is a difference that the executor found, `executed` whether it looked.
    `proved` is what a lower bound has against an answer that all judges accept.
    """

    findings: dict[str, tuple[Finding, ...]]
    shown: Miscompile | None
    executed: bool
    proved: str | None = None

    @property
    def wrong(self) -> bool:
        """Whether any judge rejects the answer."""
        return self.shown is not None or any(self.findings.values())

    @property
    def legal(self) -> bool:
        """Whether only values can be wrong with the answer."""
        return all(f.kind in OF_VALUES for found in self.findings.values() for f in found)

    def disagreements(self) -> tuple[str, ...]:
        """In which ways the judges disagree."""
        accepting = [name for name, found in self.findings.items() if not found]
        rejecting = [name for name, found in self.findings.items() if found]
        if self.shown is not None:
            rejecting.append(EXECUTOR)
        if self.proved is not None:
            rejecting.append(BOUND)
        return tuple(
            f"{judge} accepts what {other} rejects" for judge in accepting for other in rejecting
        )


class Judges:
    """The judges of one function. `solver`: its bounds are those that a solver proves."""

    def __init__(self, problem: AllocationProblem, smt: bool = False, solver: bool = False) -> None:
        self.problem = problem
        self.bounds = Bounds(problem, solver)
        self.fast = FastVerifier(problem)
        self.independent = SymbolicChecker(problem.function)
        self._smt = smt

    def judge(self, case: Case, paths: int = PATHS, *, held: bool = True) -> Opinion:
        """What all judges say; raises InputError where guards are beyond an analysis.

        With `held`, an answer that they accept is held against the lower bounds.
        """
        findings: dict[str, tuple[Finding, ...]] = {}
        used = None
        if case.edits is None:
            verdict = self.fast.verify(case.assignment)
            findings[FAST], used = verdict.findings, verdict.registers_used
        findings[INDEPENDENT] = self.independent.check(case.assignment, case.edits)
        if self._smt and case.edits is None:
            findings[SMT] = self._by_smt(case)
        legal = Opinion(findings, None, False).legal
        if not (legal or not all(findings.values())):
            return Opinion(findings, None, False)
        shown, executed = self._execute(case, findings, paths)
        proved = None
        if held and used is not None and shown is None and not any(findings.values()):
            proved = self.bounds.contradiction(used)
        return Opinion(findings, shown, executed, proved)

    def _by_smt(self, case: Case) -> tuple[Finding, ...]:
        from verilocc_bench.verify.smt import SMTVerifier

        return SMTVerifier(self.problem).verify(case.assignment).findings

    def _execute(
        self, case: Case, findings: dict[str, tuple[Finding, ...]], paths: int
    ) -> tuple[Miscompile | None, bool]:
        """What the executor shows, and whether it could run the answer."""
        executor = self.executor(case)
        if executor is None:
            return None, False
        count = self.problem.function.instruction_count
        steps = 40 + 3 * count
        blocks = sorted({f.block for found in findings.values() for f in found if f.block})
        if not any(findings.values()):
            paths = min(paths, PATHS_OF_ACCEPTED if count <= SMALL else 2)
        toward = itertools.cycle([*blocks, None])
        for seed, block in zip(range(paths), toward, strict=False):
            shown = executor.run(seed, steps, block)
            if shown is not None:
                return shown, True
        return None, True

    def executor(self, case: Case) -> Executor | None:
        """The executor of an answer; None where not every register exists."""
        edited = None
        registers = dict(enumerate(self.problem.function.virtual_registers))
        if case.edits is not None:
            edited, invalid = edit_function(self.problem.function, self.problem.target, case.edits)
            if invalid:
                return None
            registers = dict(edited.registers)
        bases: dict[int, tuple[str, int]] = {}
        for number in registers:
            base = parse_register_name(self.problem.target, case.assignment.get(f"%{number}", ""))
            if base is None:
                return None
            bases[number] = base.file, base.index
        return Executor(self.problem.function, self.problem.target, bases, edited)
