"""Search: its model is the verifier's, its results are valid, its costs are the metrics."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.allocators.vector_registers import vector_registers
from tests.generated import random_function
from tests.sampling import some_of, some_rows
from verilocc_bench.allocators import BUILT_IN, Request, SearchAllocator
from verilocc_bench.allocators import answer_from_assignment as named
from verilocc_bench.allocators.protocol import AllocationInterrupted, LabelUse
from verilocc_bench.allocators.search import placing, portfolio
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.allocators.search.refinement_items import Weights
from verilocc_bench.allocators.search.refining import refinement_cost
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.analysis.lower_bounds import BoundKind, check_certificate
from verilocc_bench.analysis.problem import with_budgets
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import assignment_alone
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.settings.search import Objective
from verilocc_bench.verification import FastVerifier, IndependentVerifier

pytestmark = pytest.mark.slow

ROWS = load_rows("mini").rows
FITS_BUT_FOR_FIRST_FIT = 383  # the seed of a function
SMALL = sorted(ROWS, key=lambda row: row.n_virtual_registers)[:18]


def test_the_model_accepts_what_the_verifier_accepts() -> None:
    generator = random.Random(0)
    accepted = rejected = 0
    for seed in range(60):
        problem = AllocationProblem(random_function(seed))
        classes = problem.function.virtual_registers
        legal = [sorted(problem.placements.legal[c]) for c in classes]
        if not classes or not all(legal):
            continue
        models = placement_models(problem)
        for attempt in range(6):
            answer = random_answer(problem, generator) if attempt < 3 else None
            if answer is None:
                units = {n: generator.choice(bases) for n, bases in enumerate(legal)}
            else:
                names = problem.placements.by_name
                units = {n: names[c][answer[f"%{n}"]] for n, c in enumerate(classes)}
                if attempt:  # one register elsewhere: nearly valid
                    moved = generator.randrange(len(classes))
                    units[moved] = generator.choice(legal[moved])
            assignment = {n: problem.placements.register(unit) for n, unit in units.items()}
            verdict = FastVerifier(problem).verify(named(problem, assignment))
            found = all(model.is_valid(model.bases(assignment)) for model in models)
            assert found == verdict.valid, seed
            accepted += found
            rejected += not found
    assert min(accepted, rejected) > 25


def _fewest_by_enumeration(problem: AllocationProblem) -> int | None:
    """The fewest vector registers of any valid answer; None where there is none."""
    classes = problem.function.virtual_registers
    legal = [list(problem.placements.legal[c].values()) for c in classes]
    verifier, best = FastVerifier(problem), None
    answer: dict[str, str] = {}

    def extend(number: int) -> None:
        nonlocal best
        if number == len(classes):
            verdict = verifier.verify(answer)
            if verdict.valid:
                assert verdict.registers_used is not None
                used = verdict.registers_used[VECTOR]
                best = used if best is None else min(best, used)
            return
        for name in legal[number]:
            answer[f"%{number}"] = name
            extend(number + 1)

    extend(0)
    return best


@pytest.mark.parametrize(
    "seeds", some_of([range(1000, 1160), range(500), range(500, 1000), range(1160, 1500)], 4)
)
def test_best_is_the_optimum_of_tiny_functions(seeds: range) -> None:
    compared = impossible = 0
    for seed in seeds:
        problem = AllocationProblem(random_function(seed))
        classes = problem.function.virtual_registers
        choices = 1
        for c in classes:
            choices *= len(problem.placements.legal[c])
        if not 1 < choices <= 600:
            continue
        fewest = _fewest_by_enumeration(problem)
        try:
            found = Search(problem, SearchOptions()).run()
        except AllocationFailed:
            assert fewest is None, seed
            impossible += 1
            continue
        assert found.registers == fewest, seed
        assert found.bound.value <= found.registers
        compared += 1
    assert compared > 8
    assert impossible or seeds.start != 1160  # few are


@pytest.mark.parametrize("name", ["first-fit-orders", "annealed-orders", "tabu-search"])
def test_answers_are_valid_or_absent_on_generated_functions(name: str) -> None:
    answered = 0
    for seed in range(400, 460):
        problem = AllocationProblem(random_function(seed))
        try:
            answer = BUILT_IN[name].allocate(Request(problem))
        except AllocationFailed:
            continue
        assert IndependentVerifier(problem).verify(answer).valid, seed
        answered += 1
    assert answered > 25


@pytest.mark.parametrize("row", some_rows(SMALL), ids=lambda row: row.id)
def test_tabu_search_is_never_worse_than_the_compiler(row) -> None:  # type: ignore[no-untyped-def]
    problem = AllocationProblem.from_text(row.normalized)
    answer = BUILT_IN["tabu-search"].allocate(Request(problem))
    assert vector_registers(problem, answer) <= vector_registers(problem, row.label)
    assert IndependentVerifier(problem).verify(answer).valid


def test_what_refinement_counts_are_the_metrics() -> None:
    generator = random.Random(1)
    seen = 0
    for row in SMALL[::4]:
        problem = AllocationProblem.from_text(row.normalized)
        assert row.label is not None
        for attempt in range(4):
            answer = random_answer(problem, generator) if attempt else row.label
            if answer is None:
                continue
            counted = count_bank_conflicts(problem, answer)
            expected = counted.any
            if problem.target.bank_ports == 1:
                expected += counted.all
            found = sum(
                refinement_cost(model, model.bases(_assignment(problem, answer)), Weights(1, 0, 0))
                for model in placement_models(problem)
            )
            assert found == expected
            seen += expected
    assert seen > 50


def _assignment(problem: AllocationProblem, answer: object) -> Assignment:
    assert isinstance(answer, dict)
    classes = problem.function.virtual_registers
    names = problem.placements.by_name
    return {
        n: problem.placements.register(names[c][answer[f"%{n}"]]) for n, c in enumerate(classes)
    }


def test_objectives_pay_for_what_they_are_after() -> None:
    (row,) = (r for r in ROWS if r.kernel == "mha_decode_combine" and r.arch == "gfx942")
    problem = AllocationProblem.from_text(row.normalized)
    found = {}
    for objective in Objective:
        search = Search(problem, SearchOptions(objective=objective), Means.TABU)
        found[objective] = search.run()
    occupancy = {}
    conflicts = {}
    for objective, result in found.items():
        answer = named(problem, result.assignment)
        verdict = FastVerifier(problem).verify(answer)
        assert verdict.valid
        occupancy[objective] = verdict.occupancy
        conflicts[objective] = count_bank_conflicts(problem, answer).any
    assert len(set(occupancy.values())) == 1
    fewest = found[Objective.REGISTERS].registers
    assert all(fewest <= result.registers for result in found.values())
    assert conflicts[Objective.BANK_CONFLICTS] <= conflicts[Objective.COPIES]
    compilers = count_bank_conflicts(problem, row.label).any
    assert conflicts[Objective.REGISTERS] < compilers / 2


def test_the_same_options_give_the_same_answer() -> None:
    problem = AllocationProblem.from_text(SMALL[6].normalized)
    answers = [BUILT_IN["tabu-search"].allocate(Request(problem)) for _ in range(2)]
    assert answers[0] == answers[1]


def test_an_impossible_budget_is_proved_or_unknown() -> None:
    problem = AllocationProblem.from_text(SMALL[0].normalized)
    vector, *others = problem.target.vector_files
    budgets = {vector: problem.pressure.maximum[VECTOR] - 1, **dict.fromkeys(others, 0)}
    with pytest.raises(AllocationFailed, match="proved infeasible"):
        BUILT_IN["tabu-search"].allocate(Request(with_budgets(problem, budgets)))
    fits = AllocationProblem(random_function(FITS_BUT_FOR_FIRST_FIT))
    Search(fits, SearchOptions(), Means.TABU).run()
    with pytest.raises(AllocationFailed, match="unknown"):
        BUILT_IN["first-fit-orders"].allocate(Request(fits))


def test_an_interrupt_leaves_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    problem = AllocationProblem.from_text(SMALL[3].normalized)
    monkeypatch.setattr(portfolio, "refine", interrupted)
    with pytest.raises(AllocationInterrupted) as caught:
        BUILT_IN["tabu-search"].allocate(Request(problem))
    assert FastVerifier(problem).verify(caught.value.answer).valid


def test_best_or_compiler_begins_with_the_label_and_says_so() -> None:
    row = SMALL[1]
    problem = AllocationProblem.from_text(row.normalized)
    best = BUILT_IN["tabu-search"].allocate(Request(problem))
    # An allocator that finds little by itself keeps what it was given.
    weak = SearchAllocator("weak", "", Means.ORDERS, label_use=LabelUse.FIRST)
    kept = weak.respond_to(Request(problem, label=assignment_alone(best)))
    assert kept.details["label_taken"] == 1
    assert kept.answer == best
    alone = weak.respond_to(Request(problem))
    assert alone.details["label_taken"] == 0
    # What is easily improved is improved.
    improved = BUILT_IN["best-or-compiler"]
    assert isinstance(improved, SearchAllocator)
    spoilt = next(r for r in SMALL if _registers_of(r) > _nearly_the_bound(r))
    problem = AllocationProblem.from_text(spoilt.normalized)
    found = improved.respond_to(Request(problem, label=spoilt.label))
    assert found.details["label_taken"] == 0
    assert vector_registers(problem, found.answer) < _registers_of(spoilt)


def _registers_of(row) -> int:  # type: ignore[no-untyped-def]
    return vector_registers(AllocationProblem.from_text(row.normalized), row.label)


def _nearly_the_bound(row) -> int:  # type: ignore[no-untyped-def]
    return AllocationProblem.from_text(row.normalized).pressure.maximum[VECTOR] + 1


TIED = """verilocc-bench 1
target gfx942
registers v:6 a:0 s:16 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
bb0(v0)
%0:V2=A
%1=B %0.1~0
%2=C %1~0
D %2,%0.0
E v0~0
"""


def test_nodes_hold_what_ties_hold() -> None:
    text = TIED.replace("E v0~0\n", "v3=E %2~0\n")
    problem = AllocationProblem.from_text(text)
    (model,) = placement_models(problem)
    assert [node.members for node in model.nodes] == [((0, 0), (1, 1), (2, 1))]
    # The last tie, to v3, leaves v[2:3] alone.
    assert model.domain.nonzero()[1].tolist() == [2]
    answer = BUILT_IN["tabu-search"].allocate(Request(problem))
    assert answer.assignment == {"%0": "v2", "%1": "v3", "%2": "v3"}
    assert FastVerifier(problem).verify(answer).valid


def test_ties_that_contradict_each_other_leave_nothing() -> None:
    text = TIED.replace("E v0~0\n", "%3:V2=E %2\n%4=F %3.0~0\n%3.1=G %4~0\n")
    problem = AllocationProblem.from_text(text)
    with pytest.raises(AllocationFailed):
        BUILT_IN["tabu-search"].allocate(Request(problem))


def test_what_fits_with_the_help_of_another_file_is_not_called_infeasible() -> None:
    """Two SGPRs for four lanes that are live at once: the other two fit into VCC."""
    text = """verilocc-bench 1
target gfx942
registers v:8 a:0 s:2 vcc:2=vcc_lo,vcc_hi
class S2 2 s/2 vcc/2
bb0
%0=A
%1=B
C %0,%1
"""
    problem = AllocationProblem.from_text(text)
    assert problem.pressure.maximum["s"] == 4
    answer = BUILT_IN["tabu-search"].allocate(Request(problem))
    assert sorted(answer.assignment.values()) == ["s0", "vcc"]
    assert FastVerifier(problem).verify(answer).valid


def scored_shapes() -> tuple[PlacementModel, placing.Shapes, int]:
    """The scored model of a small kernel, its shapes, and the registers without any search."""
    search = Search(AllocationProblem.from_text(SMALL[0].normalized), SearchOptions())
    (model,) = (each for each in search._models if search._is_scored(each))
    shapes = search._shapes(model)
    placed = placing.minimize(model, shapes, 0, placing.SearchBudget(0, 0), lambda _: None)
    assert placed is not None
    return model, shapes, shapes.used(placed)


def test_what_is_impossible_gets_one_chunk_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    model, shapes, first = scored_shapes()
    asked: list[int] = []
    left = 1

    def find_nothing(
        bases: object, space: object, steps: int, compared: int, state: object
    ) -> tuple[int, int]:
        # With few nodes left, only first chunks compare several of them.
        is_first = steps == placing.CHUNK_STEPS or left > placing.MANY_LEFT
        assert compared == (placing.COMPARED if is_first else 1)
        asked.append(steps)
        return left, steps

    monkeypatch.setattr(placing, "tabu_loop", find_nothing)

    def minimize(least_possible: int, restarts: int = 0) -> list[int]:
        asked.clear()
        best = placing.minimize(
            model,
            shapes,
            first - 2,
            placing.SearchBudget(30_000, 0, restarts=restarts),
            lambda _: None,
            is_impossible=lambda registers: registers < least_possible,
        )
        assert best is not None
        assert shapes.used(best) == first
        return list(asked)

    chunk, rest = placing.CHUNK_STEPS, 30_000 - placing.CHUNK_STEPS
    patient = [chunk, 90_000 - chunk]
    assert minimize(first) == [chunk, chunk]
    assert minimize(first - 1) == [chunk, chunk, rest, *patient]
    assert minimize(0) == [chunk, rest, chunk, rest, *patient]
    fresh = [chunk, placing.LONG_CHUNK_STEPS - chunk]
    assert minimize(0, restarts=7) == [chunk, rest, chunk, rest, *patient, *fresh, *fresh]
    assert minimize(0, restarts=3) == minimize(0)
    assert minimize(first, restarts=7) == [chunk, chunk]
    # Where no placement is known, all steps are taken, and several nodes compared throughout.
    asked.clear()
    left = placing.MANY_LEFT + 1
    assert placing.place(model.within({}), None, 2 * chunk + 1, 0) is None
    assert asked == [chunk, chunk + 1]


def test_far_from_the_bound_the_search_halves_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, shapes, first = scored_shapes()
    bound = first - 24
    asked: list[int] = []
    left = 1

    def ways(registers: int) -> list[placing.Limits]:
        asked.append(registers)
        return [{}, {}]

    def find_nothing(
        bases: object, space: object, steps: int, compared: int, state: object
    ) -> tuple[int, int]:
        tried.append(steps)
        return left, steps

    tried: list[int] = []
    monkeypatch.setattr(placing, "tabu_loop", find_nothing)

    def minimize() -> None:
        asked.clear()
        tried.clear()
        budget = placing.SearchBudget(20_000, 0, restarts=15)
        within = replace(shapes, ways=ways)
        best = placing.minimize(model, within, bound, budget, lambda _: None)
        assert best is not None
        assert shapes.used(best) == first

    minimize()
    near = [bound + number for number in range(placing.NEAR_BOUND)]
    assert asked[:4] == near
    assert asked[4:9] == [first - 11, first - 6, first - 3, first - 2, first - 1]
    patient, *fresh = asked[9:]
    assert patient == first - 1
    assert fresh == [first - 1] * 3
    # Every number within both limits, with patience two chunks each, afresh one limit a turn.
    assert len(tried) == 2 * 9 + 2 * 2 + 3 * 2

    left = placing.MANY_LEFT + 1
    minimize()
    assert len(tried) == 2 * 9 + 2
    assert asked[9:] == [first - 1]


def test_a_brief_search_has_one_chunk_and_the_first_limits_alone() -> None:
    _, plain, _ = scored_shapes()
    limits: list[placing.Limits] = [{"v": 3}, {"v": 4}]
    shapes = replace(plain, ways=lambda registers: limits[:registers])
    start = np.zeros(3, np.int64)
    budget = placing.SearchBudget(90_000, 7, start, restarts=10)
    shorter, least = placing.brief(shapes, budget)
    assert [shorter.ways(registers) for registers in (0, 1, 2)] == [[], limits[:1], limits[:1]]
    assert least == placing.SearchBudget(placing.CHUNK_STEPS, 7, start, restarts=0, patience=1)
    assert placing.brief(shapes, budget._replace(steps=5))[1].steps == 5


def test_proofs_end_the_search() -> None:
    """97 registers of 99 are needed at one point; that 98 are too few, blocks prove."""
    (row,) = (row for row in ROWS if row.id == "0c4679ff81f450a0")
    problem = AllocationProblem.from_text(row.normalized)
    found = Search(problem, SearchOptions()).run()
    assert (problem.pressure.maximum[VECTOR], found.registers, found.bound.value) == (97, 99, 99)
    assert found.is_optimal
    assert found.bound.kind is BoundKind.BLOCKS
    check_certificate(problem, found.bound)
    alone = Search(problem, SearchOptions(), Means.TABU).run()
    assert (alone.registers, alone.bound.value) == (99, 97)
