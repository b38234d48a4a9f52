"""What spills and moves cost, and what a language model may be shown."""

from __future__ import annotations

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import edit_function, parse_edits
from verilocc_bench.evaluate.few_shot import FewShot
from verilocc_bench.evaluate.outcome import edit_costs
from verilocc_bench.evaluate.prepared import PreparedRow
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


def test_examples_are_the_smallest_of_other_groups() -> None:
    rows = load_rows("mini").rows
    few_shot = FewShot(rows, 2, "evaluated")
    for row in rows:
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
