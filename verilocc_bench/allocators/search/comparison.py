"""Which of two answers is better, by an objective."""

from __future__ import annotations

from verilocc_bench.allocator_options import Objective
from verilocc_bench.allocators.search.model import placement_models
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS
from verilocc_bench.allocators.search.refining import refinement_cost
from verilocc_bench.allocators.search.shapes import used_by_file
from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.analysis.lower_bounds.shapes import fixed_ends
from verilocc_bench.edits import Answer
from verilocc_bench.ir import Assignment

__all__ = ["AnswerCost", "answer_cost", "assignment_of"]

AnswerCost = tuple[int, ...]
"""What counts first stands first; less is better."""


def answer_cost(problem: AllocationProblem, answer: Answer, objective: Objective) -> AnswerCost:
    """What a valid answer costs by an objective.

    After `registers`: registers, waves or warps lost, combined cost. After
    the others: waves or warps lost, what the objective counts, registers.
    """
    target, assignment = problem.target, assignment_of(problem, answer)
    used, cost = fixed_ends(problem.function), 0
    for model in placement_models(problem):
        bases = model.bases(assignment)
        for file, count in used_by_file(model, bases).items():
            used[file] = max(used[file], count)
        cost += refinement_cost(model, bases, OBJECTIVE_WEIGHTS[objective])
    registers, occupancy = target.vector_use(used), problem.occupancy(used)
    if objective is Objective.REGISTERS:
        return registers, -occupancy, cost
    return -occupancy, cost, registers


def assignment_of(problem: AllocationProblem, answer: Answer) -> Assignment:
    """What the names of a valid answer mean."""
    assignment = {}
    for name, register in answer.items():
        base = parse_register_name(problem.target, register)
        assert base is not None
        assignment[int(name[1:])] = base
    return assignment
