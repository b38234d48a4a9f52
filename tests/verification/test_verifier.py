"""Which judge an answer is put to, and what is counted of a valid one with edits."""

from __future__ import annotations

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, Edits, parse_edits
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import Verifier
from verilocc_bench.verification.verifier import IndependentVerifier

# %0 lives across %1, and both are in v4; s7 and vcc_lo are the function's own.
PROBLEM = AllocationProblem(
    parse_function(
        "verilocc-bench 1\ntarget gfx942\nregisters v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi\n"
        "class V 1 v\nbb0(s7)\n%0=A\n%1=B\nC %1,vcc_lo!\nD %0\n",
        canonical=False,
    )
)
ASSIGNMENT = {"%0": "v4", "%1": "v4"}
EDITS = parse_edits(
    {
        "new": {"%2": "V2 2 v/2"},
        "insert": [{"at": [0, 1], "move": [["%2.0", "%0"]]}],
        "replace": [[0, 3, 0, "%2.0"]],
    }
)
SPLIT = Answer({**ASSIGNMENT, "%2": "v10"}, EDITS)


def test_an_answer_with_edits_is_judged_by_them() -> None:
    right = Verifier(PROBLEM).verify(SPLIT)
    assert (right.valid, right.id, right.findings) == (True, PROBLEM.id, ())
    wrong = Verifier(PROBLEM).verify(Answer({**ASSIGNMENT, "%2": "v4"}, EDITS))
    assert [finding.kind for finding in wrong.findings] == [FindingKind.WRONG_VALUE]
    assert (wrong.valid, wrong.id, wrong.registers_used) == (False, PROBLEM.id, None)


def test_registers_of_new_ones_are_counted_and_the_functions_own() -> None:
    verdict = Verifier(PROBLEM).verify(SPLIT)
    assert verdict.registers_used == {"vector": 12, "v": 12, "a": 0, "s": 8, "vcc": 1}
    assert verdict.occupancy == PROBLEM.occupancy({"v": 12, "a": 0, "s": 8, "vcc": 1})
    plain = IndependentVerifier(PROBLEM).verify({"%0": "v4", "%1": "v5"})
    assert plain.registers_used == {"vector": 6, "v": 6, "a": 0, "s": 8, "vcc": 1}


def test_on_the_assign_track_edits_are_refused_and_empty_ones_are_none() -> None:
    verifier = Verifier(PROBLEM, edits=False)
    refused = verifier.verify(SPLIT)
    assert refused.valid is False
    assert refused.id == PROBLEM.id
    (finding,) = refused.findings
    assert finding.kind is FindingKind.INVALID_EDIT
    assert "on the assign track every virtual register keeps one register" in finding.message
    assert (refused.registers_used, refused.occupancy) == (None, None)
    for track in (True, False):
        each = Verifier(PROBLEM, edits=track)
        assert each.verify(Answer({"%0": "v4", "%1": "v5"}, Edits({}))).valid
        overlap = each.verify(Answer(ASSIGNMENT, Edits({})))
        assert [finding.kind for finding in overlap.findings] == [FindingKind.OVERLAP]


def test_so_many_findings_are_told_as_are_asked_for() -> None:
    body = "bb0\n%0=A\n%1=B\n%2=C\nD %0,%1,%2\n"
    text = PROBLEM.normalized.partition("bb0")[0] + body
    problem = AllocationProblem(parse_function(text, canonical=False))
    answer = {f"%{number}": "v4" for number in range(3)}
    split = Answer(answer, parse_edits({"insert": [{"at": [0, 0], "move": [["%0", "%0"]]}]}))
    for each in (answer, split):
        every = Verifier(problem).verify(each)
        assert len(every.findings) > 1
        verdict = Verifier(problem).verify(each, 1)
        assert verdict.findings == every.findings[:1]
        assert sum(verdict.untold.values()) == len(every.findings) - 1
        assert not verdict.valid
        assert Verifier(problem).verify(each, 0).findings == ()
