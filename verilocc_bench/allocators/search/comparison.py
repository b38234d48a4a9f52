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

__all__ = ["AnswerCost", "answer_cost", "assignment_of", "is_valid_answer"]

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


def is_valid_answer(problem: AllocationProblem, answer: Answer) -> bool:
    """Whether an answer gives every virtual register a base, and no two of them collide."""
    placements, classes = problem.placements, problem.function.virtual_registers
    if answer.keys() != {f"%{number}" for number in range(len(classes))}:
        return False
    units = [placements.by_name[c].get(answer[f"%{number}"]) for number, c in enumerate(classes)]
    assignment = {n: placements.register(unit) for n, unit in enumerate(units) if unit is not None}
    return len(assignment) == len(classes) and all(
        model.is_valid(model.bases(assignment)) for model in placement_models(problem)
    )


def assignment_of(problem: AllocationProblem, answer: Answer) -> Assignment:
    """What the names of a valid answer mean."""
    assignment = {}
    for name, register in answer.items():
        base = parse_register_name(problem.target, register)
        assert base is not None
        assignment[int(name[1:])] = base
    return assignment
