"""The law of bounds: it holds on functions of every shape, and what breaks it is found."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.brute_force import fewest_registers
from verilocc_bench.allocators import BUILT_IN, searching
from verilocc_bench.allocators.registry import BuiltIn
from verilocc_bench.allocators.search import portfolio
from verilocc_bench.allocators.search.options import Means
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import LowerBound, lower_bound, proves_infeasible
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.ir import Assignment, PhysicalRegister, parse_function
from verilocc_bench.selftest import bound_law
from verilocc_bench.selftest.bound_law import Bounds, breaches
from verilocc_bench.selftest.campaign import Campaign, CampaignOutcome
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.verification import FastVerifier

TARGETS = ("gfx90a", "gfx942", "sm_80")


def _problems(first: int, last: int, registers: int = 8) -> list[AllocationProblem]:
    """Functions of varied budgets, classes and fixed registers."""
    found = []
    for seed in range(first, last):
        function = random_function(seed, registers=registers, target=TARGETS[seed % 3], varied=True)
        problem = AllocationProblem(function)
        try:
            _ = problem.liveness
        except InputError:  # the guards are beyond analysis
            continue
        found.append(problem)
    return found


def test_functions_are_of_every_shape() -> None:
    seen = set()
    for problem in _problems(0, 300):
        function = problem.function
        scored = set(problem.target.vector_files)
        mix = {frozenset(c.files) & scored for c in function.virtual_registers} - {frozenset()}
        seen.add("+".join(sorted("".join(sorted(files)) for files in mix)))
        operands = [o for _, _, i in function.instructions() for o in i.definitions + i.uses]
        budgets = {file.name: file.count for file in function.files}
        seen |= {f"width {c.width}" for c in function.virtual_registers}
        seen |= {"tied" for o in operands if o.tied_to is not None}
        seen |= {"reserved" for _ in function.reserved}
        seen |= {"guard" for _, _, i in function.instructions() if i.guard is not None}
        seen |= {"beyond" for u in function.live_ins if u.first >= budgets[u.file]}
        seen |= {"cut" for c in function.virtual_registers if ".to" in c.name}
    wanted = {"a", "v", "a+v", "av", "a+av", "av+v", "a+av+v", "R"}
    wanted |= {f"width {width}" for width in (1, 2, 3, 4, 8)}
    assert seen >= wanted | {"tied", "reserved", "guard", "beyond", "cut"}


def _some(first: int, then: int, last: int) -> Any:
    """Two ranges of seeds, of which the second is exhaustive."""
    further = pytest.param(then, last, marks=pytest.mark.exhaustive)
    return pytest.mark.parametrize(("first", "last"), [(first, then), further])


@pytest.mark.slow
@_some(0, 36, 240)
def test_valid_answers_keep_to_bounds_that_can_be_checked(first: int, last: int) -> None:
    generator = random.Random(0)
    held = impossible = 0
    for number, problem in enumerate(_problems(first, last)):
        bounds = Bounds(problem, solver=number % 4 == 0)
        assert bounds.refused is None
        verifier = FastVerifier(problem)
        for _ in range(3):
            answer = random_answer(problem, generator)
            verdict = verifier.verify(answer or {})
            if verdict.valid and verdict.registers_used is not None:
                assert bounds.contradiction(verdict.registers_used) is None, problem.normalized
                held += 1
        claimed = any(proves_infeasible(problem, bound) for bound in bounds.every)
        if claimed:
            assert fewest_registers(problem) is None or _others_fail(bounds), problem.normalized
            impossible += 1
    assert held > (last - first) * 0.8
    assert impossible > (last - first) / 12


def _others_fail(bounds: Bounds) -> bool:
    """Whether it is another file than the scored ones that a bound has proved to be too small."""
    return not proves_infeasible(bounds.problem, bounds.every[0])


@pytest.mark.slow
@_some(1_000, 1_012, 1_090)
def test_allocators_contradict_neither_proofs_nor_each_other(first: int, last: int) -> None:
    generator = random.Random(1)
    answered = 0
    for problem in _problems(first, last):
        known = random_answer(problem, generator)
        broken, answers = breaches(problem, known)
        assert not broken, (broken, problem.normalized)
        answered += answers
    assert answered > 3 * (last - first)


def _found_by_campaign(kind: str) -> CampaignOutcome:
    def stop(outcome: CampaignOutcome) -> None:
        if any(found.startswith(kind) or found.endswith(kind) for found in outcome.kinds):
            raise KeyboardInterrupt

    outcome = Campaign(4, mutants=4_000).run(stop)
    assert outcome.kinds, kind
    return outcome


def test_a_bound_that_is_too_high_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_high(problem: AllocationProblem, group: str, *, solver: bool) -> LowerBound:
        bound = lower_bound(problem, group, solver=solver)
        return replace(bound, value=bound.value + 1)

    monkeypatch.setattr(bound_law, "lower_bound", too_high)
    monkeypatch.setattr(bound_law, "check_certificate", lambda *_: None)
    outcome = _found_by_campaign("accepts what lower bound rejects")
    (found, *_) = outcome.disagreements
    assert found.kind.endswith("accepts what lower bound rejects")
    assert found.opinion.proved is not None
    assert "are proved" in str(found)
    assert found.to_json()["proved"] == found.opinion.proved
    assert found.case.function.instruction_count <= 3


def test_a_certificate_that_is_refused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise InputError("no proof at all")

    monkeypatch.setattr(bound_law, "check_certificate", refuse)
    outcome = _found_by_campaign("accepts what lower bound rejects")
    assert "is refused: no proof at all" in str(outcome.disagreements[0])


@pytest.mark.slow
def test_a_false_claim_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tabu search that takes every function of one block for infeasible."""
    search = searching.SearchAllocator._search

    def claiming(self, problem, *rest):  # type: ignore[no-untyped-def]
        if self.means is Means.TABU and len(problem.function.blocks) == 1:
            raise AllocationFailed("proved infeasible: it is not")
        return search(self, problem, *rest)

    monkeypatch.setattr(searching.SearchAllocator, "_search", claiming)
    outcome = _found_by_campaign("tabu-search proves infeasible")
    kinds = set(outcome.kinds)
    assert "tabu-search proves infeasible what best answers" in kinds
    found = outcome.disagreements[0]
    assert found.case.function.instruction_count <= 2
    assert FastVerifier(AllocationProblem(found.case.function)).verify(found.case.assignment).valid


def _with_best(monkeypatch: pytest.MonkeyPatch, answer: dict[str, str] | None) -> None:
    """`best` is one that answers this, or nothing."""

    def given(_: AllocationProblem) -> Assignment:
        if answer is None:
            raise AllocationFailed("unknown: it was not looked for")
        return {int(name[1:]): PhysicalRegister("v", int(answer[name][1:])) for name in answer}

    worse = {**BUILT_IN, "best": BuiltIn("best", given, "")}
    monkeypatch.setattr(bound_law, "BUILT_IN", worse)


@pytest.mark.slow
def test_a_best_that_is_not_the_best_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """verilocc-bench 1
target gfx942
registers v:8 a:0 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0
%0=A
B %0
"""
    problem = AllocationProblem(parse_function(text))
    assert breaches(problem, {"%0": "v0"})[0] == []
    _with_best(monkeypatch, {"%0": "v1"})
    kinds = {breach.kind for breach in breaches(problem, {"%0": "v0"})[0]}
    assert "best is worse than linear-scan" in kinds
    assert "best is worse than a random answer" in kinds
    _with_best(monkeypatch, {"%0": "v8"})
    kinds = {breach.kind for breach in breaches(problem)[0]}
    assert "best gives a wrong answer" in kinds
    _with_best(monkeypatch, None)
    kinds = {breach.kind for breach in breaches(problem)[0]}
    assert "best finds nothing where cp-sat answers" in kinds


def test_an_allocator_that_contradicts_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "proves_infeasible", lambda *_: True)
    monkeypatch.setattr(portfolio, "why_infeasible", lambda *_: "no reason")
    outcome = _found_by_campaign("best contradicts itself")
    messages = [each.opinion.proved or "" for each in outcome.disagreements]
    assert any("no reason; yet" in message for message in messages)
