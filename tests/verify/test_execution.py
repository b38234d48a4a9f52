"""What the verifier accepts on real kernels runs without a difference along random paths."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from tests.executor import Executor
from tests.mutation import mutate
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verify import FastVerifier

ROWS = load_rows("mini").rows
PATHS = 3
STEPS = 6_000
MUTANTS = 12


def executor(problem: AllocationProblem, answer: Mapping[str, str]) -> Executor:
    bases = {}
    for number in range(len(problem.function.virtual_registers)):
        base = parse_register_name(problem.target, answer[f"%{number}"])
        assert base is not None
        bases[number] = base.file, base.index
    return Executor(problem.function, bases)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_accepted_answers_compute_what_they_should(row: Row) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    answers = [dict(row.label)]
    try:
        answers.append(dict(BUILT_IN["linear-scan"].allocate(Request(problem))))
    except AllocationFailed:
        assert row.arch == "sm_80"  # within tight budgets
    for answer in answers:
        run = executor(problem, answer)
        assert not any(run.finds_a_difference(seed, STEPS) for seed in range(PATHS))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.arch == "sm_80"], ids=lambda row: f"{row.kernel}-{row.id}"
)
def test_no_accepted_corruption_shows_a_difference(row: Row) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    verifier = FastVerifier(problem)
    generator = random.Random(row.id)
    for _ in range(MUTANTS):
        _, mutant = mutate(problem, dict(row.label), generator)
        if verifier.verify(mutant).valid:
            run = executor(problem, mutant)
            assert not any(run.finds_a_difference(seed, STEPS) for seed in range(PATHS))
