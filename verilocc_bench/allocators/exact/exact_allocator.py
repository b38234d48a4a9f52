"""The allocator `cp-sat`: the fewest registers that the solver finds within its budget.

Budgets are deterministic time of the solver, so answers are the same in every
run. Registers of files that are not scored go anywhere within their budgets.
"""

from __future__ import annotations

from verilocc_bench.allocators.exact.exact_placing import ExactStatus, solve
from verilocc_bench.allocators.exact.minimizing import minimize
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import proves_infeasible, why_infeasible
from verilocc_bench.analysis.lower_bounds.shapes import file_group
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

DETERMINISTIC_TIME = 0.1
"""The budget of each question to the solver, in its deterministic seconds: some seconds of work."""


def constraint_programming(problem: AllocationProblem) -> Assignment:
    """An assignment of the fewest registers that the solver finds.

    Raises AllocationFailed if the solver finds none; the message says if it
    proved that none exists. Raises MissingExtraError without the solver.
    """
    least = minimize(problem, deterministic_time=DETERMINISTIC_TIME)
    if least.assignment is None:
        if least.undecided:
            raise AllocationFailed(
                f"unknown within the budget of the solver: at least {least.bound.value} registers"
            )
        if proves_infeasible(problem, least.bound):
            raise AllocationFailed(f"proved infeasible: {why_infeasible(problem, least.bound)}")
        raise AllocationFailed("proved infeasible: CP-SAT finds that the registers do not suffice")
    assignment = dict(least.assignment)
    scored = set(file_group(problem.function, problem.target, VECTOR))
    for model in placement_models(problem):
        if scored.isdisjoint(model.files):
            # Any placement will do.
            budgets = {file.name: file.count for file in problem.function.files}
            result = solve(model, budgets, deterministic_time=DETERMINISTIC_TIME)
            if result.bases is None:
                why = "proved infeasible" if result.status is ExactStatus.INFEASIBLE else "unknown"
                raise AllocationFailed(f"{why} within the budget: {' and '.join(model.files)}")
            assignment |= model.assignment(result.bases)
    if len(assignment) < len(problem.function.virtual_registers):
        raise AllocationFailed("proved infeasible: some class has no legal register")
    return assignment
