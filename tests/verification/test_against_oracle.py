"""The fast check against two judges that share no code with it, on generated functions."""

from __future__ import annotations

import random

import pytest

from tests.generated import random_function
from tests.sampling import some_of
from tests.value_walk import ValueWalk
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import PhysicalRegister, parse_function, print_function
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification import FastVerifier, FindingKind

COLLISIONS = {
    FindingKind.OVERLAP,
    FindingKind.FIXED_REGISTER_CLOBBERED,
    FindingKind.EARLY_CLOBBER,
}
CHUNK = 400


def random_bases(
    problem: AllocationProblem, generator: random.Random
) -> dict[int, PhysicalRegister]:
    """Legal bases at random, from few registers so that a third or so are valid."""
    return {
        number: problem.placements.register(
            generator.choice(list(problem.placements.legal[register_class]))
        )
        for number, register_class in enumerate(problem.function.virtual_registers)
    }


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("start", some_of(range(0, 10 * CHUNK, CHUNK)))
def test_verdicts_agree_with_a_walk_over_paths(start: int, guarded: bool) -> None:
    valid = witnessed = 0
    for seed in range(start, start + CHUNK):
        function = random_function(seed, registers=7, guarded=guarded)
        problem = AllocationProblem(function)
        oracle = Oracle(function)
        verifier = FastVerifier(problem)
        generator = random.Random(seed)
        for _ in range(6):
            bases = random_bases(problem, generator)
            answer = {
                f"%{n}": problem.placements.legal[function.virtual_registers[n]][
                    problem.placements.unit(base)
                ]
                for n, base in bases.items()
            }
            verdict = verifier.verify(answer)
            expected = not oracle.overlaps({n: (b.file, b.index) for n, b in bases.items()})
            assert verdict.valid == expected, f"seed {seed}\n{print_function(function)}\n{answer}"
            assert {finding.kind for finding in verdict.findings} <= COLLISIONS
            valid += expected
            walk = ValueWalk(function, {n: (b.file, b.index) for n, b in bases.items()})
            differs = any(walk.finds_a_difference(path, 60) for path in range(4))
            assert not (differs and verdict.valid), f"seed {seed}\n{print_function(function)}"
            witnessed += differs
    assert CHUNK / 2 < valid < 5.5 * CHUNK  # both verdicts are put to the test
    assert witnessed > CHUNK / 8


@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
def test_generated_functions_round_trip(guarded: bool) -> None:
    for seed in range(300):
        function = random_function(seed, guarded=guarded)
        text = print_function(function)
        assert parse_function(text) == function
        assert print_function(parse_function(text)) == text
