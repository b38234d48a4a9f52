"""What the verifier accepts on real kernels runs without a difference along random paths."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Edits, edit_function
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.selftest.random_edits import random_edits
from verilocc_bench.verification.symbolic import SymbolicChecker
from verilocc_bench.verification.value_walk import Miscompile, ValueWalk

ROWS = load_rows("mini").rows
PATHS = 3
STEPS = 6_000


def walk(
    problem: AllocationProblem, answer: Mapping[str, str], edits: Edits | None = None
) -> ValueWalk:
    edited, findings = edit_function(problem.function, problem.target, edits)
    assert not findings
    bases = {}
    for number in edited.registers:
        base = parse_register_name(problem.target, answer[f"%{number}"])
        assert base is not None
        bases[number] = base.file, base.index
    return ValueWalk(problem.function, problem.target, bases, edited)


def difference(run: ValueWalk, paths: int = PATHS, steps: int = STEPS) -> Miscompile | None:
    found = (run.run(seed, steps) for seed in range(paths))
    return next((each for each in found if each is not None), None)


@pytest.mark.parametrize("arch", sorted({row.arch for row in ROWS}))
def test_edits_that_the_checker_accepts_on_kernels_show_no_difference(arch: str) -> None:
    rows = [row for row in ROWS if row.arch == arch]
    accepted = 0
    for row in sorted(rows, key=lambda row: row.n_instructions)[:4]:
        problem = AllocationProblem.from_text(row.normalized)
        checker = SymbolicChecker(problem.function)
        for seed in range(2):
            split = random_edits(problem, dict(row.label), random.Random(seed), 8)
            assert split is not None
            if not checker.check(split.assignment, split.edits):
                accepted += 1
                run = walk(problem, split.assignment, split.edits)
                assert difference(run, 2) is None
    assert accepted


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_sleeping_threads_see_no_difference_in_valid_answers(target: str) -> None:
    slept = 0
    for seed in range(150):
        problem = AllocationProblem(random_function(seed, target=target))
        answer = random_answer(problem, random.Random(seed))
        if not answer:
            continue
        run = walk(problem, answer)
        slept += bool(run.wakes_in)
        shown = difference(run, 20, 80)
        assert shown is None, f"{problem.normalized}{answer}\n{shown}"
    assert slept > 15
