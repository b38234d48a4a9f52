"""What edits mean and what they may not do, case by case; runs show what is wrong, nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verification.test_value_walk_cases import run
from verilocc_bench.edits import parse_edits
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verification.symbolic import SymbolicChecker

AMD = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
reserved v40
class V 1 v
class V2 2 v/2
class V4 4 v/2
class A 1 a
class G 1 s
class S2 2 s/2 vcc
"""
NVIDIA = """verilocc-bench 1
target sm_80
registers R:16 UR:8 P:7 UP:7
class R 1 R
class P 1 P
class UR 1 UR
"""


def check(body: str, places: str, edits: dict[str, Any], header: str = AMD) -> tuple[Finding, ...]:
    """`places`: the registers of %0, %1, … in order."""
    function = parse_function(header + body, canonical=False)
    answer = {f"%{number}": name for number, name in enumerate(places.split())}
    findings = SymbolicChecker(function).check(answer, parse_edits(edits))
    if {finding.kind for finding in findings} <= {FindingKind.WRONG_VALUE}:
        assert (run(header + body, answer, edits) is not None) == bool(findings)
    return findings


def insert(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"insert": list(entries), **more}


def move(at: Any, *pairs: tuple[str, str]) -> dict[str, Any]:
    return {"at": at, "move": [list(pair) for pair in pairs]}


def kinds(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.kind.value for finding in findings]


WRONG = ["wrong_value"]
INVALID = ["invalid_edit"]

# %0 lives across %1, and both are in v4.
ACROSS = "bb0\n%0=A\n%1=B\nC %1\nD %0\n"


def test_without_edits_that_matter_the_assign_track_is_the_same() -> None:
    assert kinds(check(ACROSS, "v4 v4", {})) == WRONG
    assert check(ACROSS, "v4 v5", {}) == ()


def test_a_value_moves_away_and_back() -> None:
    new = {"%2": "V"}
    away, back = move([0, 1], ("%2", "%0")), move([0, 3], ("%0", "%2"))
    assert check(ACROSS, "v4 v4 v9", insert(away, back, new=new)) == ()
    assert kinds(check(ACROSS, "v4 v4 v9", insert(away, new=new))) == WRONG
    assert kinds(check(ACROSS, "v4 v4 v9", insert(back, new=new))) == WRONG
    # Instead of the move back the use reads the other register.
    replaced = insert(away, new=new, replace=[[0, 3, 0, "%2"]])
    assert check(ACROSS, "v4 v4 v9", replaced) == ()
    # The copy is overwritten in its turn.
    late = move([0, 2], ("%2", "%1"))
    assert kinds(check(ACROSS, "v4 v4 v9", insert(away, late, back, new=new))) == WRONG


def test_an_old_copy_is_not_the_new_value() -> None:
    body = "bb0\n%0=A\n%0=B\nC %0\n"
    new = {"%1": "V"}
    early, late = move([0, 1], ("%1", "%0")), move([0, 2], ("%1", "%0"))
    replaced = [[0, 2, 0, "%1"]]
    assert kinds(check(body, "v4 v9", insert(early, new=new, replace=replaced))) == WRONG
    assert check(body, "v4 v9", insert(late, new=new, replace=replaced)) == ()


def test_a_definition_in_another_register_is_nowhere_else() -> None:
    body = "bb0\n%0=A\nB %0\n"
    edits = {"new": {"%1": "V"}, "replace": [[0, 0, 0, "%1"]]}
    finding = check(body, "v4 v9", edits)
    assert kinds(finding) == WRONG
    assert "from v4, which nothing has written" in finding[0].message
    both = {"new": {"%1": "V"}, "replace": [[0, 0, 0, "%1"], [0, 1, 0, "%1"]]}
    assert check(body, "v4 v9", both) == ()
    assert check(body, "v4 v9", insert(move([0, 1], ("%0", "%1")), **edits)) == ()


def test_parallel_moves_read_before_they_write() -> None:
    body = "bb0\n%0=A\n%1=B\nC %0,%1\n"
    crossed = [[0, 2, 0, "%1"], [0, 2, 1, "%0"]]
    swap = move([0, 2], ("%0", "%1"), ("%1", "%0"))
    assert check(body, "v4 v5", insert(swap, replace=crossed)) == ()
    assert kinds(check(body, "v4 v5", insert(swap))) == WRONG * 2
    one = move([0, 2], ("%0", "%1"))
    other = move([0, 2], ("%1", "%0"))
    assert kinds(check(body, "v4 v5", insert(one, other, replace=crossed))) == WRONG
    # Twice swapped is as it was.
    assert check(body, "v4 v5", insert(swap, swap)) == ()


def test_a_destination_that_is_named_often_costs_nothing() -> None:
    many = insert(*[move([0, 1], *[("%0", "%0")] * 9)] * 40)
    assert len(check("bb0\n%0=A\nB %0\n", "v4", many)) == 40


def test_a_cycle_of_three() -> None:
    body = "bb0\n%0=A\n%1=B\n%2=C\nD %0,%1,%2\n"
    turn = move([0, 3], ("%0", "%1"), ("%1", "%2"), ("%2", "%0"))
    turned = [[0, 3, 0, "%2"], [0, 3, 1, "%0"], [0, 3, 2, "%1"]]
    assert check(body, "v4 v5 v6", insert(turn, replace=turned)) == ()
    assert check(body, "v4 v5 v6", insert(turn, turn, turn)) == ()
    assert kinds(check(body, "v4 v5 v6", insert(turn, turn, replace=turned))) == WRONG * 3


def test_lanes_keep_their_order() -> None:
    body = "bb0\n%0:V2=A\n%1=B\n%2=B\nC %1,%2\nD %0\n"
    places, new = "v4 v4 v5 v8", {"%3": "V2"}
    away = move([0, 1], ("%3", "%0"))
    assert check(body, places, insert(away, move([0, 4], ("%0", "%3")), new=new)) == ()
    single = move([0, 4], ("%0.0", "%3.0"), ("%0.1", "%3.1"))
    assert check(body, places, insert(away, single, new=new)) == ()
    crossed = move([0, 4], ("%0.0", "%3.1"), ("%0.1", "%3.0"))
    assert kinds(check(body, places, insert(away, crossed, new=new))) == WRONG * 2
    half = move([0, 4], ("%0.0", "%3.0"))
    finding = check(body, places, insert(away, half, new=new))
    assert kinds(finding) == WRONG
    assert "reads %0.1, defined at bb0 instruction 0, from v5" in finding[0].message


def spill(at: Any, slots: str, source: str) -> dict[str, Any]:
    return {"at": at, "spill": [slots, source]}


def reload(at: Any, destination: str, slots: str) -> dict[str, Any]:
    return {"at": at, "reload": [destination, slots]}


def test_spill_and_reload() -> None:
    store, load = spill([0, 1], "slot0", "%0"), reload([0, 3], "%0", "slot0")
    assert check(ACROSS, "v4 v4", insert(store, load)) == ()
    assert kinds(check(ACROSS, "v4 v4", insert(store))) == WRONG
    assert kinds(check(ACROSS, "v4 v4", insert(load))) == WRONG
    assert kinds(check(ACROSS, "v4 v4", insert(store, reload([0, 3], "%0", "slot1")))) == WRONG
    # Before the value is there, and after it is gone.
    assert kinds(check(ACROSS, "v4 v4", insert(spill([0, 0], "slot0", "%0"), load))) == WRONG
    assert kinds(check(ACROSS, "v4 v4", insert(spill([0, 2], "slot0", "%0"), load))) == WRONG
    # Written over by another spill.
    over = spill([0, 2], "slot0", "%1")
    assert kinds(check(ACROSS, "v4 v4", insert(store, over, load))) == WRONG


def test_slots_of_a_tuple_are_units() -> None:
    body = "bb0\n%0:V2=A\n%1:V2=B\nC %1\nD %0\n"
    store = spill([0, 1], "slot2-3", "%0")
    assert check(body, "v4 v4", insert(store, reload([0, 3], "%0", "slot2-3"))) == ()
    apart = reload([0, 3], "%0.0", "slot2"), reload([0, 3], "%0.1", "slot3")
    assert check(body, "v4 v4", insert(store, *apart)) == ()
    crossed = reload([0, 3], "%0.0", "slot3"), reload([0, 3], "%0.1", "slot2")
    assert kinds(check(body, "v4 v4", insert(store, *crossed))) == WRONG * 2
    shifted = reload([0, 3], "%0", "slot1-2")
    assert kinds(check(body, "v4 v4", insert(store, shifted))) == WRONG * 2


BRANCH = "bb0->bb1,bb2\n%0=A\nbb1->bb3\nX\nbb2->bb3\nY\nbb3\n%1=B\nC %1\nD %0\n"


def test_spilled_on_every_path_or_not_at_all() -> None:
    load = reload([3, 2], "%0", "slot0")
    left, right = spill([1, 0], "slot0", "%0"), spill([2, 1], "slot0", "%0")
    assert check(BRANCH, "v4 v4", insert(left, right, load)) == ()
    assert kinds(check(BRANCH, "v4 v4", insert(left, load))) == WRONG
    edges = [spill({"edge": [n, 3]}, "slot0", "%0") for n in (1, 2)]
    assert check(BRANCH, "v4 v4", insert(*edges, load)) == ()
    assert kinds(check(BRANCH, "v4 v4", insert(edges[0], load))) == WRONG
    assert check(BRANCH, "v4 v4", insert(edges[0], right, load)) == ()


def test_a_value_that_is_undefined_on_a_path_need_not_be_anywhere_there() -> None:
    body = "bb0->bb1,bb2\nX\nbb1->bb3\n%0=A\nbb2->bb3\nY\nbb3\n%1=B\nC %1\nD %0\n"
    store, load = spill([1, 1], "slot0", "%0"), reload([3, 2], "%0", "slot0")
    assert check(body, "v4 v4", insert(store, load)) == ()
    assert kinds(check(body, "v4 v4", insert(load))) == WRONG


def test_a_loop_needs_its_value_each_time() -> None:
    body = "bb0->bb1\n%0=A\nbb1->bb1,bb2\nB %0\n%1=C\nD %1\nbb2\nE\n"
    store = spill([0, 1], "slot0", "%0")
    assert check(body, "v4 v4", insert(store, reload([1, 0], "%0", "slot0"))) == ()
    assert check(body, "v4 v4", insert(store, reload([1, 3], "%0", "slot0"))) == ()
    assert check(body, "v4 v4", insert(store, reload({"edge": [1, 1]}, "%0", "slot0"))) == ()
    assert kinds(check(body, "v4 v4", insert(store, reload({"edge": [1, 2]}, "%0", "slot0"))))
    assert kinds(check(body, "v4 v4", insert(store, reload({"edge": [0, 1]}, "%0", "slot0"))))


CONSTANT = "bb0\n%0=V_MOV_B32\n%1=V_MOV_B32\nC %1\nD %0\n"


def again(at: Any, destination: str, source: list[int]) -> dict[str, Any]:
    return {"at": at, "rematerialize": [destination, source]}


def test_a_constant_made_again() -> None:
    assert check(CONSTANT, "v4 v4", insert(again([0, 3], "%0", [0, 0]))) == ()
    assert kinds(check(CONSTANT, "v4 v4", insert(again([0, 3], "%0", [0, 1])))) == WRONG
    assert kinds(check(CONSTANT, "v4 v4", insert(again([0, 1], "%0", [0, 0])))) == WRONG
    # Into another register, from which the use reads.
    elsewhere = insert(again([0, 3], "%2", [0, 0]), new={"%2": "V"}, replace=[[0, 3, 0, "%2"]])
    assert check(CONSTANT, "v4 v4 v9", elsewhere) == ()


def test_a_constant_before_its_instruction_is_not_yet_the_value() -> None:
    body = "bb0->bb1,bb2\n%0=A\nbb1->bb2\n%0=V_MOV_B32\nbb2\n%1=B\nC %1\nD %0\n"
    assert kinds(check(body, "v4 v4", insert(again([2, 2], "%0", [1, 0])))) == WRONG
    alone = "bb0\n%0=V_MOV_B32\n%1=B\nC %1\n%0=A\nD %0\n"
    late = insert(again([0, 4], "%0", [0, 0]))
    assert check(alone, "v4 v4", {}) == ()
    assert kinds(check(alone, "v4 v4", late)) == WRONG  # the lane has been redefined since


def test_a_pair_of_constants() -> None:
    body = "bb0\n%0:S2=S_MOV_B64\n%1:S2=B\nC %1\nD %0\n"
    assert check(body, "s4 s4", insert(again([0, 3], "%0", [0, 0]))) == ()
    assert kinds(check(body, "s4 vcc", insert(again([0, 3], "%1", [0, 0])))) == []
    assert kinds(check(body, "s4 s4", insert(again([0, 3], "%0.0", [0, 0])))) == [
        "invalid_edit",
        *WRONG * 2,
    ]


def test_a_constant_of_a_loop() -> None:
    body = "bb0->bb1\nX\nbb1->bb1,bb2\n%0=V_MOV_B32\n%1=B\nC %1,%1\nbb2\nD %0\n"
    assert kinds(check(body, "v4 v4", {})) == WRONG
    assert check(body, "v4 v4", insert(again([2, 0], "%0", [1, 0]))) == ()
    assert check(body, "v4 v4", insert(again({"edge": [1, 2]}, "%0", [1, 0]))) == ()


def test_early_clobbers_and_ties_follow_what_replaces_them() -> None:
    body = "bb0\n%0=A\n%1&=B %0\nC %1\n"
    new = {"%2": "V"}
    copy = move([0, 1], ("%2", "%0"))
    assert check(body, "v4 v4 v9", insert(copy, new=new, replace=[[0, 1, 1, "%2"]])) == ()
    finding = check(body, "v4 v9 v9", insert(copy, new=new, replace=[[0, 1, 1, "%2"]]))
    assert kinds(finding) == WRONG
    tied = "bb0\n%0=A\n%1=B %0~0\nC %1,%0\n"
    assert "tied_mismatch" in kinds(check(tied, "v4 v5", {}))
    copy = move([0, 1], ("%1", "%0"))
    assert check(tied, "v4 v5", insert(copy, replace=[[0, 1, 1, "%1"]])) == ()
    both = insert(copy, new=new, replace=[[0, 1, 1, "%1"], [0, 1, 0, "%2"]])
    assert "tied_mismatch" in kinds(check(tied, "v4 v5 v9", both))


def test_two_definitions_put_in_one_place() -> None:
    body = "bb0\n%0,%1=A\nB %0\nC %1\n"
    assert check(body, "v4 v5", {}) == ()
    assert WRONG[0] in kinds(check(body, "v4 v5", {"replace": [[0, 0, 1, "%0"]]}))


def test_a_lane_written_in_two_places_is_in_neither() -> None:
    body, edits = "bb0\n%0,%0=A\nB %0\n", {"new": {"%1": "V"}}
    assert check(body, "v4", {}) == ()
    for replaced in ([[0, 0, 1, "%1"]], [[0, 0, 1, "%1"], [0, 1, 0, "%1"]]):
        assert kinds(check(body, "v4 v5", {**edits, "replace": replaced})) == WRONG


@pytest.mark.parametrize(("lanes", "legal"), [("0-1", True), ("1-2", False), ("2-3", True)])
def test_replaced_operands_lie_where_their_class_could(lanes: str, legal: bool) -> None:
    body = "bb0\n%0:V2=A\n%1:V4=X\nB %0\n"
    span = f"%2.{lanes}"
    edits = insert(move([0, 2], (span, "%0")), new={"%2": "V4"}, replace=[[0, 2, 0, span]])
    findings = check(body, "v4 v8 v12", edits)
    assert kinds(findings) == ([] if legal else INVALID)
    assert all("cannot start at v13" in finding.message for finding in findings)


def test_replaced_parts_are_aligned_as_tuples_of_their_size() -> None:
    body = "bb0\n%0:V4=A\nB %0.0-1\nC %0.1-2\n"
    copy = move([0, 1], ("%1.0-1", "%0.0-1"))
    even = insert(copy, new={"%1": "V4"}, replace=[[0, 1, 0, "%1.0-1"]])
    assert check(body, "v4 v8", even) == ()
    copy = move([0, 1], ("%1.1-2", "%0.0-1"))
    odd = insert(copy, new={"%1": "V4"}, replace=[[0, 1, 0, "%1.1-2"]])
    assert kinds(check(body, "v4 v8", odd)) == INVALID


def test_a_replaced_part_stays_in_the_files_of_its_class() -> None:
    body = "bb0\n%0:V2=A\n%1:A=X\nB %0.0\n"
    copy = move([0, 2], ("%1", "%0.0"))
    edits = insert(copy, replace=[[0, 2, 0, "%1"]])
    finding = check(body, "v4 a3", edits)
    assert kinds(finding) == INVALID
    assert finding[0].operand == 0


@pytest.mark.parametrize(
    ("uses", "legal"),
    [
        ("S_ADD_U32 %0,%0", True),
        ("V_FMA_F32 %0,%1,%0", False),  # one scalar operand a vector instruction
        ("V_FMA_F32 %1,%0,%1", True),
        ("V_DIV_SCALE_F32 %1,%1,%0", False),  # it scales the source that it reads twice
        ("V_DIV_SCALE_F32 %0,%0,%1", False),
    ],
)
def test_operands_that_are_read_from_one_register_stay_one(uses: str, legal: bool) -> None:
    body = f"bb0\n%0:G=A\n%1=X\n{uses}\nB %0,%1\n"
    names = uses.split()[1].split(",")
    name, place = ("G", "s9") if names[0] == "%0" else ("V", "v9")
    edits = insert(move([0, 2], ("%2", names[0])), new={"%2": name}, replace=[[0, 2, 0, "%2"]])
    assert kinds(check(body, f"s4 v5 {place}", edits)) == ([] if legal else INVALID)
    both = [[0, 2, number, "%2"] for number, each in enumerate(names) if each == names[0]]
    assert check(body, f"s4 v5 {place}", {**edits, "replace": both}) == ()


def test_new_registers_are_held_to_their_classes() -> None:
    edits = insert(move([0, 1], ("%2", "%0")), move([0, 3], ("%0", "%2")), new={"%2": "V"})
    assert check(ACROSS, "v4 v4 v9", edits) == ()
    assert kinds(check(ACROSS, "v4 v4 v64", edits)) == ["over_budget"]
    assert kinds(check(ACROSS, "v4 v4 v40", edits)) == ["reserved"]
    assert kinds(check(ACROSS, "v4 v4", edits)) == ["missing"]
    assert "wrong_class" in kinds(check(ACROSS, "v4 v4 s4", edits))
    assert kinds(check(ACROSS, "v4 v5 v6", {})) == ["unknown_virtual_register"]
    bad = insert(new={"%2": "Q 1 q"})
    assert kinds(check(ACROSS, "v4 v5 v6", bad)) == INVALID


FILES = "bb0\n%0=A\n%1:A=A\n%2:G=A\n%3:S2=A\nB\n"


@pytest.mark.parametrize(
    ("destination", "source", "legal"),
    [
        ("%0", "%1", True),
        ("%1", "%0", True),
        ("%0", "%2", True),
        ("%0", "%3.1", True),
        ("%2", "%3.0", True),
        ("%3.0", "%2", True),
        ("%1", "%2", False),
        ("%2", "%0", False),
        ("%3.0", "%1", False),
    ],
)
def test_files_that_moves_join(destination: str, source: str, legal: bool) -> None:
    findings = check(FILES, "v4 a4 s4 vcc", insert(move([0, 4], (destination, source))))
    assert kinds(findings) == ([] if legal else INVALID)


def test_a_move_writes_no_place_twice() -> None:
    body = "bb0\n%0=A\n%1=A\nB\n"
    edits = insert(move([0, 2], ("%0", "%1"), ("%0", "%1")))
    assert kinds(check(body, "v4 v5", edits)) == INVALID
    other = insert(move([0, 2], ("%0", "%2"), ("%1", "%2")), new={"%2": "V"})
    assert kinds(check(body, "v4 v4 v9", other)) == INVALID
    assert check(body, "v4 v5 v9", other) == ()


def test_slots_keep_their_kind() -> None:
    body = "bb0\n%0=A\n%1:G=A\n%2:A=A\nB\n"
    mixed = insert(spill([0, 3], "slot0", "%0"), reload([0, 3], "%1", "slot0"))
    assert kinds(check(body, "v4 s4 a4", mixed)) == INVALID
    mixed = insert(spill([0, 3], "slot0", "%1"), reload([0, 3], "%0", "slot0"))
    assert kinds(check(body, "v4 s4 a4", mixed)) == INVALID
    vectors = insert(spill([0, 3], "slot0", "%0"), reload([0, 3], "%2", "slot0"))
    assert check(body, "v4 s4 a4", vectors) == ()
    apart = insert(spill([0, 3], "slot0", "%0"), reload([0, 3], "%1", "slot1"))
    assert check(body, "v4 s4 a4", apart) == ()


JOIN = (
    "bb0->bb1,bb2\n%0=A\n%1:S2=S_AND_SAVEEXEC_B64\nS_CBRANCH_EXECZ\n"
    "bb1->bb2\nX %0\n"
    "bb2\nS_NOP\nS_OR_B64 %1\nY %0\nS_ENDPGM\n"
)


@pytest.mark.parametrize(
    ("at", "legal"),
    [
        ([0, 0], True),
        ([0, 1], True),
        ([0, 2], False),
        ({"edge": [0, 1]}, False),
        ({"edge": [0, 2]}, False),
        ([1, 0], True),
        ([1, 1], True),
        ({"edge": [1, 2]}, True),
        ([2, 0], False),
        ([2, 1], False),
        ([2, 2], True),
        ([2, 3], True),
    ],
)
def test_vector_registers_move_where_their_threads_execute(at: Any, legal: bool) -> None:
    expected = [] if legal else INVALID
    new = {"%2": "V", "%3": "G 1 s"}
    places = "v4 s4 v9 s9"
    assert kinds(check(JOIN, places, insert(move(at, ("%2", "%0")), new=new))) == expected
    assert kinds(check(JOIN, places, insert(spill(at, "slot0", "%0"), new=new))) == expected
    assert kinds(check(JOIN, places, insert(reload(at, "%2", "slot0"), new=new))) == expected
    assert kinds(check(JOIN, places, insert(move(at, ("%2", "%3")), new=new))) == expected
    # Scalar registers do not ask.
    assert check(JOIN, places, insert(move(at, ("%3", "%1.0")), new=new)) == ()
    assert check(JOIN, places, insert(spill(at, "slot0", "%1.0"), new=new)) == ()


def test_nothing_for_vectors_after_a_narrowing_terminator() -> None:
    body = (
        "bb0->bb1,bb2\n%0=A\n%1:S2=C\n$S_AND_B64_term %1\nS_CBRANCH_EXECZ\nbb1->bb2\nX\nbb2\nY %0\n"
    )
    body = body.replace("$", "")
    new = {"%2": "V", "%3": "G 1 s"}
    assert check(body, "v4 s4 v9 s9", insert(move([0, 2], ("%2", "%0")), new=new)) == ()
    edge = insert(move({"edge": [0, 1]}, ("%2", "%0")), new=new)
    assert kinds(check(body, "v4 s4 v9 s9", edge)) == INVALID
    scalar = insert(move({"edge": [0, 1]}, ("%3", "%1.0")), new=new)
    assert check(body, "v4 s4 v9 s9", scalar) == ()
    after = insert(move([0, 3], ("%3", "%1.0")), new=new)
    assert kinds(check(body, "v4 s4 v9 s9", after)) == INVALID


def test_guards_are_replaced_too() -> None:
    body = "bb0\n%0:P=S\n%1:P=S\n@%1 X\n@%0 Y\n"
    new = {"%2": "P"}
    copy = move([0, 1], ("%2", "%0"))
    replaced = [[0, 3, "guard", "%2"]]
    assert kinds(check(body, "P0 P0 P3", {"new": new}, NVIDIA)) == WRONG
    good = insert(copy, new=new, replace=replaced)
    assert check(body, "P0 P0 P3", good, NVIDIA) == ()
    wrong = insert(copy, new=new, replace=[[0, 2, "guard", "%2"]])
    finding = check(body, "P0 P0 P3", wrong, NVIDIA)
    assert kinds(finding) == WRONG * 2
    assert finding[0].operand == -1


def test_moves_happen_whatever_the_guards_say() -> None:
    body = "bb0\n%0:P=S\n@%0 %1:R=A\n@!%0 %2:R=B\n@%0 C %1\n@!%0 C %2\n"
    new = {"%3": "R"}
    edits = insert(move([0, 3], ("%3", "%1")), new=new, replace=[[0, 3, 0, "%3"]])
    assert check(body, "P0 R4 R4 R5", edits, NVIDIA) == ()
    both = insert(move([0, 3], ("%3", "%1")), new=new, replace=[[0, 3, 0, "%3"], [0, 4, 0, "%3"]])
    assert check(body, "P0 R4 R4 R5", both, NVIDIA) == ()
    early = insert(move([0, 2], ("%3", "%1")), new=new, replace=[[0, 4, 0, "%3"]])
    assert kinds(check(body, "P0 R4 R4 R5", early, NVIDIA)) == WRONG


def test_moves_on_the_edges_of_a_guarded_branch() -> None:
    body = "bb0->bb1,bb2\n%0:P=S\n%1:R=A\n@%0 BRA\nbb1->bb3\nX\nbb2->bb3\nY\nbb3\n@%0 Z %1\n"
    new = {"%2": "R"}
    taken = move({"edge": [0, 1]}, ("%2", "%1"))
    passed = move({"edge": [0, 2]}, ("%2", "%1"))
    replaced = [[3, 0, 0, "%2"]]
    # Where %0 does not hold nothing is read.
    assert check(body, "P0 R4 R5", insert(taken, new=new, replace=replaced), NVIDIA) == ()
    finding = check(body, "P0 R4 R5", insert(passed, new=new, replace=replaced), NVIDIA)
    assert kinds(finding) == WRONG
    behind = insert(move([0, 3], ("%2", "%1")), new=new)
    assert kinds(check(body, "P0 R4 R5", behind, NVIDIA)) == INVALID


def test_a_move_that_overwrites_a_predicate() -> None:
    body = "bb0\n%0:P=S\n%1:P=S\n@%0 X %1\n"
    assert kinds(check(body, "P0 P1", insert(move([0, 2], ("%0", "%1"))), NVIDIA)) == WRONG
    assert check(body, "P0 P1", insert(move([0, 2], ("%1", "%0"))), NVIDIA) != ()


def test_files_and_slots_of_sm_80() -> None:
    body = "bb0\n%0:R=A\n%1:UR=A\n%2:P=A\nB\n"
    places = "R4 UR4 P0"
    assert check(body, places, insert(move([0, 3], ("%0", "%1"))), NVIDIA) == ()
    assert kinds(check(body, places, insert(move([0, 3], ("%1", "%0"))), NVIDIA)) == INVALID
    assert kinds(check(body, places, insert(move([0, 3], ("%0", "%2"))), NVIDIA)) == INVALID
    assert check(body, places, insert(spill([0, 3], "slot0", "%0")), NVIDIA) == ()
    assert kinds(check(body, places, insert(spill([0, 3], "slot0", "%2")), NVIDIA)) == INVALID
    assert kinds(check(body, places, insert(reload([0, 3], "%1", "slot0")), NVIDIA)) == INVALID


def test_a_constant_under_no_guard_on_sm_80() -> None:
    body = "bb0\n%0:R=IMAD.MOV.U32\n%1:R=B\nC %1\nD %0\n"
    assert check(body, "R4 R4", insert(again([0, 3], "%0", [0, 0])), NVIDIA) == ()


def test_live_ins_can_be_moved_away_by_their_copies_only() -> None:
    body = "bb0(v0)\n%0=COPY v0\n%1=B\nC %1,%0\n"
    assert check(body, "v0 v1", {}) == ()
    # A move overwrites the live-in register before it is read.
    assert kinds(check(body, "v0 v1", insert(move([0, 0], ("%0", "%1"))))) == WRONG
    # The copy of a copy is another value.
    assert kinds(check(body, "v2 v0", {"replace": [[0, 2, 1, "%1"]]})) == WRONG


def test_insertions_in_order_at_one_place() -> None:
    new = {"%2": "V", "%3": "V"}
    first, second = move([0, 1], ("%2", "%0")), move([0, 1], ("%3", "%2"))
    back = move([0, 3], ("%0", "%3"))
    assert check(ACROSS, "v4 v4 v9 v10", insert(first, second, back, new=new)) == ()
    assert kinds(check(ACROSS, "v4 v4 v9 v10", insert(second, first, back, new=new))) == WRONG


def test_the_entry_may_be_filled_before_its_first_instruction() -> None:
    body = "bb0\n@%0:P A\n@%1:P B\n"
    assert kinds(check(body, "P1 P1", {}, NVIDIA)) == WRONG
    edits = insert(move([0, 0], ("%2", "%0")), new={"%2": "P"}, replace=[[0, 0, "guard", "%2"]])
    assert kinds(check(body, "P1 P2 P1", edits, NVIDIA)) == []
    assert kinds(check(body, "P1 P2 P2", edits, NVIDIA)) == WRONG


def test_edits_on_either_edge_of_a_guarded_branch() -> None:
    body = (
        "bb0->bb1,bb2\n%0:P=A\n%1:R=A\n@{}%0 BRA\n"
        "bb1\n%2:R=A\nUSE %1,%2\nEXIT\nbb2\n%3:R=A\nUSE %1,%3\nEXIT\n"
    )
    new = {"%4": "R"}
    replaced = [[1, 1, 0, "%4"], [2, 1, 0, "%4"]]
    taken, passed = (move({"edge": [0, b]}, ("%4", "%1")) for b in (1, 2))
    for sign in ("", "!"):
        both = insert(taken, passed, new=new, replace=replaced)
        assert check(body.format(sign), "P0 R0 R0 R0 R1", both, NVIDIA) == ()
        for one, block in ((taken, 2), (passed, 1)):
            edits = insert(one, new=new, replace=replaced)
            (finding,) = check(body.format(sign), "P0 R0 R0 R0 R1", edits, NVIDIA)
            assert (finding.kind.value, finding.block) == ("wrong_value", block)


def test_each_constant_is_a_value_of_its_own() -> None:
    body = "bb0\n%0=V_MOV_B32\n%1=V_MOV_B32\nC %0\nD %1\n"
    first = {"at": [0, 2], "rematerialize": ["%2", [0, 0]]}
    second = {"at": [0, 2], "rematerialize": ["%3", [0, 1]]}
    edits = insert(first, second, new={"%2": "V", "%3": "V"})
    own, crossed = ([[0, 2, 0, one], [0, 3, 0, two]] for one, two in (("%2", "%3"), ("%3", "%2")))
    places = "v4 v5 v6 v7"
    assert check(body, places, {**edits, "replace": own}) == ()
    assert kinds(check(body, places, {**edits, "replace": crossed})) == WRONG * 2


def test_a_slot_below_is_not_touched() -> None:
    """slot0 has a scalar, slot1 and slot2 have a vector pair."""
    body = "bb0\n%0:G=S_A\n%1:V2=A\nC %0,%1\n"
    spills = [{"at": [0, 2], "spill": [s, r]} for s, r in (("slot0", "%0"), ("slot1-2", "%1"))]
    reloads = [{"at": [0, 2], "reload": [r, s]} for s, r in (("slot0", "%0"), ("slot1-2", "%1"))]
    found = check(body, "s0 v4", insert(*spills, *reloads))
    one = check(body, "s0 v4", insert(spills[0], reloads[0]))
    other = check(body, "s0 v4", insert(spills[1], reloads[1]))
    assert found == one == other == ()
