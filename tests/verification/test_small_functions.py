"""All judges and a walk over paths on small generated functions, in small portions.

Of most tests a few portions take milliseconds each, so that a mutation of the code can be tried
on them; the thousands of functions beside them are exhaustive.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.generated import random_function
from tests.mutation import mutate
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.edits.findings import OF_VALUES, Finding, FindingKind, Verdict
from verilocc_bench.ir import FixedUnits, print_function
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.smt import SMTVerifier
from verilocc_bench.verification.value_walk import ValueWalk
from verilocc_bench.verification.verifier import IndependentVerifier

SEEDS = [
    *(range(start, start + 10) for start in range(0, 120, 30)),
    *(
        pytest.param(range(start, start + 268), marks=pytest.mark.exhaustive)
        for start in range(120, 2_800, 268)
    ),
]
KINDS = {
    "plain": {},
    "guarded": {"guarded": True},
    "gfx942": {"target": "gfx942"},
    "sm_80": {"target": "sm_80"},
    "gfx942 calls": {"target": "gfx942", "calls": True},
    "sm_80 calls": {"target": "sm_80", "calls": True},
}

Bases = Mapping[int, tuple[str, int]]


def draw(problem: AllocationProblem, generator: random.Random) -> tuple[dict[str, str], Bases]:
    """Legal bases at random, mostly among the first of each class: about half are right."""
    answer: dict[str, str] = {}
    bases: dict[int, tuple[str, int]] = {}
    for number, register_class in enumerate(problem.function.virtual_registers):
        legal = list(problem.placements.legal[register_class].items())
        unit, name = generator.choice(legal[: generator.choice((1, 2, len(legal)))])
        base = problem.placements.register(unit)
        answer[f"%{number}"], bases[number] = name, (base.file, base.index)
    return answer, bases


def ends(problem: AllocationProblem, bases: Bases) -> dict[str, int]:
    """By file the index after the highest unit that the function or the answer names."""
    function, found = problem.function, dict.fromkeys((f.name for f in problem.target.files), 0)
    named = [(units.file, units.first + units.count) for units in function.live_ins]
    for _, _, instruction in function.instructions():
        locations = [o.location for o in instruction.definitions + instruction.uses]
        locations += [instruction.guard.location] if instruction.guard else []
        named += [(u.file, u.first + u.count) for u in locations if isinstance(u, FixedUnits)]
    named += [
        (file, index + function.virtual_registers[number].width)
        for number, (file, index) in bases.items()
    ]
    for file, end in named:
        found[file] = max(found[file], end)
    return {VECTOR: problem.target.vector_use(found), **found}


def misplaced(verdict: Verdict) -> set[FindingKind]:
    """Kinds of findings that are not about values or ties."""
    kinds = {finding.kind for finding in verdict.findings}
    return kinds - OF_VALUES - {FindingKind.TIED_MISMATCH}


def collision_pairs(findings: tuple[Finding, ...]) -> set[tuple[str, ...]]:
    return {tuple(sorted(f.registers)) for f in findings if f.kind in OF_VALUES}


def other_findings(findings: tuple[Finding, ...]) -> set[tuple[FindingKind, tuple[str, ...]]]:
    return {(f.kind, f.registers) for f in findings if f.kind not in OF_VALUES}


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: str(seeds.start))
@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_those_of_a_walk_over_paths(kind: str, seeds: range) -> None:
    for seed in seeds:
        function = random_function(seed, registers=9, blocks=5, **KINDS[kind])
        problem = AllocationProblem(function)
        oracle, generator = Oracle(function), random.Random(seed)
        fast, independent = FastVerifier(problem), IndependentVerifier(problem)
        for _ in range(3):
            answer, bases = draw(problem, generator)
            story = f"seed {seed}\n{print_function(function)}\n{answer}"
            valid = oracle.judge(answer)
            verdict, other = fast.verify(answer), independent.verify(answer)
            assert (verdict.valid, other.valid) == (valid, valid), story
            assert bool(verdict.findings) == bool(other.findings) == (not valid), story
            assert not misplaced(verdict) | misplaced(other)
            used = ends(problem, bases)
            assert verdict.registers_used == used, story
            assert verdict.occupancy == problem.target.occupancy(used)
            if valid:
                assert (other.registers_used, other.occupancy) == (used, verdict.occupancy)
            walk = ValueWalk(function, problem.target, bases, None)
            shown = any(walk.run(path, 60) is not None for path in range(3))
            assert not (shown and valid), story


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_that_is_wrong_in_a_few_steps_is_shown_by_a_run(kind: str) -> None:
    shown = wrong = 0
    for seed in range(60):
        function = random_function(seed, registers=9, blocks=3, **KINDS[kind])
        problem = AllocationProblem(function)
        answer, bases = draw(problem, random.Random(seed))
        kinds = {finding.kind for finding in FastVerifier(problem).verify(answer).findings}
        if kinds and FindingKind.TIED_MISMATCH not in kinds:
            wrong += 1
            walk = ValueWalk(function, problem.target, bases, None)
            shown += any(walk.run(path, 60) is not None for path in range(40))
    assert wrong > 10
    assert shown > 0.9 * wrong


@pytest.mark.parametrize("kind", KINDS)
def test_answers_with_registers_in_wrong_places(kind: str) -> None:
    for seed in range(25):
        function = random_function(seed, registers=6, blocks=3, **KINDS[kind])
        if not function.virtual_registers:
            continue
        problem, generator = AllocationProblem(function), random.Random(seed)
        fast, independent = FastVerifier(problem), IndependentVerifier(problem)
        for _ in range(4):
            _, answer = mutate(problem, draw(problem, generator)[0], generator)
            verdict, other = fast.verify(answer), independent.verify(answer)
            assert verdict.valid == other.valid
            story = f"{seed}\n{print_function(function)}\n{answer}"
            assert misplaced(verdict) == misplaced(other), story


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_findings_are_told_and_the_others_counted(kind: str) -> None:
    for seed in range(30):
        function = random_function(seed, registers=8, blocks=4, **KINDS[kind])
        problem = AllocationProblem(function)
        answer, _ = draw(problem, random.Random(seed))
        for judge in (FastVerifier(problem), IndependentVerifier(problem)):
            findings = judge.verify(answer).findings
            assert findings == tuple(sorted(findings, key=Finding.sort_key))
            for count in (0, 1, 2, len(findings) - 1, len(findings), len(findings) + 1):
                if count >= 0:
                    verdict = judge.verify(answer, count)
                    assert verdict.findings == findings[:count]
                    untold = dict(Counter(finding.kind for finding in findings[count:]))
                    assert verdict.untold == untold
                    assert list(verdict.untold) == sorted(untold)


@pytest.mark.parametrize("kind", KINDS)
def test_constraints_say_what_the_fast_check_says(kind: str) -> None:
    for seed in range(8):
        function = random_function(seed, registers=5, blocks=3, **KINDS[kind])
        problem, generator = AllocationProblem(function), random.Random(seed)
        fast, smt = FastVerifier(problem), SMTVerifier(problem, cores=10_000)
        for number in range(3):
            answer, _ = draw(problem, generator)
            if number == 2 and answer:
                _, answer = mutate(problem, answer, generator)
            verdict, other = fast.verify(answer), smt.verify(answer)
            assert (verdict.valid, verdict.registers_used, verdict.occupancy) == (
                other.valid,
                other.registers_used,
                other.occupancy,
            ), f"{seed}\n{print_function(function)}\n{answer}"
            known = {f.to_json()["message"] for f in verdict.findings}
            assert {f.to_json()["message"] for f in other.findings} <= known
            assert other_findings(other.findings) == other_findings(verdict.findings)
            # Where a place is illegal the fast check looks into other files too.
            if not other_findings(verdict.findings):
                assert collision_pairs(other.findings) == collision_pairs(verdict.findings)
