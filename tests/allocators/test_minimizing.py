"""The search for the fewest registers, value by value, with a pretended solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from verilocc_bench.allocators.exact import minimizing
from verilocc_bench.allocators.exact.exact_placing import ExactResult, ExactStatus
from verilocc_bench.allocators.exact.minimizing import Minimum, minimize
from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import BoundKind
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques, other_pairs
from verilocc_bench.analysis.lower_bounds.records import Refutation
from verilocc_bench.analysis.lower_bounds.search import BoundSearch
from verilocc_bench.analysis.lower_bounds.solver import solver_name
from verilocc_bench.errors import ContradictionError
from verilocc_bench.ir import Assignment, PhysicalRegister, parse_function

SM_80 = "verilocc-bench 1\ntarget sm_80\nregisters R:16 UR:4 P:4 UP:2\n"
GFX942 = "verilocc-bench 1\ntarget gfx942\nregisters v:12 a:8 s:8 vcc:2=vcc_lo,vcc_hi\n"
CLASSES = "class R 1 R\nclass R2 2 R/2\nclass P 1 P\n"
UNKNOWN, INFEASIBLE, FEASIBLE = ExactStatus.UNKNOWN, ExactStatus.INFEASIBLE, ExactStatus.FEASIBLE


def problem_of(text: str) -> AllocationProblem:
    return AllocationProblem(parse_function(text, canonical=False))


def five_registers(fixed: str = "") -> AllocationProblem:
    """A pair and two single ones, which need five registers, and a predicate."""
    head = f"{SM_80}reserved R1\n{CLASSES}bb0\n"
    return problem_of(f"{head}%0:R2=A\n%1:R=A\n%2:R=A\n%3:P=A\nB %0,%1,%2,%3{fixed}\n")


def two_shapes() -> AllocationProblem:
    """Six registers, of which one must be a VGPR: v 6, or v 4 and a 2."""
    values = [f"%{number}:{'AV' if number else 'V'}=A" for number in range(6)]
    uses = ",".join(f"%{number}" for number in range(6))
    head = f"{GFX942}class AV 1 v a\nclass V 1 v\nbb0\n"
    return problem_of(head + "\n".join([*values, f"B {uses}\n"]))


def registers(*bases: str) -> Assignment:
    return {number: PhysicalRegister(base[0], int(base[1:])) for number, base in enumerate(bases)}


WIDE = registers("R2", "R0", "R6", "P2")
"""A valid assignment of `five_registers` that uses seven."""


class Solver:
    """A solver that answers by the limits, and what it and the proof were asked.

    `proofs` are the values whose refutation by a few points succeeds.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        statuses: Mapping[tuple[int, ...], ExactStatus],
        proofs: tuple[int, ...] = (),
        places: Assignment | None = None,
    ) -> None:
        self.statuses, self.proofs, self.places = statuses, proofs, places
        self.asked: list[tuple[tuple[int, ...], float, list[int] | None, int]] = []
        self.claims: list[tuple[Refutation, float]] = []
        self.searches: list[tuple[str, bool, bool]] = []
        monkeypatch.setattr(minimizing, "solve", self.solve)
        monkeypatch.setattr(minimizing, "no_placement_exists", self.no_placement_exists)
        monkeypatch.setattr(minimizing, "BoundSearch", self.bound_search)

    def solve(
        self,
        model: PlacementModel,
        limits: Mapping[str, int],
        *,
        deterministic_time: float,
        hint: Any,
        seed: int,
    ) -> ExactResult:
        assert set(limits) == set(model.files)
        key = tuple(limits.values())
        self.asked.append((key, deterministic_time, None if hint is None else [*hint], seed))
        status = self.statuses.get(key, UNKNOWN)
        bases = None
        if status is FEASIBLE:
            assert self.places is not None
            bases = model.bases(self.places)
        return ExactResult(status, bases, 0.25)

    def no_placement_exists(
        self, problem: AllocationProblem, refutation: Refutation, budget: float
    ) -> bool:
        assert problem.function.blocks
        self.claims.append((refutation, budget))
        return sum(limit for _, limit in refutation.shape) in self.proofs

    def bound_search(
        self, problem: AllocationProblem, group: str, *, solver: bool, schedule: bool
    ) -> BoundSearch:
        self.searches.append((group, solver, schedule))
        return BoundSearch(problem, group, solver=solver, schedule=schedule)


def outcome(least: Minimum) -> tuple[int | None, int, tuple[int, ...], tuple[int, ...]]:
    return least.registers, least.bound.value, least.undecided, least.uncertified


def test_what_the_solver_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Solver(monkeypatch, {})
    least = minimize(five_registers(), deterministic_time=0.5)
    assert outcome(least) == (None, 5, tuple(range(5, 17)), ())
    assert (least.assignment, least.is_optimal) == (None, False)
    assert least.deterministic_time == 0.25 * 12
    assert solver.asked == [((value,), 0.5, None, 0) for value in range(5, 17)]
    assert solver.searches == [(VECTOR, True, True)]
    assert solver.claims == []


def test_the_largest_value_and_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Solver(monkeypatch, {})
    least = minimize(five_registers(), deterministic_time=0.5, most=6, seed=3)
    assert least.undecided == (5, 6)
    assert solver.asked == [((5,), 0.5, None, 3), ((6,), 0.5, None, 3)]


def test_an_assignment_to_be_beaten(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Solver(monkeypatch, {})
    problem = five_registers()
    least = minimize(problem, deterministic_time=0.5, best=WIDE)
    assert outcome(least) == (7, 5, (5, 6), ())
    assert not least.is_optimal
    # The predicate is no register of the vector files.
    assert least.assignment == {number: WIDE[number] for number in range(3)}
    (model,) = (m for m in placement_models(problem) if "R" in m.files)
    hint = model.bases(WIDE).tolist()
    assert solver.asked == [((5,), 0.5, hint, 0), ((6,), 0.5, hint, 0)]
    assert minimize(problem, deterministic_time=0.5, best=WIDE, most=5).undecided == (5,)


@pytest.mark.parametrize(
    ("statuses", "proofs", "expected"),
    [
        ((INFEASIBLE, INFEASIBLE, INFEASIBLE), (), (None, 5, (), (5, 6, 7))),
        ((INFEASIBLE, INFEASIBLE, INFEASIBLE), (5, 6, 7), (None, 8, (), ())),
        # A proof above a value that nobody has refuted raises no bound.
        ((UNKNOWN, INFEASIBLE, UNKNOWN), (6,), (None, 5, (5, 7), (6,))),
        ((INFEASIBLE, INFEASIBLE, UNKNOWN), (6,), (None, 5, (7,), (5, 6))),
        ((INFEASIBLE, UNKNOWN, INFEASIBLE), (5, 7), (None, 6, (6,), (7,))),
        ((INFEASIBLE, INFEASIBLE, FEASIBLE), (5, 6), (7, 7, (), ())),
        ((INFEASIBLE, FEASIBLE, UNKNOWN), (5,), (7, 6, (), ())),
        ((UNKNOWN, INFEASIBLE, FEASIBLE), (6,), (7, 5, (5,), (6,))),
    ],
)
def test_value_by_value(
    statuses: tuple[ExactStatus, ...],
    proofs: tuple[int, ...],
    expected: tuple[int | None, int, tuple[int, ...], tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Solver(
        monkeypatch, {(value,): status for value, status in enumerate(statuses, 5)}, proofs, WIDE
    )
    least = minimize(five_registers(), deterministic_time=0.5, most=7)
    assert outcome(least) == expected
    assert least.is_optimal == (expected[0] == expected[1])
    assert (least.assignment is None) == (expected[0] is None)
    if least.bound.value > 5:
        (refutation,) = least.bound.refutations
        assert least.bound.kind is BoundKind.PLACEMENT
        assert refutation.shape == (("R", least.bound.value - 1),)


def test_registers_that_the_function_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    Solver(monkeypatch, {})
    least = minimize(five_registers(",R8"), deterministic_time=0.5, best=WIDE)
    assert outcome(least) == (9, 9, (), ())


def test_an_assignment_below_the_bound_is_a_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Solver(monkeypatch, {})
    problem = five_registers()
    wrong = registers("R0", "R2", "R2", "P0")
    with pytest.raises(ContradictionError) as caught:
        minimize(problem, deterministic_time=0.5, best=wrong)
    assert str(caught.value) == (
        f"function {problem.id}: the assignment to be beaten is valid and uses 3 registers, "
        "a lower bound says that 4 are needed"
    )


V6, V4A2 = (6, 0), (4, 2)
SPREAD = registers("v0", "v1", "v2", "v3", "a0", "a1")


@pytest.mark.parametrize(
    ("statuses", "proofs", "expected"),
    [
        ({V6: UNKNOWN, V4A2: INFEASIBLE}, (6,), (None, 6, (6,), ())),
        ({V6: INFEASIBLE, V4A2: UNKNOWN}, (6,), (None, 6, (6,), ())),
        ({V6: INFEASIBLE, V4A2: INFEASIBLE}, (6,), (None, 7, (), ())),
        ({V6: INFEASIBLE, V4A2: INFEASIBLE}, (), (None, 6, (), (6,))),
        ({V6: UNKNOWN, V4A2: FEASIBLE}, (), (6, 6, (), ())),
    ],
)
def test_shape_by_shape(
    statuses: dict[tuple[int, ...], ExactStatus],
    proofs: tuple[int, ...],
    expected: tuple[int | None, int, tuple[int, ...], tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solver = Solver(monkeypatch, statuses, proofs, SPREAD)
    least = minimize(two_shapes(), deterministic_time=0.5, most=6)
    assert outcome(least) == expected
    assert [limits for limits, *_ in solver.asked] == [V6, V4A2]
    assert least.deterministic_time == 0.5
    if expected[0] is not None:
        assert least.assignment == SPREAD
    if expected[1] == 7:
        shapes = [refutation.shape for refutation in least.bound.refutations]
        assert shapes == [(("v", 6), ("a", 0)), (("v", 4), ("a", 2)), (("v", 0), ("a", 6))]


def test_files_that_no_class_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{GFX942}class A 1 a\nclass V 1 v\nbb0\n%0:V=C\n%1:V=C\n%2:A=C\n%3:A=C\nB %0,%1,%2,%3\n"
    places = registers("v1", "v0", "a0", "a1")
    solver = Solver(monkeypatch, {(4,): FEASIBLE, (2,): FEASIBLE}, places=places)
    least = minimize(problem_of(text), deterministic_time=0.5)
    assert (least.assignment, least.is_optimal) == (places, True)
    assert [limits for limits, *_ in solver.asked] == [(4,), (2,)]


HOT_LATE = (
    "%0:R=A\n%1=A\nB %0\n%2=A\nB %1\n%3=A\nB %2\n%4:P=A\n@%4 %5:R=A\n@%4 %6=A\n@!%4 %7=A\n"
    "%8=A\n@%4 B %5,%6\n@!%4 B %7\n%9=A\nB %8,%3\n%10=A\nB %9\n%11=A\nB %10,%11\n"
)
HOT_FIRST = "%0:R=A\n%1=A\n%2=A\nB %0,%1\n%3=A\nB %2\n%4=A\nB %3,%4\n"


@pytest.mark.parametrize(
    ("body", "value", "windows"),
    [(HOT_LATE, 4, [(4, 5), (3, 5), (2, 6)]), (HOT_FIRST, 3, [(0, 1), (0, 2)])],
)
def test_the_points_of_a_refutation(
    body: str, value: int, windows: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point with the most lanes, more and more around it, then all and pairs beside them."""
    problem = problem_of(f"{SM_80}{CLASSES}bb0\n{body}")
    cliques, pairs = maximal_cliques(problem, ("R",)), other_pairs(problem, ("R",))
    assert bool(pairs) == (body == HOT_LATE)
    parts = [cliques[first:last] for first, last in windows]
    solver = Solver(monkeypatch, {(value,): INFEASIBLE})
    least = minimize(problem, deterministic_time=0.5, most=value)
    assert least.uncertified == (value,)
    assert [refutation.cliques for refutation, _ in solver.claims] == [*parts, cliques + pairs]
    for refutation, budget in solver.claims:
        kind, shape, name = BoundKind.PLACEMENT, (("R", value),), solver_name()
        assert (refutation.kind, refutation.shape, refutation.solver) == (kind, shape, name)
        assert budget == 0.5
    # The first that succeeds is the refutation.
    solver = Solver(monkeypatch, {(value,): INFEASIBLE}, (value,))
    (found,) = minimize(problem, deterministic_time=0.5, most=value).bound.refutations
    assert (found.cliques, len(solver.claims)) == (parts[0], 1)
