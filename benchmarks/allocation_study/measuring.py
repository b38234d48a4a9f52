"""Asks every allocator about one kernel, and checks every answer.

Times are seconds of processor time of one process, so that other work on the
machine hardly changes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from benchmarks.allocation_study.questions import (
    BEST,
    QUICK,
    QUICK_WHERE_COSTLY,
    TIGHT,
    is_asked_tightly,
    is_costly,
)
from benchmarks.allocation_study.records import Measured, Measurement, TightBudget
from benchmarks.allocation_study.sample import SampledKernel
from verilocc_bench.allocators import BUILT_IN, Request, answer_from_assignment
from verilocc_bench.allocators.search.found import Found
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.dataset.tight_budgets import tighten
from verilocc_bench.edits import NamedAssignment, assignment_alone
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verification import FastVerifier, IndependentVerifier


def measure_kernel(kernel: SampledKernel) -> Measurement:
    """All answers to a kernel. Raises AssertionError for a wrong label or best answer."""
    _warm_up()
    row = kernel.row
    started = time.process_time()
    problem = _prepared(row)
    seconds = time.process_time() - started
    judge = _Judge(problem)
    answers = _labels(row, judge)
    costly = is_costly(problem)
    quick = QUICK_WHERE_COSTLY if costly else QUICK
    answers |= {name: _asked(name, problem, judge) for name in quick}
    best, found = _best("best", problem, judge)
    answers["best"] = best
    if not costly:
        answers |= _other_objectives(problem, judge, answers)
    assert answers["compiler"].valid, f"row {row.id} has a wrong label"
    value = problem.pressure.maximum[VECTOR] if found is None else found.bound.value
    return Measurement(
        row.id,
        kernel.split,
        row.arch,
        row.family,
        row.kernel,
        row.label_source,
        row.n_instructions,
        row.n_virtual_registers,
        problem.pressure.maximum[VECTOR],
        value,
        "" if found is None else str(found.bound.kind),
        seconds,
        answers,
        _tight_budgets(row, value) if is_asked_tightly(row.id) and not costly else {},
    )


def _prepared(row: Row) -> AllocationProblem:
    """The problem, with what all allocators share already worked out."""
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    _ = problem.liveness, problem.pressure, problem.placements, problem.loop_depths
    return problem


@cache
def _warm_up() -> None:
    """Imports and compiles everything, so that no kernel's seconds include that."""
    row = min(load_rows("mini").rows, key=lambda row: row.n_virtual_registers)
    for name in (*QUICK, "best"):
        BUILT_IN[name].allocate(Request(_prepared(row), 0))


class _Judge:
    """Both verifiers of a problem, and the metrics of a valid answer."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.fast, self.independent = FastVerifier(problem), IndependentVerifier(problem)

    def measured(
        self,
        answer: NamedAssignment,
        seconds: float | None,
        *,
        twice: bool = False,
        optimal: bool = False,
    ) -> Measured:
        """The answer's figures; `twice` also asks the independent checker."""
        verdict = self.fast.verify(answer)
        if twice:
            assert verdict.valid, verdict.findings[:1]
            assert self.independent.verify(answer).valid
        if not verdict.valid:
            return _failed("wrong", seconds)
        assert verdict.registers_used is not None
        return Measured(
            verdict.registers_used[VECTOR],
            verdict.occupancy,
            count_bank_conflicts(self.problem, answer).any,
            count_identity_copies(self.problem, answer),
            seconds,
            optimal=optimal,
        )


def _failed(reason: str, seconds: float | None) -> Measured:
    return Measured(None, None, None, None, seconds, failure=reason)


def _labels(row: Row, judge: _Judge) -> dict[str, Measured]:
    assert row.label is not None
    found = {"compiler": judge.measured(row.label, None)}
    for source, label in row.other_labels.items():
        if source.startswith("llvm-basic"):
            found["llvm-basic"] = judge.measured(label, None)
    return found


def _timed(action: Callable[[], NamedAssignment]) -> tuple[NamedAssignment | None, str, float]:
    """The answer, or the reason for its absence; and the seconds that it took."""
    started = time.process_time()
    try:
        answer, reason = action(), ""
    except AllocationFailed as failed:
        answer, reason = None, str(failed)
    return answer, reason, time.process_time() - started


def _asked(name: str, problem: AllocationProblem, judge: _Judge) -> Measured:
    answer, reason, seconds = _timed(
        lambda: assignment_alone(BUILT_IN[name].allocate(Request(problem, 0)))
    )
    return _failed(reason, seconds) if answer is None else judge.measured(answer, seconds)


def _best(
    name: str, problem: AllocationProblem, judge: _Judge, means: Means = Means.PORTFOLIO
) -> tuple[Measured, Found | None]:
    search = Search(problem, SearchOptions(objective=BEST[name]), means)
    answer, reason, seconds = _timed(
        lambda: answer_from_assignment(problem, search.run().assignment)
    )
    if answer is None:
        return _failed(reason, seconds), None
    found = search.found
    assert found is not None
    return judge.measured(answer, seconds, twice=True, optimal=found.is_optimal), found


def _other_objectives(
    problem: AllocationProblem, judge: _Judge, answers: Mapping[str, Measured]
) -> dict[str, Measured]:
    # Proofs do not depend on the objective: if they found nothing, they need no second run.
    proved = answers["best"].registers != answers["tabu-search"].registers
    means = Means.PORTFOLIO if proved else Means.TABU
    return {name: _best(name, problem, judge, means)[0] for name in list(BEST)[1:]}


def _tight_budgets(row: Row, bound: int) -> dict[str, TightBudget]:
    found = {}
    for choice in TIGHT:
        tight = tighten(replace(row, best_lower_bound=bound), choice)
        if tight is not None:
            problem = _prepared(tight)
            judge = _Judge(problem)
            answers = {name: _asked(name, problem, judge) for name in QUICK}
            counts = {file.name: file.count for file in problem.function.files}
            found[str(choice)] = TightBudget(
                problem.target.vector_use(counts),
                tuple(name for name, each in answers.items() if each.valid),
                {name: each.seconds or 0.0 for name, each in answers.items()},
            )
    return found
