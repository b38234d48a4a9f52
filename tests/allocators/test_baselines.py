"""Baselines: valid wherever they answer, on real kernels and generated functions."""

from __future__ import annotations

import pytest

from tests.generated import random_function
from tests.sampling import some_rows
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verification import FastVerifier

ROWS = load_rows("mini").rows
SPLIT_ROWS = load_rows("mini", track="split").rows


@pytest.mark.parametrize("name", ["linear-scan", "graph-coloring"])
def test_answers_are_valid_or_absent_on_generated_functions(name: str) -> None:
    answered = 0
    for seed in range(160):
        problem = AllocationProblem(random_function(seed))
        try:
            answer = BUILT_IN[name].allocate(Request(problem))
        except AllocationFailed as error:
            assert "fits nowhere" in str(error)  # noqa: PT017
            continue
        verdict = FastVerifier(problem).verify(answer)
        assert verdict.valid, seed
        assert verdict.registers_used is not None
        for group, bound in problem.pressure.maximum.items():
            if group != "s":  # classes of S may be in VCC as well
                assert verdict.registers_used[group] >= bound, seed
        answered += 1
    assert answered > 80


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear-scan", "graph-coloring"])
@pytest.mark.parametrize("row", [*some_rows(ROWS), *some_rows(SPLIT_ROWS)], ids=lambda row: row.id)
def test_answers_are_valid_or_absent_on_real_kernels(row, name) -> None:  # type: ignore[no-untyped-def]
    problem = AllocationProblem.from_text(row.normalized)
    try:
        answer = BUILT_IN[name].allocate(Request(problem))
    except AllocationFailed:
        assert row.track == "split" or row.arch == "sm_80"  # tight budgets, another schedule
        return
    verdict = FastVerifier(problem).verify(answer)
    assert verdict.valid
    assert verdict.registers_used is not None
    assert verdict.registers_used["vector"] >= problem.pressure.maximum["vector"]


def test_the_labels_are_replayed() -> None:
    row = ROWS[0]
    problem = AllocationProblem.from_text(row.normalized)
    request = Request(problem, label=row.label)
    assert BUILT_IN["compiler"].allocate(request).assignment == row.label
    with pytest.raises(AllocationFailed):
        BUILT_IN["compiler"].allocate(Request(problem))
