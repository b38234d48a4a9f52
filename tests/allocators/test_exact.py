"""Exact allocation: as good as trying every assignment, and proofs that hold."""

from __future__ import annotations

import _thread
import signal
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest

from tests.analysis.brute_force import fewest_registers
from tests.sampling import in_turns
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.allocators.exact.exact_allocator import constraint_programming
from verilocc_bench.allocators.exact.exact_placing import ExactStatus, solve
from verilocc_bench.allocators.exact.minimizing import minimize
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import BoundKind, lower_bound
from verilocc_bench.analysis.lower_bounds.checking import check_certificate
from verilocc_bench.analysis.lower_bounds.json_form import from_json, to_json
from verilocc_bench.analysis.lower_bounds.solver import solve_interruptibly
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.verification import IndependentVerifier

BUDGET = 0.5


def _five_registers() -> AllocationProblem:
    """A pair and two single ones at once: R0, R2 to R3, and R4."""
    text = (
        "verilocc-bench 1\ntarget sm_80\nregisters R:16 UR:4 P:4 UP:2\nreserved R1\n"
        "class R 1 R\nclass R2 2 R/2\nbb0\n%0:R2=OP\n%1:R=OP\n%2:R=OP\nOP %0,%1,%2\n"
    )
    return AllocationProblem(parse_function(text, canonical=False))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "sm_80"])
def test_the_fewest_registers_of_tiny_functions(target: str) -> None:
    proved = 0
    for seed in range(30):
        problem = AllocationProblem(random_function(seed, registers=6, target=target))
        fewest = fewest_registers(problem)
        least = minimize(problem, deterministic_time=BUDGET)
        assert least.registers == fewest, (seed, problem.normalized)
        check_certificate(problem, least.bound)
        proved += least.is_optimal
    assert proved > 20


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "sm_80"])
def test_answers_are_valid(target: str) -> None:
    answered = 0
    for seed in range(100, 130):
        problem = AllocationProblem(random_function(seed, registers=4, target=target))
        if fewest_registers(problem) is None or not _scalars_fit(problem):
            with pytest.raises(AllocationFailed, match="proved infeasible"):
                constraint_programming(problem)
            continue
        assignment = constraint_programming(problem)
        verdict = IndependentVerifier(problem).verify(answer_from_assignment(problem, assignment))
        assert verdict.valid, (seed, verdict.findings)
        answered += 1
    assert answered > 5


def _scalars_fit(problem: AllocationProblem) -> bool:
    """Whether the other files' registers can be placed, by trying every assignment."""
    state, classes = RegisterState(problem), problem.function.virtual_registers
    scored = set(problem.target.vector_files)
    others = [r for r, c in enumerate(classes) if scored.isdisjoint(c.files)]

    def place(number: int) -> bool:
        if number == len(others):
            return True
        for unit in state.legal(others[number]):
            state.place(others[number], unit)
            if place(number + 1):
                return True
            state.evict(others[number])
        return False

    return place(0)


def test_one_register_fewer_is_infeasible() -> None:
    problem = _five_registers()
    fewest = fewest_registers(problem)
    assert fewest == 5
    model = next(m for m in placement_models(problem) if "R" in m.files)
    found = solve(model, {"R": fewest}, deterministic_time=BUDGET)
    assert found.status is ExactStatus.FEASIBLE
    assert found.bases is not None
    assert model.is_valid(found.bases)
    again = solve(model, {"R": fewest}, deterministic_time=BUDGET, hint=found.bases)
    assert again.status is ExactStatus.FEASIBLE
    none = solve(model, {"R": fewest - 1}, deterministic_time=BUDGET)
    assert none.status is ExactStatus.INFEASIBLE
    assert none.bases is None
    # Without a budget nothing is known.
    assert solve(model, {"R": fewest}, deterministic_time=0.0).status is ExactStatus.UNKNOWN


def test_a_known_assignment_is_kept_where_none_is_better() -> None:
    problem = _five_registers()
    least = minimize(problem, deterministic_time=BUDGET)
    again = minimize(problem, deterministic_time=BUDGET, best=least.assignment)
    assert replace(again, deterministic_time=0.0) == replace(least, deterministic_time=0.0)


HEADS = {
    "gfx942": "registers v:12 a:0 s:8 vcc:2=vcc_lo,vcc_hi\nclass V 1 v\n",
    "sm_80": "registers R:12 UR:4 P:4 UP:2\nclass R 1 R\n",
}
RINGS = [(5, 2), (7, 2), (7, 3), (8, 3), (11, 4), (6, 3)]


def _ring(target: str, count: int, together: int) -> AllocationProblem:
    """A loop whose registers live one after the other, `together` at a time, all the way round.

    Each one's range meets those of its `together` - 1 neighbours on either side: the ranges are
    arcs of a circle.
    """
    lines = [f"verilocc-bench 1\ntarget {target}\n{HEADS[target]}bb0->bb1"]
    lines += [f"%{number}=A" for number in range(together)]
    lines.append("bb1->bb1,bb2")
    lines += [f"%{(number + together) % count}=B %{number}" for number in range(count)]
    return AllocationProblem(parse_function("\n".join([*lines, "bb2", "C\n"])))


@pytest.mark.parametrize(("ring", "target"), in_turns(RINGS, ["gfx942", "sm_80"]))
def test_arcs_of_a_circle_need_more_than_are_live_at_once(
    ring: tuple[int, int], target: str
) -> None:
    """At most `count // together` of them share a register; counting alone proves `together`."""
    count, together = ring
    problem = _ring(target, count, together)
    expected = -(-count // (count // together))
    assert fewest_registers(problem) == expected
    assert lower_bound(problem).value == together
    least = minimize(problem, deterministic_time=BUDGET)
    assert (least.registers, least.bound.value) == (expected, expected)
    assert least.is_optimal
    assert (least.undecided, least.uncertified) == ((), ())
    if expected == together:
        assert least.bound.kind is BoundKind.PRESSURE
        return
    assert least.bound.kind is BoundKind.PLACEMENT
    check_certificate(problem, least.bound)
    assert from_json(to_json(least.bound), problem) == least.bound
    # The same proof of one register more is none, nor is one with any part of the circle left out.
    (refutation,) = least.bound.refutations
    larger = tuple(
        (file, limit + (file in problem.target.vector_files[:1]))
        for file, limit in refutation.shape
    )
    broken = [replace(least.bound, value=expected + 1)]
    broken.append(replace(broken[0], refutations=(replace(refutation, shape=larger),)))
    if together == 2:  # a circle of pairs
        broken += [
            replace(least.bound, refutations=(replace(refutation, cliques=left),))
            for left in combinations(refutation.cliques, len(refutation.cliques) - 1)
        ]
    for claim in broken:
        with pytest.raises(InputError, match=r"no refutation covers|expected a contradiction"):
            check_certificate(problem, claim)


def test_ctrl_c_stops_the_solver_and_goes_on() -> None:
    class Solver:
        def __init__(self) -> None:
            self.parameters = SimpleNamespace()
            self.stopped = _thread.allocate_lock()
            self.stopped.acquire()

        def solve(self, model: object) -> int:
            _thread.interrupt_main()
            self.stopped.acquire()  # until someone stops the search
            return 0

        def stop_search(self) -> None:
            self.stopped.release()

    # A process that was started in the background may ignore the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solve_interruptibly(Solver(), None)  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGINT, handler)
