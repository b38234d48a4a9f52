"""What a run does, case by case: each function by hand, with the difference it must show.

Of answers with edits, test_symbolic_edits has more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from verilocc_bench.analysis import parse_register_name
from verilocc_bench.edits import VectorPlaces, edit_function, parse_edits
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.verification.value_walk import Miscompile, ValueWalk
from verilocc_bench.verification.value_walk.code import Code

AMD = """verilocc-bench 1
target gfx942
registers v:8 a:4 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
class S2 2 s/2 vcc/2
class V2 2 v/2
"""
NVIDIA = """verilocc-bench 1
target sm_80
registers R:8 UR:4 P:4 UP:2
class R 1 R
class P 1 P
"""


def run(
    text: str, assignment: Mapping[str, str], edits: Any = None, runs: int = 60
) -> Miscompile | None:
    """The first difference of some runs."""
    function = parse_function(text, canonical=False)
    target = get_target(function.target)
    edited = None
    if edits is not None:
        edited, findings = edit_function(function, target, parse_edits(edits))
        assert not findings
    bases = {}
    for name, register in assignment.items():
        base = parse_register_name(target, register)
        assert base is not None
        bases[int(name[1:])] = base.file, base.index
    walk = ValueWalk(function, target, bases, edited)
    found = (walk.run(seed, 100) for seed in range(runs))
    return next((difference for difference in found if difference is not None), None)


def shows(text: str, assignment: Mapping[str, str], edits: Any = None) -> Miscompile:
    shown = run(text, assignment, edits)
    assert shown is not None
    return shown


def test_a_destroyed_value_is_shown_with_its_path() -> None:
    text = AMD + "bb0->bb1\n%0:V=OP\nbb1\n%1:V=OP\nOP %0\n"
    assert run(text, {"%0": "v0", "%1": "v1"}) is None
    shown = shows(text, {"%0": "v0", "%1": "v0"})
    assert (shown.block, shown.instruction, shown.operand) == (1, 1, 0)
    assert (shown.lane, shown.unit) == ("%0", "v0")
    assert (shown.expected.block, shown.expected.instruction) == (0, 0)
    assert shown.found is not None
    assert (shown.found.block, shown.found.lane) == (1, "%1")
    assert [block.block for block in shown.trace] == [0, 1]
    assert str(shown).splitlines() == [
        "bb1 instruction 1, operand 0: %0 in v0",
        "  should be %0 of bb0 instruction 0 at step 2",
        "  is %1 of bb1 instruction 0 at step 4",
        "  along 2 blocks",
        "    bb0",
        "    bb1",
    ]
    assert shown.to_json()["trace"] == [
        {"block": 0, "decisions": []},
        {"block": 1, "decisions": []},
    ]


GUARDED = "bb0->bb1,bb2\n%0:P=OP\n%1:R=OP\n@%0 %2:R=OP\n@{}%0 BRA\nbb1\nOP %1\nbb2\nOP %2\n"
UNREACHED = "bb0\nOP\nbb1->bb1\nOP %0:V\n%0=OP\n%1:V=OP\n"


@pytest.mark.parametrize(
    ("text", "places", "differs"),
    [
        pytest.param(AMD + "bb0\n%0:V=OP\n%1:V=OP\nOP %1\n", "v0 v0", False, id="dead"),
        pytest.param(AMD + "bb0\n%0:V=OP\n%1:V=OP\nOP %0!\n", "v0 v0", False, id="undef-use"),
        pytest.param(AMD + "bb0\n%0:V=OP\n%1:V=OP\nOP %0\n", "v0 v0", True, id="use"),
        pytest.param(NVIDIA + GUARDED.format("!"), "P0 R0 R0", False, id="branch-by-guard"),
        pytest.param(NVIDIA + GUARDED.format(""), "P0 R0 R0", True, id="branch-by-opposite"),
        pytest.param(NVIDIA + "bb0(P0)\n%0:P=OP\n@%0 OP\n", "P0", False, id="entry-unread"),
        pytest.param(NVIDIA + "bb0(P0)\n%0:P=OP\n@%0 OP\nOP P0\n", "P0", True, id="entry-read"),
        pytest.param(AMD + UNREACHED, "v0 v1", False, id="out-of-reach-apart"),
        pytest.param(AMD + UNREACHED, "v0 v0", True, id="out-of-reach-together"),
    ],
)
def test_only_what_is_read_may_not_be_destroyed(text: str, places: str, differs: bool) -> None:
    named = {f"%{number}": place for number, place in enumerate(places.split())}
    assert (run(text, named) is not None) == differs


@pytest.mark.parametrize(
    ("text", "right", "wrong", "place", "found"),
    [
        pytest.param(
            AMD + "bb0\n%0:V2.0!=OP\n%1:V=OP\nOP %0,%1\n", ("", "v0 v1"), ("", "v0 v0"),
            (2, 0, "%0.0", "v0"), "%1 of bb0 instruction 1", id="nothing-wrote-the-other-lane",
        ),
        pytest.param(
            AMD + "bb0\n%0:V2=OP\n%0.0{},%1:V2.0!=OP\n%2:V=OP\nOP %0\n",
            ("!", "v0 v2 v1"), ("", "v0 v2 v1"),
            (3, 0, "%0.1", "v1"), "%2 of bb0 instruction 2", id="undef-ends-the-other-lane",
        ),
        pytest.param(
            AMD + "bb0\n%0:V=OP\n%1:V{}=OP %0\nOP %1\n", ("", "v0 v0"), ("&", "v0 v0"),
            (1, 1, "%0", "v0"), "%1 of bb0 instruction 1", id="early-before-uses",
        ),
        pytest.param(
            AMD + "bb0\n%0:V=OP\n{}%0&=OP %0\nOP %0\n", ("", "v0"), ("%1:V=OP\n", "v0 v0"),
            (2, 1, "%0", "v0"), "%1 of bb0 instruction 1", id="early-spares-its-own-old-value",
        ),
        pytest.param(
            NVIDIA + "bb0\n%0:P=OP\n@%0 %1:P{}=OP\n", ("", "P0 P0"), ("&", "P0 P0"),
            (1, -1, "%0", "P0"), "%1 of bb0 instruction 1", id="early-before-the-guard",
        ),
        pytest.param(
            NVIDIA + "bb0\n%0:P=OP\n@%0 %1:P&=OP\n", ("", "P0 P1"), ("", "P0 P0"),
            (1, -1, "%0", "P0"), "%1 of bb0 instruction 1", id="early-beside-the-guard",
        ),
        pytest.param(
            AMD + "bb0\n%0:V,%1:V=OP\n", ("", "v0 v1"), ("", "v0 v0"),
            (0, 0, "%0", "v0"), "%1 of bb0 instruction 0", id="two-at-once",
        ),
        pytest.param(
            NVIDIA + "bb0\n@%0:P OP\n@%1:P OP\n", ("", "P0 P1"), ("", "P0 P0"),
            (1, -1, "%1", "P0"), "%0 from the entry", id="guards-from-the-entry",
        ),
    ],
)  # fmt: skip
def test_what_destroys_and_what_does_not(
    text: str,
    right: tuple[str, str],
    wrong: tuple[str, str],
    place: tuple[int, int, str, str],
    found: str,
) -> None:
    """`right` and `wrong` are what stands in the gap of the text, and the places."""
    named = [{f"%{n}": base for n, base in enumerate(each[1].split())} for each in (right, wrong)]
    assert run(text.format(right[0]), named[0]) is None
    shown = shows(text.format(wrong[0]), named[1])
    assert (shown.instruction, shown.operand, shown.lane, shown.unit) == place
    assert str(shown.found).startswith(found)


def test_an_instruction_that_does_not_act_destroys_nothing() -> None:
    text = NVIDIA + "bb0\n%0:P=OP\n%1:R=OP\n@%0 %2:R=OP\n@{}%0 OP %1\n"
    places = {"%0": "P0", "%1": "R0", "%2": "R0"}
    assert run(text.format("!"), places) is None
    shown = shows(text.format(""), places)
    assert shown.trace[0].decisions == ((2, "%0 is true"), (3, "%0 is true"))


def test_a_unit_that_a_move_writes_twice_holds_nothing() -> None:
    text = AMD + "bb0\n%0:V=OP\n%1:V=OP\nOP %0,%1\n"
    places = {"%0": "v0", "%1": "v1"}
    right, wrong = ["%0", "%0"], ["%0", "%1"]
    for pairs in ([right, wrong], [wrong, right]):
        shown = shows(text, places, {"insert": [{"at": [0, 2], "move": pairs}]})
        assert shown.found is None
    assert run(text, places, {"insert": [{"at": [0, 2], "move": [right]}]}) is None


def test_units_and_lanes_have_the_names_of_the_assembler() -> None:
    text = AMD + "bb0(vcc_hi)\n%0:S2=OP\nOP %0,vcc_hi\n"
    shown = shows(text, {"%0": "vcc"})
    assert (shown.lane, shown.unit) == ("vcc_hi", "vcc_hi")
    assert str(shown.expected) == "vcc_hi from the entry"
    numbered = shows(AMD + "bb0(v7)\n%0:V=OP\nOP %0,v7\n", {"%0": "v7"})
    assert (numbered.lane, numbered.unit) == ("v7", "v7")


def test_slots_are_named_by_number_and_each_unit_has_its_own() -> None:
    """The two halves come back each from its slot, or crossed."""
    text = AMD + "bb0\n%0:V2=OP\nOP %0\n"
    spill = {"at": [0, 1], "spill": ["slot3-4", "%0"]}
    for slots, right in ((("slot3", "slot4"), True), (("slot4", "slot3"), False)):
        reloads = [
            {"at": [0, 1], "reload": [f"%0.{lane}", slot]} for lane, slot in enumerate(slots)
        ]
        shown = run(text, {"%0": "v0"}, {"insert": [spill, *reloads]})
        assert (shown is None) == right
        if shown is not None:
            assert (shown.lane, shown.unit) == ("%0.0", "v0")


def test_a_long_path_is_shown_by_its_end() -> None:
    """30 blocks one after the other: the last 24 are shown."""
    blocks = "".join(f"bb{n}->bb{n + 1}\nOP\n" for n in range(1, 29))
    text = AMD + f"bb0->bb1\n%0:V=OP\n{blocks}bb29\n%1:V=OP\nOP %0\n"
    shown = shows(text, {"%0": "v0", "%1": "v0"})
    lines = str(shown).splitlines()
    assert lines[3:5] == ["  along 30 blocks", "    …"]
    assert lines[5:] == [f"    bb{n}" for n in range(6, 30)]
    exactly = AMD + "".join(f"bb{n}->bb{n + 1}\nOP\n" for n in range(23)).replace(
        "OP", "%0:V=OP", 1
    )
    shown = shows(exactly + "bb23\n%1:V=OP\nOP %0\n", {"%0": "v0", "%1": "v0"})
    assert str(shown).splitlines()[3:5] == ["  along 24 blocks", "    bb0"]


def test_a_constant_is_the_same_value_every_time() -> None:
    text = AMD + "bb0->bb1\nOP\nbb1->bb1\n%0:V=V_MOV_B32\n%1:V=V_MOV_B32\nOP %0,%1\n"
    places = {"%0": "v0", "%1": "v0", "%2": "v1"}
    replaced = {"new": {"%2": "V"}, "replace": [[1, 2, 0, "%2"]]}
    again = {"at": [0, 1], "rematerialize": ["%2", [1, 0]]}
    assert run(text, places, {**replaced, "insert": [again]}) is None
    other = {"at": [0, 1], "rematerialize": ["%2", [1, 1]]}
    shown = shows(text, places, {**replaced, "insert": [other]})
    assert str(shown.expected).startswith("%0 of bb1 instruction 0 at step ")
    assert str(shown.found) == "the constant %1 of bb1 instruction 1"


MASKED = (
    AMD
    + """bb0->bb1,bb2
%0:S2=OP
%1:V=OP
S_ANDN2_B64 %0
S_CBRANCH_EXECZ
bb1->bb2
%2:V=OP
OP %2
bb2
S_OR_B64 %0
OP %1
"""
)
MASKED_PLACES = {"%0": "s0", "%1": "v0", "%2": "v1"}


def test_a_move_where_some_threads_sleep_is_shown() -> None:
    edits = {
        "new": {"%3": "V"},
        "replace": [[2, 1, 0, "%3"]],
    }
    places = {**MASKED_PLACES, "%3": "v2"}
    move = ["%3", "%1"]
    assert run(MASKED, places, {**edits, "insert": [{"at": [0, 2], "move": [move]}]}) is None
    assert run(MASKED, places, {**edits, "insert": [{"at": [2, 1], "move": [move]}]}) is None
    for at in ([0, 3], [2, 0]):
        shown = shows(MASKED, places, {**edits, "insert": [{"at": at, "move": [move]}]})
        assert (2, "the thread falls asleep") in shown.trace[0].decisions
        assert (0, "the thread wakes") in shown.trace[-1].decisions
    on_edges = [{"at": {"edge": [0, s]}, "move": [move]} for s in (1, 2)]
    assert run(MASKED, places, {**edits, "insert": on_edges}) is not None


def test_scalar_moves_do_not_mind_the_mask() -> None:
    places = {**MASKED_PLACES, "%3": "s4"}
    edits = {
        "new": {"%3": "S2"},
        "insert": [{"at": [2, 0], "move": [["%3", "%0"]]}],
        "replace": [[2, 0, 0, "%3"]],
    }
    assert run(MASKED, places, edits) is None
    # Written while the thread sleeps, and yet for the whole wave.
    clobber = {"at": [1, 0], "move": [["%3", "%0"]]}
    assert run(MASKED, {**places, "%3": "s0"}, {**edits, "insert": [clobber]}) is None


def test_masks_never_fail_what_is_valid_without_edits() -> None:
    # %1 and %2 share v0: %1 is dead between its two definitions, in the graph. A thread that
    # sleeps from the first on never executes the second, and finds no value of its own after.
    text = MASKED.replace("bb1->bb2\n%2:V=OP\n", "%2:V=OP\nOP %2\n%1=OP\nbb1->bb2\n%3:V=OP\n")
    text = text.replace("OP %2\nbb2", "OP %3\nbb2").replace("S_CBRANCH_EXECZ\n", "")
    assert run(text, {**MASKED_PLACES, "%2": "v0", "%3": "v1"}, runs=200) is None
    assert run(text, {**MASKED_PLACES, "%2": "v0", "%3": "v0"}, runs=200) is not None


def first_block(text: str, bases: Mapping[int, tuple[str, int]]) -> tuple[Any, Any]:
    """The code of the first block, and what names lanes."""
    code = Code(parse_function(text, canonical=False), get_target("gfx942"), bases, None)
    return code.block(0), lambda lanes: [code.lane_name(lane) for lane in lanes]


def test_a_sleeping_thread_takes_part_in_what_is_scalar_alone() -> None:
    """Of each instruction the scalar operands are left; its vector lanes are named apart."""
    text = AMD.replace("class V2", "class G 1 s\nclass V2") + (
        "bb0(v5,s5)\n%0:V=OP\n%1:G=OP\n%2:V2.0!,%3:G,v6,s6=OP %0,%1,v5,s5\n"
        "%0&,%1&=OP %0,%1\n%4:S2.0!=OP\n"
    )
    bases = {0: ("v", 0), 1: ("s", 0), 2: ("v", 2), 3: ("s", 1), 4: ("s", 2)}
    (_, _, both, early, undef), names = first_block(text, bases)
    assert names(d[1] for d in both.only_scalar.definitions) == ["%3", "s6"]
    assert names(use[1] for use in both.only_scalar.uses) == ["%1", "s5"]
    assert both.only_scalar.ended == ()
    assert sorted(set(names(both.masked_lanes))) == ["%2.0", "%2.1", "v6"]
    assert names(d[1] for d in early.only_scalar.definitions) == ["%1"]
    assert early.only_scalar.early == (0,)
    assert names(use[1] for use in early.only_scalar.own_uses) == ["%1"]
    assert names(early.masked_lanes) == ["%0"]
    assert names(undef.only_scalar.ended) == ["%4.0", "%4.1"]
    assert undef.masked_lanes == ()


def test_a_sleeping_thread_keeps_its_vector_registers_over_a_call() -> None:
    """What a call destroys is gone for all, but a vector register only for threads that execute."""
    header = AMD.replace("class V 1", "mask m0 v[4:5] s[2:3]\nclass V 1")
    # So many registers that the number of a lane and that of its physical register differ in kind.
    virtual = "".join(f"%{number}:V=OP\n" for number in range(11))
    text = header + "bb0\n" + virtual + "%11:V=SI_CALL ^m0\n"
    (*_, call), names = first_block(text, dict.fromkeys(range(12), ("v", 0)))
    assert names(lane for lane, _ in call.effects.destroyed) == ["v4", "v5", "s2", "s3"]
    assert names(lane for lane, _ in call.only_scalar.destroyed) == ["s2", "s3"]
    assert names(call.masked_lanes) == ["%11", "v4", "v5"]


def test_a_definition_in_what_its_call_destroys_is_shown_with_its_place() -> None:
    header = AMD.replace("class V 1", "mask m0 v[4:5]\nclass V 1")
    text = header + "bb0->bb1\nOP\nbb1\nOP\n%0:V=SI_CALL ^m0\nOP %0\n"
    assert run(text, {"%0": "v3"}) is None
    shown = shows(text, {"%0": "v4"})
    assert (shown.block, shown.instruction, shown.operand) == (1, 1, 0)
    assert (shown.lane, shown.unit) == ("%0", "v4")


def walk(text: str, bases: Mapping[int, tuple[str, int]] | None = None) -> ValueWalk:
    function = parse_function(text, canonical=False)
    return ValueWalk(function, get_target(function.target), bases or {}, None)


def test_distances_are_counted_in_edges() -> None:
    text = AMD + "bb0->bb1,bb3\nbb1->bb2\nbb2->bb1,bb3\nbb3->bb4\nbb4\nbb5->bb4\n"
    assert walk(text).distance(3) == {3: 0, 0: 1, 2: 1, 1: 2}
    assert walk(text).distance(4) == {4: 0, 3: 1, 5: 1, 0: 2, 2: 2, 1: 3}
    assert walk(text).distance(0) == {0: 0}


def test_threads_fall_asleep_where_the_mask_narrows_and_wake_where_it_widens() -> None:
    own = walk(MASKED)
    assert own.wakes_in == {0: (2,)}
    assert walk(NVIDIA + "bb0->bb1\nOP\nbb1\nOP\n").wakes_in == {}


def test_insertions_at_the_end_of_blocks_in_a_sleeping_thread() -> None:
    places = {**MASKED_PLACES, "%3": "s4"}
    text = MASKED.replace("S_CBRANCH_EXECZ\n", "")
    for at in ([1, 2], [0, 3]):
        edits = {"new": {"%3": "S2"}, "insert": [{"at": at, "move": [["%3", "%0"]]}]}
        assert run(text, places, edits) is None


def test_a_sleeping_thread_sees_what_happens_to_scalars() -> None:
    text = MASKED.replace("OP %2\n", "OP %2\n%3:S2=OP\n")
    own = walk(text, {0: ("s", 0), 1: ("v", 0), 2: ("v", 1), 3: ("s", 0)})
    asleep = 0
    for seed in range(60):
        shown = own.run(seed, 100)
        path = [] if shown is None else [block.block for block in shown.trace]
        if shown is None or path != [0, 1, 2]:
            continue
        asleep += (2, "the thread falls asleep") in shown.trace[0].decisions
        assert (shown.block, shown.instruction, shown.lane) == (2, 0, "%0.0")
        assert shown.found is not None
        assert (shown.found.block, shown.found.instruction, shown.found.lane) == (1, 2, "%3.0")
    assert asleep > 5


def test_what_a_thread_misses_on_its_own_path_has_no_value() -> None:
    """The old %1 gave way to %2, and the new one is defined where the thread sleeps."""
    text = AMD + (
        "bb0->bb1,bb2\n%0:S2=OP\n%1:V=OP\nOP %1\n%2:V=OP\nOP %2\nS_ANDN2_B64 %0\n%1=OP\n"
        "bb1->bb2\nOP\nbb2\nS_OR_B64 %0\nOP %1\n"
    )
    assert run(text, {"%0": "s0", "%1": "v0", "%2": "v0"}, runs=200) is None


def test_a_thread_wakes_on_its_own_path_alone() -> None:
    """It goes from bb0 to bb3; the wave, on its way through bb1, widens its mask in bb2."""
    text = AMD + (
        "bb0->bb1,bb3\n%0:S2=OP\n%1:V=OP\nOP %1\n%2:V=OP\nOP %2\nS_ANDN2_B64 %0\n"
        "bb1->bb2\n%1=OP\nbb2->bb3\nS_OR_B64 %0\nOP %1\nbb3\nS_OR_B64 %0\nOP\n"
    )
    assert run(text, {"%0": "s0", "%1": "v0", "%2": "v0"}, runs=200) is None


def test_each_change_of_the_mask_does_only_what_it_says() -> None:
    """A thread falls asleep at the narrowing alone, and wakes at the next block's widening."""
    text = AMD + (
        "bb0->bb1\n%0:S2=OP\nS_OR_B64 %0\nS_ANDN2_B64 %0\nS_OR_B64 %0\n"
        "bb1\nS_ANDN2_B64 %0\nS_OR_B64 %0\n%1:S2=OP\nOP %0\n"
    )
    own = walk(text, {0: ("s", 0), 1: ("s", 0)})
    seen = set()
    for seed in range(40):
        shown = own.run(seed, 100)
        assert shown is not None
        seen.add(tuple(block.decisions for block in shown.trace))
    asleep = (((2, "the thread falls asleep"),), ((1, "the thread wakes"),))
    assert seen == {((), ()), asleep}


def test_a_thread_that_is_not_added_sleeps_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk knows by itself that a mask lacks the thread that it stopped."""
    text = AMD + (
        "bb0->bb1,bb2\n%0:V=OP\n%1:S2=COPY\n%2:S2=S_LOAD\n%3:S2=S_AND_B64 %1,%2\n"
        "S_MOV_B64_term %3\nbb1->bb2\nOP %0\nbb2->bb3\nS_OR_B64 %3\nOP %0\n"
        "bb3\nS_OR_B64 %1\nOP %0\n"
    )
    edits = {"new": {"%4": "V"}, "insert": [{"at": [2, 1], "move": [["%4", "%0"]]}],
             "replace": [[3, 1, 0, "%4"]]}  # fmt: skip
    monkeypatch.setattr(VectorPlaces, "objections", lambda *_: iter(()))
    answer = {"%0": "v0", "%1": "s0", "%2": "s2", "%3": "s4", "%4": "v1"}
    assert shows(text, answer, edits).block == 3
    assert run(text.replace("S_OR_B64 %3", "S_OR_B64 %1"), answer, edits) is None
