"""What spills and moves cost, and what a language model may be shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verilocc_bench.allocators import FailureKind, Request, SingleAllocator
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits import Answer, edit_function, parse_edits
from verilocc_bench.errors import ContradictionError, InputError, MissingExtraError
from verilocc_bench.evaluation.few_shot import FewShot
from verilocc_bench.evaluation.outcome import edit_costs, measure_outcome
from verilocc_bench.evaluation.prepared import PreparedRow
from verilocc_bench.ir import parse_function

LOOP = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
bb0->bb1
%0=V_MOV_B32
%1:V2=GLOBAL_LOAD_DWORDX2 %0
bb1->bb1,bb2
V_ADD_F64 %1
bb2
V_NOP %0
"""


def test_costs_are_weighted_by_the_loops_around() -> None:
    problem = AllocationProblem(parse_function(LOOP))
    assert problem.loop_depths == (0, 1, 0)
    edits = parse_edits(
        {
            "new": {"%2": "V2 2 v/2"},
            "insert": [
                {"at": [0, 2], "spill": ["slot0-1", "%1"]},  # two lanes, outside
                {"at": [1, 0], "reload": ["%1", "slot0-1"]},  # two lanes, in the loop
                {"at": {"edge": [1, 2]}, "spill": ["slot2", "%0"]},  # one lane, where the loop ends
                {"at": {"edge": [1, 1]}, "spill": ["slot3", "%0"]},  # one lane, on the way back
                {"at": [1, 1], "move": [["%2", "%1"]]},  # two lanes, in the loop
                {"at": [2, 0], "rematerialize": ["%0", [0, 0]]},  # one lane, outside
            ],
        }
    )
    edited, findings = edit_function(problem.function, problem.target, edits)
    assert not findings
    assert edit_costs(problem, edited) == (2 + 20 + 1 + 10, 20 + 1)
    # From a loop to the next: in neither.
    after = parse_function(LOOP.replace("\nbb2\n", "\nbb2->bb2,bb3\n") + "bb3\nS_ENDPGM\n")
    problem = AllocationProblem(after)
    assert [problem.edge_depth(*edge) for edge in ((1, 1), (1, 2), (2, 2), (2, 3))] == [1, 0, 1, 0]


@pytest.mark.slow
def test_examples_are_the_smallest_of_other_groups() -> None:
    rows = load_rows("mini").rows
    few_shot = FewShot(rows, 2, "evaluated")
    for row in rows[::4]:
        examples = few_shot(PreparedRow(row))
        texts = {example.normalized for example in examples}
        chosen = [other for other in rows if other.normalized in texts]
        assert len(chosen) == len(examples) == 2
        allowed = [
            other
            for other in rows
            if (other.arch, other.family) == (row.arch, row.family) and other.group != row.group
        ]
        largest = max(other.n_virtual_registers for other in chosen)
        assert all(other in allowed and other.id != row.id for other in chosen)
        assert sum(other.n_virtual_registers < largest for other in allowed) <= 1
        assert [example.answer for example in examples] == [
            next(o.label for o in rows if o.normalized == example.normalized)
            for example in examples
        ]


def _measured(row: Row, pressure: int | None = None) -> None:
    """What becomes of the compiler's answer to a row, with another pressure where one is given."""
    prepared = PreparedRow(row)
    assert row.label is not None
    if pressure is not None:
        found = prepared.problem.pressure
        prepared.problem.__dict__["pressure"] = replace(found, maximum={VECTOR: pressure})
    measure_outcome(prepared, Answer(row.label), prepared.verifier.verify(row.label), 0)


def test_an_answer_below_what_is_proved_is_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in load_rows("mini").rows if row.best_lower_bound is not None)
    used = PreparedRow(row).label
    assert used is not None
    assert used.registers_used is not None
    registers = used.registers_used[VECTOR]
    _measured(row, registers)
    with pytest.raises(ContradictionError, match=f"uses {registers} registers, a lower bound says"):
        _measured(row, registers + 1)
    _measured(replace(row, best_lower_bound=registers))
    with pytest.raises(InputError, match=f"row {row.id}: the column 'best_lower_bound' is"):
        _measured(replace(row, best_lower_bound=registers + 1))
    table = {row.id: (registers + 1, registers + 1)}
    monkeypatch.setattr("verilocc_bench.evaluation.score.known_bounds", lambda: table)
    with pytest.raises(ContradictionError, match="a lower bound says"):
        _measured(row)


@pytest.mark.parametrize(
    "error",
    [ContradictionError("two and two are five"), MissingExtraError("numba", "exact", "the search")],
)
def test_what_is_no_failure_of_an_allocator(error: Exception) -> None:
    """Of this package's own: foreign code can raise what it likes."""

    class Raising(SingleAllocator):
        def allocate(self, _: Request) -> Answer:
            raise error

    class Foreign(Raising):
        foreign = True

    request = Request(AllocationProblem(parse_function(LOOP)))
    with pytest.raises(type(error)):
        next(Raising().respond([request]))
    ((_, response),) = Foreign().respond([request])
    assert response.failure is FailureKind.CRASHED
