"""Spill code: valid wherever it is given, on real kernels and on generated functions."""

from __future__ import annotations

import pytest

from tests.generated import random_function
from tests.sampling import some_of
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer, EditKind, edits_to_json, parse_edits
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verification import Verifier
from verilocc_bench.verification.judges import Judges

pytestmark = pytest.mark.slow

SPLIT = load_rows("mini", track="split").rows


@pytest.mark.parametrize("row", some_of(SPLIT), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_every_kernel_of_the_split_track_gets_a_valid_answer(row) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    answer = BUILT_IN["spill-everywhere"].allocate(Request(problem))
    verdict = Verifier(problem).verify(answer)
    assert verdict.valid
    assert verdict.registers_used is not None
    assert Judges(problem).word("value-walk", answer).accepts
    if isinstance(answer, Answer):
        assert parse_edits(edits_to_json(answer.edits)) == answer.edits
        budgets = {file.name: file.count for file in problem.function.files}
        assert all(verdict.registers_used[name] <= count for name, count in budgets.items())


def test_a_transfer_less_is_mostly_wrong() -> None:
    row = next(row for row in SPLIT if row.kernel == "gemm")
    problem = AllocationProblem.from_text(row.normalized)
    answer = BUILT_IN["spill-everywhere"].allocate(Request(problem))
    assert isinstance(answer, Answer)
    verifier = Verifier(problem)
    insertions = answer.edits.insertions
    kinds = {insertion.kind for insertion in insertions}
    assert kinds == {EditKind.SPILL, EditKind.RELOAD}
    outcomes = []
    for left_out in range(0, len(insertions), 9):
        kept = insertions[:left_out] + insertions[left_out + 1 :]
        edits = type(answer.edits)(answer.edits.new, kept, answer.edits.replacements)
        without = Answer(answer.assignment, edits)
        valid = verifier.verify(without).valid
        outcomes.append(valid)
        if valid:  # the register still held what was to be reloaded
            assert insertions[left_out].kind is EditKind.RELOAD
            assert Judges(problem).word("value-walk", without).accepts
    assert outcomes.count(False) > 0.7 * len(outcomes)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("seeds", some_of([range(17), range(17, 60), range(60, 100)]))
def test_generated_functions_that_do_not_fit_are_spilled(guarded: bool, seeds: range) -> None:
    answers = edited = 0
    for seed in seeds:
        function = random_function(seed, registers=60, blocks=20, guarded=guarded)
        problem = AllocationProblem(function)
        try:
            answer = BUILT_IN["spill-everywhere"].allocate(Request(problem))
        except AllocationFailed:
            continue
        answers += 1
        edited += isinstance(answer, Answer)
        if not isinstance(answer, Answer) and any(
            use.tied_to is not None for _, _, i in function.instructions() for use in i.uses
        ):
            continue  # linear scan knows nothing of ties
        assert Verifier(problem).verify(answer).valid, problem.normalized
    assert answers > 8
    assert edited > 0
