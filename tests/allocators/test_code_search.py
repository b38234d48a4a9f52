"""The objective machine-code: its costs, its loops, and answers that are compiled."""

from __future__ import annotations

import numpy as np
import pytest

from verilocc_bench import allocate, load_problem, load_problems, verify
from verilocc_bench.allocators import Request, SearchAllocator, answer_from_assignment
from verilocc_bench.allocators.protocol import LabelUse
from verilocc_bench.allocators.search.answer_comparison import answer_cost, legal_assignment
from verilocc_bench.allocators.search.code_loop import code_cost, shuffle_loop
from verilocc_bench.allocators.search.code_refining import collect_costs, costs_beside, descend
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.allocators.search.placing import SearchBudget
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS
from verilocc_bench.allocators.search.refining import refinement_cost
from verilocc_bench.allocators.search.search_compilation import random_state
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.analysis.code_cost import CodeCost
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


def test_shuffling_moves_nodes_and_costs_nothing(problem: AllocationProblem) -> None:
    first, second = (Search(problem, SearchOptions(objective=CODE), Means.TABU) for _ in "12")
    assignment = first.run().assignment
    assert assignment == second.run().assignment
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
    """Stands in for a compiler: an answer costs its number, but for those with a cost given."""

    def __init__(self, given: dict[int, CodeCost]) -> None:
        self.given, self.asked = given, list[dict[str, str]]()

    def __call__(self, answer: dict[str, str]) -> CodeCost:
        self.asked.append(dict(answer))
        number = len(self.asked)
        return self.given.get(number, CodeCost(8, 100 + number, (100 + number, 0)))


def test_the_compiled_answer_with_the_least_cost_is_kept(problem: AllocationProblem) -> None:
    settings = SearchSettings(objective=CODE, compiled=5)
    allocator = SearchAllocator("best", "", Means.TABU, LabelUse.NONE, settings)
    costs = _Costs({4: CodeCost(8, 0, (0, 0))})
    answer = allocator.allocate(Request(problem, code_cost=costs))  # type: ignore[arg-type]
    assert len(costs.asked) == 5
    assert answer.assignment == costs.asked[3]
    assert len({tuple(sorted(each.items())) for each in costs.asked}) == 5
    assert all(verify(problem, each).valid for each in costs.asked)


BEGUN = SearchAllocator(
    "best", "", Means.TABU, LabelUse.LAST, SearchSettings(objective=CODE, compiled=6)
)
OWN = CodeCost(8, 50, (10, 20), 100.0)


@pytest.mark.parametrize(
    ("better", "taken"),
    [
        ({4: CodeCost(8, 30, (10, 10), 100.0)}, 4),
        ({4: CodeCost(8, 30, (10, 10), 100.4)}, 4),  # estimates of cycles are no exact numbers
        ({4: CodeCost(8, 30, (11, 9), 100.0)}, 1),
        ({4: CodeCost(8, 30, (10, 10), 101.0)}, 1),
        ({4: CodeCost(8, 30, (10, 10), None)}, 1),
        ({4: CodeCost(7, 30, (1, 1), 1.0)}, 1),
        ({4: CodeCost(9, 60, (30, 30), 100.0)}, 4),  # more waves come before all else
        ({4: CodeCost(8, 30, (11, 9), 9.0), 5: CodeCost(8, 49, (10, 19), 99.0)}, 5),
        # Where waves are gained too, cycles that are not known are a count that is worse.
        ({4: CodeCost(9, 30, (10, 10), None), 5: CodeCost(9, 60, (11, 10), 100.0)}, 5),
    ],
    ids=[
        "less",
        "equal cycles",
        "one more",
        "cycles",
        "no estimate",
        "fewer waves",
        "more waves",
        "the second",
        "no estimate with more waves",
    ],
)
def test_no_count_is_worse_than_the_compilers_own(
    problem: AllocationProblem, better: dict[int, CodeCost], taken: int
) -> None:
    label = load_problem(SMALL).label
    assert label is not None
    rest = {number: CodeCost(8, 99, (99, 99), 999.0) for number in range(2, 8)}
    costs = _Costs({1: OWN, **rest, **better})
    response = BEGUN.respond_to(Request(problem, label=label, code_cost=costs))  # type: ignore[arg-type]
    assert response.answer is not None
    assert len(costs.asked) == 7  # the label's code besides
    assert costs.asked[0] == label
    assert response.answer.assignment == costs.asked[taken - 1]
    assert response.details["label_taken"] == (taken == 1)
    assert len({tuple(sorted(each.items())) for each in costs.asked}) == 7
    assert all(verify(problem, each).valid for each in costs.asked)


def test_near_the_compilers_own_assignment_few_places_change(problem: AllocationProblem) -> None:
    label = load_problem(SMALL).label
    assert label is not None
    costs = _Costs({1: CodeCost(8, 1, (1, 1))})
    BEGUN.respond_to(Request(problem, label=label, code_cost=costs))  # type: ignore[arg-type]

    def moved(answer: dict[str, str]) -> int:
        return sum(answer[name] != register for name, register in label.items())

    assert moved(costs.asked[1]) > len(label) // 2  # by the model alone
    assert moved(costs.asked[-1]) <= len(label) // 2


def test_false_dependences_of_a_placement_are_free_beside_it() -> None:
    """Those of LLVM's own stay the only ones: its order of instructions stays possible."""
    problem = load_problem("ff7f1b9aa13ea155")
    label = legal_assignment(problem, problem.label or {})
    assert label is not None
    own, moved = _kept_in_order(problem, label), False
    for model in placement_models(problem):
        bases = model.bases(label)
        costs = collect_costs(model, false_dependences(problem))
        beside = costs_beside(costs, bases)
        assert code_cost(bases, beside) == refinement_cost(
            model, bases, OBJECTIVE_WEIGHTS[Objective.MACHINE_CODE]
        )
        assert {*(beside.soft.weight // costs.soft.weight)} == {0, 4}
        space = model.within(dict.fromkeys(model.files, 10**6))
        lower = descend(beside, bases, space, SearchBudget(4_000, 1))
        assert model.is_valid(lower)
        assert code_cost(lower, beside) <= code_cost(bases, beside)
        moved |= bool((lower != bases).any())
        kept = _kept_in_order(problem, label | model.assignment(lower))
        assert all(each in own for each in kept)
    assert moved


def test_compiling_needs_the_objective_and_the_code() -> None:
    with pytest.raises(InputError, match="--compiled is for --objective machine-code"):
        SearchSettings(compiled=3)
    plain = AllocationProblem.from_text(load_problem(SMALL).normalized)
    with pytest.raises(InputError, match="--compiled needs the compiled code"):
        allocate(plain, "best", objective="machine-code", compiled=2)


@pytest.mark.usefixtures("llc")
def test_llc_compiles_answers() -> None:
    problem = load_problem("ff6a8c95c1702273")
    answer = allocate(problem, "best", objective="machine-code", compiled=3)
    assert verify(problem, answer).valid
