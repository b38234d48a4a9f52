"""The objective machine-code: its costs, its loops, and answers that are compiled."""

from __future__ import annotations

import numpy as np
import pytest

from verilocc_bench import allocate, load_problem, load_problems, verify
from verilocc_bench.allocators import Request, SearchAllocator, answer_from_assignment
from verilocc_bench.allocators.protocol import LabelUse
from verilocc_bench.allocators.search.code_loop import code_cost, shuffle_loop
from verilocc_bench.allocators.search.code_refining import collect_costs
from verilocc_bench.allocators.search.comparison import answer_cost
from verilocc_bench.allocators.search.compiled import random_state
from verilocc_bench.allocators.search.model import placement_models
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS
from verilocc_bench.allocators.search.refining import refinement_cost
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.analysis.false_dependences import FalseDependence, false_dependences
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Assignment, VirtualLanes
from verilocc_bench.settings.search import Objective, SearchSettings

pytestmark = pytest.mark.slow

CODE = Objective.MACHINE_CODE
SMALL = "fe33ea20e7c8cba7"  # gfx90a, GEMM with a loop


@pytest.fixture(scope="module")
def problem() -> AllocationProblem:
    return load_problem(SMALL)


@pytest.fixture(scope="module")
def registers_first(problem: AllocationProblem) -> Assignment:
    return Search(problem, SearchOptions(), Means.TABU).run().assignment


def _units(problem: AllocationProblem, assignment: Assignment, lanes: VirtualLanes) -> set[int]:
    first = problem.placements.unit(assignment[lanes.register]) + lanes.first
    return set(range(first, first + lanes.count))


def _kept_in_order(problem: AllocationProblem, assignment: Assignment) -> list[FalseDependence]:
    """The false dependences that an assignment makes true, told without the search's arrays."""
    return [
        each
        for each in false_dependences(problem)
        if _units(problem, assignment, each.accessed) & _units(problem, assignment, each.written)
    ]


def test_the_cost_is_that_of_the_pairs_that_share_a_unit(
    problem: AllocationProblem, registers_first: Assignment
) -> None:
    expected = sum(
        (16 if each.stalls else 4) * 10 ** problem.loop_depths[each.block]
        for each in _kept_in_order(problem, registers_first)
    )
    assert expected > 0
    soft = 0
    for model in placement_models(problem):
        bases = model.bases(registers_first)
        items = refinement_cost(model, bases, OBJECTIVE_WEIGHTS[CODE])
        soft += code_cost(bases, collect_costs(model, false_dependences(problem))) - items
    assert soft == expected


def test_the_objective_pays_for_what_it_is_after(
    problem: AllocationProblem, registers_first: Assignment
) -> None:
    answer = allocate(problem, "best", objective="machine-code")
    verdict = verify(problem, answer)
    fewest = verify(problem, answer_from_assignment(problem, registers_first))
    assert verdict.valid
    assert verdict.occupancy == fewest.occupancy
    cost = answer_cost(problem, answer.assignment, CODE)
    before = answer_cost(problem, answer_from_assignment(problem, registers_first), CODE)
    assert cost[1] < before[1] / 10
    assert count_bank_conflicts(problem, answer.assignment).any == 0
    again = allocate(problem, "best", objective="machine-code")
    assert again.assignment == answer.assignment


def test_shuffling_moves_nodes_and_costs_nothing(problem: AllocationProblem) -> None:
    search = Search(problem, SearchOptions(objective=CODE), Means.TABU)
    assignment = search.run().assignment
    dependences = false_dependences(problem)
    for model in placement_models(problem):
        bases = model.bases(assignment)
        costs = collect_costs(model, dependences)
        found = bases.copy()
        shuffle_loop(found, model.within({}), costs, len(bases), random_state(1))
        assert model.is_valid(found)
        assert code_cost(found, costs) <= code_cost(bases, costs)
        assert np.count_nonzero(found != bases) > len(bases) // 4


def test_registers_are_not_saved_where_they_give_no_wave() -> None:
    """A kernel of 8 waves may take 64 registers, whatever the fewest are."""
    problem = load_problem(SMALL)
    found = Search(problem, SearchOptions(objective=CODE), Means.PORTFOLIO).run()
    fewest = Search(problem, SearchOptions(), Means.PORTFOLIO).run()
    assert fewest.registers < found.registers <= 64


def test_on_sm_80_it_keeps_conflicts_and_copies_as_low() -> None:
    smallest = min(load_problems(arch="sm_80"), key=lambda each: each.function.instruction_count)
    answer = allocate(smallest, "best", objective="machine-code")
    combined = allocate(smallest, "best", objective="combined")
    assert verify(smallest, answer).valid
    assert (
        answer_cost(smallest, answer.assignment, Objective.COMBINED)[:2]
        <= (answer_cost(smallest, combined.assignment, Objective.COMBINED)[:2])
    )


class _Costs:
    """Stands in for a compiler: the cost is the number of the answer, but for one that is best."""

    def __init__(self, best: int) -> None:
        self.best, self.asked = best, list[dict[str, str]]()

    def __call__(self, answer: dict[str, str]) -> tuple[int, ...]:
        self.asked.append(dict(answer))
        return (0,) if len(self.asked) == self.best else (len(self.asked),)


def test_the_compiled_answer_with_the_least_cost_is_kept(problem: AllocationProblem) -> None:
    settings = SearchSettings(objective=CODE, compiled=5)
    allocator = SearchAllocator("best", "", Means.TABU, LabelUse.NONE, settings)
    costs = _Costs(best=4)
    answer = allocator.allocate(Request(problem, code_cost=costs))  # type: ignore[arg-type]
    assert len(costs.asked) == 5
    assert answer.assignment == costs.asked[3]
    assert len({tuple(sorted(each.items())) for each in costs.asked}) == 5
    assert all(verify(problem, each).valid for each in costs.asked)


def test_answers_are_compiled_for_machine_code_alone() -> None:
    with pytest.raises(InputError, match="--compiled is for --objective machine-code"):
        SearchSettings(compiled=3)


def test_compiling_needs_the_code() -> None:
    plain = AllocationProblem.from_text(load_problem(SMALL).normalized)
    with pytest.raises(InputError, match="--compiled needs the compiled code"):
        allocate(plain, "best", objective="machine-code", compiled=2)


@pytest.mark.usefixtures("llc")
def test_llc_compiles_answers() -> None:
    problem = load_problem("ff6a8c95c1702273")
    answer = allocate(problem, "best", objective="machine-code", compiled=3)
    assert verify(problem, answer).valid
