"""Calls: registers that an instruction destroys, before all judges, bounds and allocators."""

from __future__ import annotations

import pytest

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import check_certificate, lower_bound, proves_infeasible
from verilocc_bench.edits import Answer, parse_edits
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier

TEXT = """verilocc-bench 1
target gfx942
registers v:16 a:4 s:8 vcc:2=vcc_lo,vcc_hi
mask m0 v[0:3] v[6:20] s[0:7]
class V 1 v
bb0(v0)
%0=COPY v0
%1=V_MOV_B32
v0=COPY %0
v0=SI_CALL +v0 ^m0
%2=COPY v0
STORE %0,%1,%2
"""
ONLY = {"%0": "v4", "%1": "v5", "%2": "v0"}


def opinion(text: str, answer: dict[str, str]) -> tuple[bool, list[str]]:
    """True if all judges accept, and the messages of the fast check. They must agree."""
    function = parse_function(text)
    problem = AllocationProblem(function)
    found = BoundedJudges(problem, smt=True, solver=True).judge(Case(function, answer))
    assert not found.disagreements(), found
    assert Oracle(function).judge(answer) == (not found.wrong)
    return not found.wrong, [f.message for f in FastVerifier(problem).verify(answer).findings]


def test_what_lives_across_a_call_is_in_what_it_leaves() -> None:
    assert opinion(TEXT, ONLY) == (True, [])
    right, told = opinion(TEXT, {**ONLY, "%1": "v7"})
    assert not right
    assert told == [
        "bb0 instruction 3 (SI_CALL) destroys v7, which holds %1, defined at bb0 instruction 1 "
        "and next read at bb0 instruction 5"
    ]


def test_what_a_call_reads_last_may_be_in_what_it_destroys() -> None:
    text = TEXT.replace("SI_CALL +v0", "SI_CALL %1,+v0").replace("%0,%1,%2", "%0,%2")
    for name in ("v1", "v5", "v6"):
        assert opinion(text, {**ONLY, "%1": name})[0]


def test_a_definition_of_a_virtual_register_is_not_in_what_its_call_destroys() -> None:
    text = TEXT.replace("v0=SI_CALL", "%2=SI_CALL").replace("%2=COPY v0\n", "")
    assert opinion(text, {**ONLY, "%2": "v4", "%0": "v5", "%1": "v5"})[0] is False
    for name in ("v0", "v3", "v15"):
        assert not opinion(text, {**ONLY, "%2": name})[0]
    problem = AllocationProblem.from_text(text)
    found = IndependentVerifier(problem).verify({**ONLY, "%2": "v1"}).findings
    assert [f.message for f in found] == [
        "bb0 instruction 3 (SI_CALL) writes %2 to v1, which it destroys"
    ]
    assert found[0].kind is FindingKind.FIXED_REGISTER_CLOBBERED


def test_a_register_that_the_call_defines_survives_it() -> None:
    text = TEXT.replace("mask m0 v[0:3]", "mask m0 v[0:5]").replace("%0,%1,%2", "%2")
    text = text.replace("%2=COPY v0", "%2=COPY v0,v1")
    assert opinion(text, {"%0": "v9", "%1": "v10", "%2": "v1"})[0]


def test_a_destroyed_unit_holds_nothing() -> None:
    """v1 is read after the call, but its value is gone: others may be there meanwhile."""
    text = TEXT.replace("bb0(v0)", "bb0(v[0:1])").replace("%0,%1,%2", "%2,v1")
    answer = {"%0": "v4", "%1": "v5", "%2": "v1"}
    assert opinion(text, answer)[0]
    kept = text.replace("v[0:3]", "v0 v[2:3]")
    assert not opinion(kept, answer)[0]


def test_destroyed_units_do_not_count_as_used() -> None:
    problem = AllocationProblem.from_text(TEXT)
    for verifier in (FastVerifier(problem), IndependentVerifier(problem)):
        used = verifier.verify(ONLY).registers_used
        assert used == {"vector": 6, "v": 6, "a": 0, "s": 0, "vcc": 0}
    assert problem.pressure.maximum["vector"] == 3
    assert problem.pressure.maximum["s"] == 0


def test_bounds_know_what_a_call_leaves() -> None:
    problem = AllocationProblem.from_text(TEXT)
    for solver in (False, True):
        bound = lower_bound(problem, solver=solver)
        assert bound.value == 6  # two values live on, and v4 and v5 are left
        check_certificate(problem, bound)
    free = TEXT.replace("v[0:3] v[6:20]", "v[4:20]").replace("+v0 ^m0", "+v0,%0 ^m0")
    assert lower_bound(AllocationProblem.from_text(free)).value == 4 - 1


def test_reserved_units_and_those_beyond_the_budget_may_be_destroyed() -> None:
    text = TEXT.replace("mask m0", "reserved v3 s[6:7]\nmask m0")
    assert opinion(text, ONLY)[0]
    assert lower_bound(AllocationProblem.from_text(text)).value == 6


@pytest.mark.parametrize("name", ["linear-scan", "graph-coloring", "best"])
def test_allocators_keep_values_out_of_what_calls_destroy(name: str) -> None:
    problem = AllocationProblem.from_text(TEXT)
    answer = BUILT_IN[name].allocate(Request(problem))
    assert FastVerifier(problem).verify(answer).valid


def test_a_value_that_no_register_keeps_is_put_away_around_the_call() -> None:
    text = TEXT.replace("v[0:3] v[6:20]", "v[0:20]")
    text = text.replace("a:4", "a:0")
    problem = AllocationProblem.from_text(text)
    bound = lower_bound(problem)
    assert proves_infeasible(problem, bound)
    check_certificate(problem, bound)
    for name in ("spill-everywhere", "live-range-splitting"):
        answer = BUILT_IN[name].allocate(Request(problem))
        assert IndependentVerifier(problem).verify(answer).valid
        assert Answer.of(answer).has_edits


def test_insertions_around_a_call_are_followed() -> None:
    away = {"at": [0, 3], "move": [["%3", "%0"]]}
    back = {"at": [0, 5], "move": [["%0", "%3"]]}
    places = {"%0": "v7", "%1": "v5", "%2": "v0", "%3": "v4"}
    problem = AllocationProblem.from_text(TEXT)

    def valid(*entries: dict[str, object]) -> bool:
        edits = parse_edits({"new": {"%3": "V"}, "insert": list(entries)})
        return IndependentVerifier(problem).verify(Answer(places, edits)).valid

    assert valid(away, back)
    assert not valid(away)
    assert not valid(back)
    places["%3"] = "v8"
    assert not valid(away, back)
