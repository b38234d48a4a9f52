"""Live-range splitting: valid wherever it is given, and cheaper than spilling everywhere."""

from __future__ import annotations

import pytest

from tests.generated import random_function
from tests.sampling import some_of
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.allocators.spill_everywhere import spill_everywhere
from verilocc_bench.allocators.splitting import allocate, split_allocate
from verilocc_bench.allocators.splitting.loop_nest import find_loops
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer, EditKind, edit_function, edits_to_json, parse_edits
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.evaluation.outcome import edit_costs
from verilocc_bench.verification import IndependentVerifier
from verilocc_bench.verification.judges import Judges

pytestmark = pytest.mark.slow

SPLIT = [row for row in load_rows("mini", track="split").rows if row.kernel == "gemm"]


@pytest.fixture(autouse=True)
def _small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "STEPS", 5_000)
    monkeypatch.setattr(allocate, "FIRST_SEEDS", 1)
    monkeypatch.setattr(allocate, "IMPROVEMENTS", 0)


def cost(problem: AllocationProblem, answer: object) -> int:
    if not isinstance(answer, Answer):
        return 0
    edited, findings = edit_function(problem.function, problem.target, answer.edits)
    assert not findings
    return sum(edit_costs(problem, edited))


def is_valid(problem: AllocationProblem, answer: object) -> bool:
    if not isinstance(answer, Answer):
        answer = answer_from_assignment(problem, answer)
    return IndependentVerifier(problem).verify(answer).valid


@pytest.mark.parametrize(
    "row", some_of(SPLIT[::-1]), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
def test_split_kernels_get_valid_answers_cheaper_than_spilling_everywhere(
    row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocate, "PATIENCE", 1)
    problem = AllocationProblem.from_text(row.normalized)
    answer = split_allocate(problem)
    assert is_valid(problem, answer)
    assert cost(problem, answer) < cost(problem, spill_everywhere(problem))
    if isinstance(answer, Answer):
        assert Judges(problem).word("value-walk", answer).accepts
        assert parse_edits(edits_to_json(answer.edits)) == answer.edits


@pytest.mark.parametrize(
    ("guarded", "registers", "seeds"),
    [
        (False, 60, (3, 17, 21)),
        pytest.param(False, 60, (38, 41, 43, 51), marks=pytest.mark.exhaustive),
        (True, 60, (0, 1, 55)),
        (True, 120, (0, 1, 18)),
    ],
)
def test_generated_functions_are_split_right(
    guarded: bool, registers: int, seeds: tuple[int, ...]
) -> None:
    edited = 0
    for seed in seeds:
        function = random_function(seed, registers=registers, blocks=20, guarded=guarded)
        problem = AllocationProblem(function)
        try:
            answer = split_allocate(problem)
        except AllocationFailed:
            continue
        assert is_valid(problem, answer), problem.normalized
        if isinstance(answer, Answer):
            edited += 1
            assert Judges(problem).word("value-walk", answer).accepts, problem.normalized
    assert edited >= (1 if guarded else 2)


LOOP = """verilocc-bench 1
target gfx942
registers v:4 a:0 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0->bb1
%0=V_READ
%1=V_READ
%2=V_READ
%3=V_READ
bb1->bb1,bb2
%4=V_ADD %0,%1
V_WRITE %4,%2
bb2
V_WRITE %0,%1
V_WRITE %2,%3
S_ENDPGM
"""


@pytest.mark.parametrize(
    ("change", "kinds", "costs"),
    [
        # Stored and brought back once, outside the loop.
        (("", ""), {EditKind.SPILL, EditKind.RELOAD}, 2),
        # A constant is made again.
        (("%3=V_READ", "%3=V_MOV_B32"), {EditKind.REMATERIALIZE}, None),
        (("a:0", "a:4"), {EditKind.MOVE}, None),
    ],
)
def test_what_a_loop_does_not_use_is_put_away_around_it(
    change: tuple[str, str], kinds: set[EditKind], costs: int | None
) -> None:
    problem = AllocationProblem.from_text(LOOP.replace(*change))
    answer = split_allocate(problem)
    assert isinstance(answer, Answer)
    assert {each.kind for each in answer.edits.insertions} == kinds
    assert EditKind.REMATERIALIZE not in kinds or len(answer.edits.insertions) == 1
    assert costs in (None, cost(problem, answer))
    assert is_valid(problem, answer)


def test_without_a_plan_for_all_that_is_cleared_everything_is_spilled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allocate, "PATIENCE", 1)
    function = random_function(18, registers=120, blocks=20, guarded=True)
    with pytest.raises(AllocationFailed, match="fits nowhere"):  # so says spill_everywhere
        split_allocate(AllocationProblem(function))


def test_loops_are_nested() -> None:
    text = """verilocc-bench 1
target gfx942
registers v:4 a:0 s:102 vcc:2=vcc_lo,vcc_hi
bb0->bb1
bb1->bb2
bb2->bb2,bb3
bb3->bb1,bb4
bb4
S_ENDPGM
"""
    function = AllocationProblem.from_text(text).function
    loops = find_loops(function)
    assert [len(list(loops.around(block))) for block in range(5)] == [0, 1, 2, 1, 0]
