"""Demonstrations: valid, by their own prices, and the better one is kept."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("numpy")

from tests.training.small import generated, smallest
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.ir import print_function
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.decisions import DecisionFormat
from verilocc_bench.model.prompts.state import STATE
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.training import teacher
from verilocc_bench.training.teacher import Policy, best_demonstration, demonstrate
from verilocc_bench.verification import IndependentVerifier
from verilocc_bench.verification.fast import FastVerifier
from verilocc_bench.views import problem_of

AGAINST_CONFLICTS = Policy(grows=1.0, conflicts=10.0, copies=0.02)
TIGHT = Policy(grows=1.0, conflicts=0.2, copies=0.05, idle=0.1)
FIRST = Policy(grows=0.0)
WASTEFUL = Policy(grows=-1.0)


@cache
def problems() -> tuple[AllocationProblem, ...]:
    return tuple(problem_of(row) for row in (*smallest(2), *generated(12)))


@cache
def tight() -> tuple[AllocationProblem, ...]:
    """Functions with few registers, where a first choice may be in the way of a later one."""
    texts = [print_function(random_function(s, registers=24, target="gfx90a")) for s in range(20)]
    found = [AllocationProblem.from_text(text, "here") for text in texts]
    return tuple(problem for problem in found if problem.function.virtual_registers)


def offers(turn: Turn) -> dict[str, dict[str, int]]:
    """What a prompt of `candidates` offers, read without the code under test."""
    found = {}
    for line in turn.prompt.splitlines()[1:]:
        name, *rest = line.split(" ")
        found[name] = {rest[n]: int(rest[n + 1]) for n in range(0, len(rest), 2)}
    return found


@pytest.mark.parametrize("style", [STATE, CANDIDATES], ids=lambda style: style.name)
@pytest.mark.parametrize("detours", [0.0, 0.3])
def test_every_answer_is_valid(style: DecisionFormat, detours: float) -> None:
    answered = 0
    for problem in problems():
        run = demonstrate(problem, style, Policy(detours=detours), 5)
        if not run.answer:
            assert run.dead_ends
            continue
        answered += 1
        assert len(run.answer) == len(problem.function.virtual_registers)
        assert FastVerifier(problem).verify(run.answer).valid
        if len(run.answer) < 100:
            assert IndependentVerifier(problem).verify(run.answer).valid
        assert len(run.turns) >= len(run.answer)
    assert answered >= 10


def test_dead_ends_are_made_room_for() -> None:
    ends = 0
    for problem in tight():
        run = demonstrate(problem, STATE, Policy())
        if run.answer and run.dead_ends:
            ends += run.dead_ends
            assert FastVerifier(problem).verify(run.answer).valid
    assert ends


def test_there_is_an_end_to_making_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "MOST_DEAD_ENDS", 0)
    failed = 0
    for problem in tight():
        run = demonstrate(problem, STATE, Policy())
        failed += not run.answer
        assert bool(run.answer) != bool(run.dead_ends)
    assert failed


@pytest.mark.parametrize("policy", [AGAINST_CONFLICTS, TIGHT, FIRST, Policy()])
@pytest.mark.parametrize("detours", [0.0, 0.5])
def test_the_choice_is_the_cheapest(policy: Policy, detours: float) -> None:
    weights = {"grows": policy.grows, "copies": -policy.copies, "idle": policy.idle}
    policy = Policy(policy.grows, policy.conflicts, policy.copies, policy.idle, detours)
    for turn in demonstrate(problems()[0], CANDIDATES, policy, 3).turns:
        prices = {}
        for name, features in offers(turn).items():
            digits = features["conflicts"]
            reads = 2 ** (digits - 1) if digits else 0
            prices[name] = policy.conflicts * reads + sum(
                weight * features[feature] for feature, weight in weights.items()
            )
        assert prices[turn.completion] == min(prices.values())
        # Of equals the first.
        cheapest = [name for name, price in prices.items() if price == prices[turn.completion]]
        assert cheapest[0] == turn.completion


def test_a_policy_against_conflicts_has_fewer() -> None:
    problem = problems()[0]
    fewer, most = (
        count_bank_conflicts(problem, demonstrate(problem, CANDIDATES, policy).answer).any
        for policy in (AGAINST_CONFLICTS, FIRST)
    )
    assert fewer < most


def test_detours_change_states_and_not_what_is_learnt() -> None:
    problem = problems()[0]
    straight = demonstrate(problem, CANDIDATES, Policy(), 1)
    crooked = demonstrate(problem, CANDIDATES, Policy(detours=0.5), 1)
    assert [turn.prompt for turn in straight.turns] != [turn.prompt for turn in crooked.turns]
    wanted = {turn.prompt: turn.completion for turn in straight.turns}
    assert all(
        wanted.get(turn.prompt, turn.completion) == turn.completion for turn in crooked.turns
    )
    # What was learnt is not always what was done.
    asked = [turn.prompt.split()[0] for turn in crooked.turns]
    done = [crooked.answer[register] for register in asked]
    assert done != [turn.completion for turn in crooked.turns]
    assert [straight.answer[t.prompt.split()[0]] for t in straight.turns] == [
        turn.completion for turn in straight.turns
    ]


def test_the_better_run_is_kept() -> None:
    problem = problems()[0]
    runs = {policy: demonstrate(problem, CANDIDATES, policy, 2) for policy in (WASTEFUL, TIGHT)}
    used = {p: registers_used(problem, run.answer) for p, run in runs.items()}
    assert used[TIGHT] < used[WASTEFUL]
    for order in ((WASTEFUL, TIGHT), (TIGHT, WASTEFUL)):
        assert best_demonstration(problem, CANDIDATES, order, 2).answer == runs[TIGHT].answer


def registers_used(problem: AllocationProblem, answer: dict[str, str]) -> int:
    found = FastVerifier(problem).verify(answer)
    assert found.valid
    return problem.target.vector_use(found.registers_used)


def test_a_run_with_an_answer_is_better_than_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems()[1]
    good = demonstrate(problem, CANDIDATES, Policy())
    runs = iter([teacher.Demonstration(dead_ends=1), good])
    monkeypatch.setattr(teacher, "demonstrate", lambda *_, **__: next(runs))
    assert best_demonstration(problem, CANDIDATES, [FIRST, TIGHT]) is good


@pytest.mark.parametrize("style", [STATE, CANDIDATES], ids=lambda style: style.name)
def test_the_same_seed_gives_the_same_turns(style: DecisionFormat) -> None:
    problem, policy = problems()[1], Policy(detours=0.2)
    first, again, other = (
        demonstrate(problem, style, policy, seed, every=3).turns for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_one_decision_of_so_many() -> None:
    problem = problems()[0]
    whole = demonstrate(problem, STATE, Policy()).turns
    some = demonstrate(problem, STATE, Policy(), every=4).turns
    assert len(whole) / 8 < len(some) < len(whole) / 2
    assert {turn.prompt for turn in some} <= {turn.prompt for turn in whole}
