"""The independent check accepts no certificate of a bound that some assignment undercuts."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import combinations

import pytest

from tests.analysis.bounds import names
from tests.analysis.brute_force import fewest_registers
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
    check_certificate,
)
from verilocc_bench.analysis.lower_bounds.checking import _check_clique
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.shapes import most_registers, shapes_of_value
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.selftest.oracle import Oracle

CLAIMS = 10


def _optimum(problem: AllocationProblem) -> int | None:
    """The fewest registers; None where there is no answer, or it takes long to say."""
    choices = 1
    for register_class in problem.function.virtual_registers:
        choices *= max(len(problem.placements.legal[register_class]), 1)
    if choices > 20_000:
        return None
    for model in ("linear-scan", "cp-sat"):
        with suppress(AllocationFailed):
            BUILT_IN[model].allocate(Request(problem))  # the other files' registers fit too
            return fewest_registers(problem)
    return None


def _claim(
    problem: AllocationProblem, value: int, cliques: list[Clique], generator: random.Random
) -> LowerBound:
    """A certificate that is shaped as one of that value would be, and proves nothing."""
    kind = generator.choice(list(BoundKind))
    shapes = shapes_of_value(problem, VECTOR, value - 1)
    refutations = tuple(
        Refutation(kind, _changed(problem, shape, generator), _drawn(problem, cliques, generator))
        for shape in shapes
    )
    return LowerBound(VECTOR, value, kind, refutations)


def _changed(problem: AllocationProblem, shape: Shape, generator: random.Random) -> Shape:
    """A shape, sometimes without a file, with one more, or with a lower limit."""
    limits = dict(shape)
    change = generator.random()
    if change < 0.15:
        del limits[generator.choice(list(limits))]
    elif change < 0.3:
        limits[generator.choice(problem.target.files).name] = generator.randrange(5)
    elif change < 0.4:
        file = generator.choice(list(limits))
        limits[file] = max(limits[file] - generator.randint(1, 3), 0)
    return tuple(limits.items())


def _drawn(
    problem: AllocationProblem, cliques: list[Clique], generator: random.Random
) -> tuple[Clique, ...]:
    """Some cliques, of any files, sometimes with a lane that does not belong there."""
    drawn = generator.sample(cliques, min(len(cliques), generator.randint(0, 3)))
    classes = problem.function.virtual_registers
    if drawn and classes and generator.random() < 0.3:
        first = drawn[0]
        register = generator.randrange(len(classes))
        lane = register, generator.randrange(classes[register].width)
        place = first.point, first.block, first.instruction
        drawn[0] = Clique(*place, (*first.lanes, lane), first.fixed)
    return tuple(drawn)


@pytest.mark.slow
def test_false_certificates_are_rejected() -> None:
    generator = random.Random(0)
    rejected = 0
    for seed in range(240):
        target = ("gfx90a", "gfx942", "sm_80")[seed % 3]
        function = random_function(seed, registers=6, target=target, varied=True)
        problem = AllocationProblem(function)
        fewest = _optimum(problem)
        if fewest is None:
            continue
        most = most_registers(problem, VECTOR)
        files = [file.name for file in problem.target.files]
        cliques = [c for file in files for c in maximal_cliques(problem, (file,))]
        for _ in range(CLAIMS):
            value = generator.choice((fewest + 1, fewest + 2, most + 1))
            claim = _claim(problem, value, cliques, generator)
            try:
                check_certificate(problem, claim)
            except InputError:
                rejected += 1
            else:
                raise AssertionError((seed, value, fewest, claim))
    assert rejected > 1_000


def _is_clique(problem: AllocationProblem, *lanes: tuple[int | str, int]) -> bool:
    """True if the check takes these lanes, of registers or of files, for a clique."""
    own = tuple(lane for lane in lanes if not isinstance(lane[0], str))
    fixed = tuple(lane for lane in lanes if isinstance(lane[0], str))
    try:
        _check_clique(problem, Clique(0, 0, 0, own, fixed), "")  # type: ignore[arg-type]
    except InputError:
        return False
    return True


def test_two_lanes_are_a_clique_where_one_unit_would_destroy_a_value() -> None:
    """By the oracle, which walks the paths from each definition to its uses."""
    outcomes = {True: 0, False: 0}
    for seed in range(120):
        target = ("gfx90a", "gfx942", "sm_80")[seed % 3]
        problem = AllocationProblem(random_function(seed, registers=6, blocks=5, target=target))
        oracle = Oracle(problem.function)
        for a, b in combinations(names(problem), 2):
            if a[0] == b[0] or (isinstance(a[0], str) and isinstance(b[0], str)):
                continue
            collide = oracle.collide(a, b)
            assert _is_clique(problem, a, b) == collide, (a, b, problem.normalized)
            outcomes[collide] += 1
    assert min(outcomes.values()) > 1_000
