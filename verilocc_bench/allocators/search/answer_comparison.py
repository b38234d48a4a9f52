"""Compares answers by an objective."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from verilocc_bench.allocators.search.code_loop import code_cost
from verilocc_bench.allocators.search.code_refining import collect_costs
from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS
from verilocc_bench.allocators.search.refining import refinement_cost
from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.analysis.false_dependences import false_dependences
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.search import Objective

AnswerCost = tuple[int, ...]
"""The most important figure comes first; less is better."""


def answer_cost(
    problem: AllocationProblem, answer: NamedAssignment, objective: Objective
) -> AnswerCost:
    """The cost of a valid answer by an objective.

    For `registers`: (registers, waves or warps lost, combined cost). For the
    others: (waves or warps lost, the cost of the objective, registers).
    """
    assignment = assignment_of(problem, answer)
    weights = OBJECTIVE_WEIGHTS[objective]
    is_code = objective is Objective.MACHINE_CODE
    dependences = false_dependences(problem) if is_code else []
    cost = 0
    for model in _models_of(problem):
        bases = model.bases(assignment)
        if is_code:
            cost += code_cost(bases, collect_costs(model, dependences))
        else:
            cost += refinement_cost(model, bases, weights)
    used = _used(problem, assignment)
    registers, occupancy = problem.target.vector_use(used), problem.occupancy(used)
    if objective is Objective.REGISTERS:
        return registers, -occupancy, cost
    return -occupancy, cost, registers


@functools.lru_cache(maxsize=1)
def _models_of(problem: AllocationProblem) -> Sequence[PlacementModel]:
    """The models of a problem, kept until another is asked about: answers are compared in turn."""
    return placement_models(problem)


def first_cost(problem: AllocationProblem, assignment: Assignment, objective: Objective) -> int:
    """The first figure of `answer_cost`, in a fraction of its time."""
    used = _used(problem, assignment)
    if objective is Objective.REGISTERS:
        return problem.target.vector_use(used)
    return -problem.occupancy(used)


def _used(problem: AllocationProblem, assignment: Assignment) -> dict[str, int]:
    """Highest index + 1 of each file, of an assignment and the function's own registers."""
    used, classes = dict(problem.fixed_ends), problem.function.virtual_registers
    for register, base in assignment.items():
        used[base.file] = max(used[base.file], base.index + classes[register].width)
    return used


def legal_assignment(problem: AllocationProblem, answer: NamedAssignment) -> Assignment | None:
    """The registers of an answer; None if a name is missing or its base is not legal."""
    placements, classes = problem.placements, problem.function.virtual_registers
    if answer.keys() != {f"%{number}" for number in range(len(classes))}:
        return None
    units = [placements.by_name[c].get(answer[f"%{number}"]) for number, c in enumerate(classes)]
    found = {n: placements.register(unit) for n, unit in enumerate(units) if unit is not None}
    return found if len(found) == len(classes) else None


def is_valid_assignment(problem: AllocationProblem, assignment: Assignment) -> bool:
    """True if no two virtual registers of a complete, legal assignment collide."""
    return all(model.is_valid(model.bases(assignment)) for model in _models_of(problem))


def assignment_of(problem: AllocationProblem, answer: NamedAssignment) -> Assignment:
    """The registers of a valid answer."""
    assignment = {}
    for name, register in answer.items():
        base = parse_register_name(problem.target, register)
        assert base is not None
        assignment[int(name[1:])] = base
    return assignment
