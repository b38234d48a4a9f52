"""Proofs that nothing fits: they hold, they are told without figures that mean nothing."""

from __future__ import annotations

import pytest

from tests.analysis.brute_force import fewest_registers
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import lower_bound, proves_infeasible
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.errors import AllocationFailed, ContradictionError
from verilocc_bench.verification import FastVerifier

HEADER = "verilocc-bench 1\ntarget gfx942\nregisters v:{v} a:{a} s:8 vcc:2=vcc_lo,vcc_hi\n"

CROWDED = HEADER.format(v=2, a=0) + "class V 1 v\nbb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\n"

BEYOND = HEADER.format(v=4, a=0) + "class V 1 v\nbb0(v7)\n%0=A v7\nB %0\n"
"""A live-in register beyond the budget: it counts, and takes nothing from the others."""


def _problem(text: str) -> AllocationProblem:
    return AllocationProblem.from_text(text)


@pytest.mark.parametrize("name", ["tabu-search", "best", "cp-sat"])
def test_allocators_say_which_lanes_do_not_fit(name: str) -> None:
    with pytest.raises(AllocationFailed, match="proved infeasible: 3 lanes") as caught:
        BUILT_IN[name].allocate(Request(_problem(CROWDED)))
    assert "513" not in caught.value.message
    assert "live-range-splitting" in caught.value.message or name != "best"


@pytest.mark.parametrize("name", ["tabu-search", "best", "cp-sat"])
def test_registers_beyond_the_budget_prove_nothing(name: str) -> None:
    problem = _problem(BEYOND)
    bound = lower_bound(problem)
    assert (bound.value, fewest_registers(problem)) == (8, 8)
    assert not proves_infeasible(problem, bound)
    answer = BUILT_IN[name].allocate(Request(problem))
    verdict = FastVerifier(problem).verify(answer)  # type: ignore[arg-type]
    assert verdict.valid
    assert verdict.registers_used is not None
    assert verdict.registers_used[VECTOR] == 8


def test_an_answer_below_a_bound_is_an_internal_error() -> None:
    problem = _problem(CROWDED)
    check_against_answer(problem, 3, 3, "an answer")
    with pytest.raises(ContradictionError, match=f"{problem.id}: an answer is valid and uses 2"):
        check_against_answer(problem, 3, 2, "an answer")
