"""Edits: their JSON form, and what a function can bear."""

from __future__ import annotations

from typing import Any

import pytest

from verilocc_bench.edits import (
    GUARD,
    At,
    EditKind,
    Edits,
    Insertion,
    Move,
    OnEdge,
    RegisterSpan,
    Reload,
    Rematerialize,
    Replacement,
    SlotSpan,
    Spill,
    Transfer,
    edit_function,
    edits_to_json,
    parse_edits,
    replaced_function,
)
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import VirtualLanes, parse_function
from verilocc_bench.targets import get_target

AMD = """verilocc-bench 1
target gfx942
registers v:16 a:16 s:16 vcc:2=vcc_lo,vcc_hi
class V 1 v
class S 1 s vcc
class V2 2 v/2
bb0(v0)->bb1,bb2
%0=COPY v0
%1=V_MOV_B32
%2:V2=DS_READ_B64 %0
%3:S=V_CMP %0
S_CBRANCH_SCC0
S_BRANCH
bb1->bb2
%2.0=V_ADD_F32 %2.1,%1
bb2
DS_WRITE %0,%2
S_ENDPGM
"""

SM_80 = """verilocc-bench 1
target sm_80
registers R:16 UR:63 P:7 UP:7
class R 1 R
class P 1 P
bb0->bb1,bb2
%0=S2R
%1:P=ISETP %0
@%1 BRA
bb1->bb2
%0=IADD3 %0
bb2
STG %0
EXIT
"""


def edited(text: str, document: Any) -> Any:
    function = parse_function(text, canonical=False)
    return edit_function(function, get_target(function.target), parse_edits(document))


WHOLE: dict[str, Any] = {
    "new": {"%4": "A 1 a", "%5": "V2", "%6": "V"},
    "insert": [
        {"at": [0, 2], "move": [["%4", "%0"], ["%6", "%2.1"]]},
        {"at": [0, 4], "spill": ["slot3-4", "%2"]},
        {"at": [1, 0], "reload": ["%5", "slot3-4"]},
        {"at": {"edge": [0, 2]}, "rematerialize": ["%6", [0, 1]]},
        {"at": [1, 0], "spill": ["slot0", "%5.1"]},
    ],
    "replace": [[1, 0, 1, "%5.1"], [2, 0, 0, "%6"]],
}


def test_the_form_goes_round() -> None:
    parsed = parse_edits(WHOLE)
    assert edits_to_json(parsed) == WHOLE
    assert parse_edits({}) == Edits({})
    assert edits_to_json(Edits({})) == {}
    guard = {"replace": [[0, 2, "guard", "%7"]]}
    assert parse_edits(guard).replacements[0].operand == GUARD
    assert edits_to_json(parse_edits(guard)) == guard


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "an object as 'edits'"),
        ({"insertion": []}, "unknown key 'insertion'"),
        ({"new": ["%4"]}, "'new'"),
        ({"new": {"4": "V"}}, "'new'"),
        ({"new": {"%4": 1}}, "'new'"),
        ({"insert": {}}, "a list as 'insert'"),
        ({"insert": [{}]}, "entry 0 of 'insert'"),
        ({"insert": [{"at": [0, 0], "move": [["%0", "%1"]], "spill": []}]}, "one of"),
        ({"insert": [{"at": [0], "move": [["%0", "%1"]]}]}, "2 numbers as 'at'"),
        ({"insert": [{"at": [0, True], "move": [["%0", "%1"]]}]}, "2 numbers as 'at'"),
        ({"insert": [{"at": [0, -1], "move": [["%0", "%1"]]}]}, "2 numbers as 'at'"),
        ({"insert": [{"at": [0, 0], "move": []}]}, "list of pairs"),
        ({"insert": [{"at": [0, 0], "move": [["%0"]]}]}, "a pair"),
        ({"insert": [{"at": [0, 0], "move": [["v0", "%1"]]}]}, "a virtual register"),
        ({"insert": [{"at": [0, 0], "spill": ["%0", "slot0"]}]}, "a spill slot"),
        ({"insert": [{"at": [0, 0], "reload": ["%0", "slot2-1"]}]}, "a spill slot"),
        ({"insert": [{"at": [0, 0], "rematerialize": ["%0", "x"]}]}, "rematerialize"),
        ({"replace": [[0, 0, "%1"]]}, "[block, instruction, operand, register]"),
        ({"replace": [[0, 0, "use", "%1"]]}, "operand"),
        ({"replace": [[0, 0, 0, "%1.x"]]}, "a virtual register"),
    ],
)
def test_what_is_no_edit_is_said(document: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_edits(document)
    assert message in str(caught.value)


def test_edits_are_read_against_the_function() -> None:
    function, findings = edited(AMD, WHOLE)
    assert not findings
    assert function.registers[4].name == "A"
    assert function.registers[5].width == 2
    move = Move(
        (
            (VirtualLanes(4, 0, 1), VirtualLanes(0, 0, 1)),
            (VirtualLanes(6, 0, 1), VirtualLanes(2, 1, 1)),
        )
    )
    assert function.before[0, 2] == (move,)
    assert function.before[0, 4] == (Spill(SlotSpan(3, 2), VirtualLanes(2, 0, 2)),)
    reload = Reload(VirtualLanes(5, 0, 2), SlotSpan(3, 2))
    assert function.before[1, 0] == (reload, Spill(SlotSpan(0, 1), VirtualLanes(5, 1, 1)))
    assert function.on_edge[0, 2] == (Rematerialize(VirtualLanes(6, 0, 1), 0, 1),)
    assert function.replaced == {(1, 0, 1): VirtualLanes(5, 1, 1), (2, 0, 0): VirtualLanes(6, 0, 1)}


def test_operands_are_replaced_in_the_function() -> None:
    function, _ = edited(AMD, WHOLE)
    replaced, numbers = replaced_function(function)
    assert numbers == {n: n for n in range(7)}
    assert replaced.blocks[1].instructions[0].uses[0].location == VirtualLanes(5, 1, 1)
    assert replaced.blocks[2].instructions[0].uses[0].location == VirtualLanes(6, 0, 1)
    assert replaced.blocks[0] == function.function.blocks[0]
    document = {"new": {"%9": "P"}, "replace": [[0, 2, "guard", "%9"]]}
    guarded, _ = edited(SM_80, document)
    replaced, numbers = replaced_function(guarded)
    assert numbers[9] == 2
    guard = replaced.blocks[0].instructions[2].guard
    assert guard is not None
    assert guard.location == VirtualLanes(2, 0, 1)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"new": {"%3": "V"}}, "%3 is not a new virtual register"),
        ({"new": {"%4": "V4"}}, "a class such as"),
        ({"new": {"%4": "V 1 v[0-3]"}}, "another spelling"),
        ({"new": {"%4": "V4 4 v"}}, "another spelling"),
        ({"new": {"%4": "V 1 w"}}, "expected bases"),
        ({"new": {"%4": "V 1 v v"}}, "expected the bases of v in order, each once"),
        ({"new": {"%4": "V 1" + " v" * 1000}}, "expected the bases of v in order, each once"),
        ({"insert": [{"at": [0, 5], "move": [["%0", "%1"]]}]}, "last place to insert is 4"),
        ({"insert": [{"at": [2, 2], "move": [["%0", "%1"]]}]}, "last place to insert is 1"),
        ({"insert": [{"at": [1, 2], "move": [["%0", "%1"]]}]}, "last place to insert is 1"),
        ({"insert": [{"at": [3, 0], "move": [["%0", "%1"]]}]}, "there is no block bb3"),
        ({"insert": [{"at": {"edge": [1, 0]}, "move": [["%0", "%1"]]}]}, "no edge"),
        ({"insert": [{"at": {"edge": [9, 0]}, "move": [["%0", "%1"]]}]}, "no edge"),
        ({"insert": [{"at": [0, 0], "move": [["%0", "%2"]]}]}, "not of one size"),
        ({"insert": [{"at": [0, 0], "move": [["%0", "%4"]]}]}, "no virtual register %4"),
        ({"insert": [{"at": [0, 0], "move": [["%0", "%2.2"]]}]}, "%2 has 2 lanes"),
        ({"insert": [{"at": [0, 0], "spill": ["slot0", "%2"]}]}, "1 units, the register 2"),
        ({"insert": [{"at": [0, 0], "spill": ["slot4096", "%0"]}]}, "beyond the last"),
        ({"insert": [{"at": [0, 0], "rematerialize": ["%0", [0, 0]]}]}, "(COPY) is not a constant"),
        ({"insert": [{"at": [0, 0], "rematerialize": ["%0", [0, 9]]}]}, "no instruction 9"),
        ({"insert": [{"at": [0, 0], "rematerialize": ["%2", [0, 1]]}]}, "constant has 1 lanes"),
        ({"replace": [[0, 0, 1, "%1"]]}, "is a physical register"),
        ({"replace": [[0, 0, 2, "%1"]]}, "no such operand"),
        ({"replace": [[0, 0, "guard", "%1"]]}, "no such operand"),
        ({"replace": [[2, 0, 1, "%1"]]}, "operand has 2 lanes"),
        ({"replace": [[2, 0, 0, "%1"], [2, 0, 0, "%1"]]}, "replaced twice"),
    ],
)
def test_what_a_function_cannot_bear_is_a_finding(document: Any, message: str) -> None:
    function, findings = edited(AMD, document)
    assert [finding.kind for finding in findings] == [FindingKind.INVALID_EDIT]
    assert message in findings[0].message
    assert len(function.replaced) == ("twice" in message)
    assert not function.before
    assert not function.on_edge


def test_nothing_goes_behind_a_guarded_branch() -> None:
    _, findings = edited(SM_80, {"insert": [{"at": [0, 3], "move": [["%0", "%0"]]}]})
    assert "last place to insert is 2" in findings[0].message
    _, findings = edited(SM_80, {"insert": [{"at": [0, 2], "move": [["%0", "%0"]]}]})
    assert not findings


def test_a_move_from_outside_the_text_is_no_constant() -> None:
    text = AMD.replace("V_MOV_B32", "S_MOV_B64.outside")
    _, findings = edited(text, {"insert": [{"at": [1, 0], "rematerialize": ["%1", [0, 1]]}]})
    assert "is not a constant" in findings[0].message


def test_numbers_that_json_could_not_say_are_refused_all_the_same() -> None:
    function = parse_function(AMD, canonical=False)
    target = get_target("gfx942")
    register = RegisterSpan(0)
    move = EditKind.MOVE
    for edits in (
        Edits({}, (Insertion(At(0, 1), move, (Transfer(RegisterSpan(0, -1, -1), register),)),)),
        Edits({}, (Insertion(At(-1, 1), move, (Transfer(register, register),)),)),
        Edits({}, (Insertion(At(0, -1), move, (Transfer(register, register),)),)),
        Edits({}, (Insertion(OnEdge(-3, 1), move, (Transfer(register, register),)),)),
        Edits({}, (Insertion(At(0, 1), EditKind.SPILL, (Transfer(SlotSpan(-5, 1), register),)),)),
        Edits({}, (), (Replacement(-1, 1, 0, register),)),
        Edits({}, (), (Replacement(0, -2, 0, register),)),
    ):
        _, findings = edit_function(function, target, edits)
        assert [finding.kind for finding in findings] == [FindingKind.INVALID_EDIT]
