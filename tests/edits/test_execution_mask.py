"""Where vector registers can be inserted for: threads that EXEC stops must not miss anything."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.edits import VectorPlaces, parse_edits
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import MaskChange, get_target
from verilocc_bench.verification.symbolic import SymbolicChecker

HEAD = """verilocc-bench 1
target gfx942
registers v:16 a:16 s:16 vcc:2=vcc_lo,vcc_hi
class V 1 v
class S2 2 s/2 vcc
"""

IF = """bb0->bb1,bb2
%0=V_MOV_B32
%1:S2=COPY
%2:S2=V_CMP %0
S_AND_B64_term %2
S_CBRANCH_EXECZ
bb1->bb2
DS_WRITE %0
S_BRANCH
bb2
{join}DS_WRITE %0
S_ENDPGM
"""

LOOP = """bb0->bb1
%0=V_MOV_B32
%1:S2=COPY
bb1->bb1,bb2
DS_WRITE %0
S_ANDN2_B64_term %1
S_CBRANCH_EXECNZ
bb2->bb3
DS_WRITE %0
bb3
S_OR_B64 %1
DS_WRITE %0
S_ENDPGM
"""


def places(text: str) -> VectorPlaces:
    function = parse_function(HEAD + text, canonical=False)
    return VectorPlaces(function, get_target(function.target))


def free(text: str) -> set[tuple[int, int]]:
    """The places without objections."""
    found = places(text)
    return {
        (block, index)
        for block, each in enumerate(found.function.blocks)
        for index in range(len(each.instructions) + 1)
        if not list(found.objections(block, index))
    }


def test_an_if_with_a_join_that_wakes() -> None:
    assert free(IF.format(join="S_OR_B64 %1\n")) == {
        *((0, index) for index in range(4)),
        *((1, index) for index in range(3)),
        *((2, index) for index in range(1, 4)),
    }


def test_a_join_that_does_not_wake_is_passed_by_sleepers() -> None:
    assert free(IF.format(join="")) == {
        *((0, index) for index in range(4)),
        *((1, index) for index in range(3)),
    }


def test_behind_a_loop_that_does_not_wake() -> None:
    before = {*((0, index) for index in range(3)), *((1, index) for index in range(2))}
    assert free(LOOP) == before
    wakes = LOOP.replace("S_OR_B64 %1\n", "").replace("bb2->bb3\n", "bb2->bb3\nS_OR_B64 %1\n")
    behind = {*((2, index) for index in range(1, 3)), *((3, index) for index in range(3))}
    assert free(wakes) == before | behind


NESTED = """bb0->bb1,bb2
%0=V_MOV_B32
%1:S2=S_MOV_B64
S_AND_B64_term %1
S_CBRANCH_EXECZ
bb1->bb2
%2:S2=S_AND_SAVEEXEC_B64 %1
%3=V_ADD
S_OR_B64 %2
bb2->bb3
S_NOP
bb3
S_OR_B64 %1
DS_WRITE %0
S_ENDPGM
"""


def test_the_mask_of_another_does_not_wake() -> None:
    assert {block for block, _ in free(NESTED)} == {0}


@pytest.mark.parametrize(
    ("narrows", "added", "wakes"),
    [
        ("%3:S2=COPY\n%4:S2=S_AND_B64 %3,%1\nS_MOV_B64_term %4", "%3", True),
        ("%3:S2=COPY\n%4:S2=S_AND_B64 %3,%1\nS_MOV_B64_term %4", "%4", False),
        ("%3:S2=COPY\n%4:S2=S_ANDN2_B64 %3,%1\nS_MOV_B64_term %4", "%3", True),
        ("%3:S2=COPY\n%4:S2=S_ANDN2_B64 %1,%3\nS_MOV_B64_term %4", "%3", False),
        ("%3:S2=COPY\n%4:S2=S_AND_B64 %1,%2\nS_MOV_B64_term %4", "%3", False),
        ("%3:S2=COPY\nS_MOV_B64_term %3", "%3", False),
        ("%3:S2=COPY\nS_OR_B64 %1\n%4:S2=S_AND_B64 %3,%1\nS_MOV_B64_term %4", "%3", False),
        ("%3:S2=COPY\nS_OR_B64 %1\nS_AND_B64_term %2", "%3", False),
        ("%3:S2=COPY\n%4:S2=S_XOR_B64 %1,%3\nS_AND_B64_term %1", "%4", True),
        ("%3:S2=COPY\n%4:S2=S_XOR_B64 %2,%3\nS_AND_B64_term %1", "%4", False),
        ("%3:S2=COPY\n%4:S2=S_XOR_B64 %1,%3\nS_ANDN2_B64_term %1", "%4", False),
        ("%3:S2=S_AND_SAVEEXEC_B64 %1", "%3", True),
        ("%3:S2=S_AND_SAVEEXEC_B64 %1\nS_AND_B64_term %2", "%3", False),
        ("%3:S2=COPY\nS_AND_B64_term %1\n%3=S_MOV_B64", "%3", False),
        ("S_ANDN2_B64_term %1", "%1", True),
        ("S_ANDN2_B64_term %1", "%2", False),
    ],
)
def test_which_masks_wake(narrows: str, added: str, wakes: bool) -> None:
    text = f"bb0->bb1\n%0=V_MOV_B32\n%1:S2=S_LOAD\n%2:S2=S_LOAD\nbb1->bb2,bb3\n{narrows}\n"
    text += f"bb2->bb3\nDS_WRITE %0\nbb3\nS_OR_B64 {added}\nDS_WRITE %0\nS_ENDPGM\n"
    assert ((3, 1) in free(text)) is wakes


@pytest.mark.parametrize(("around", "wakes"), [("bb1,bb4", True), ("bb1,bb2", False)])
def test_a_mask_that_was_saved_further_out(around: str, wakes: bool) -> None:
    saved = "%2:S2=COPY\n"
    text = f"bb0->{around}\n%0=V_MOV_B32\n%1:S2=S_LOAD\n{saved if wakes else ''}S_CBRANCH_SCC0\n"
    text += f"bb1->bb2\n{'' if wakes else saved}S_NOP\nbb2->bb3\nS_NOP\nbb3->bb3,bb4\nS_NOP\n"
    text += "S_ANDN2_B64_term %1\nbb4\nS_OR_B64 %2\nDS_WRITE %0\nS_ENDPGM\n"
    assert ((4, 1) in free(text)) is wakes


def test_a_terminator_that_wakes() -> None:
    text = IF.format(join="S_OR_B64_term %1\n")
    assert {place for place in free(text) if place[0] == 2} == {(2, 1), (2, 2), (2, 3)}
    for opcode in ("S_XOR_B64_term", "S_MOV_B64", "COPY.exec"):
        text = IF.format(join=f"{opcode} %1\n")
        assert not {place for place in free(text) if place[0] == 2}


def test_a_block_that_stops_threads_and_has_one_way_on() -> None:
    text = IF.format(join="").replace("bb0->bb1,bb2", "bb0->bb1")
    assert {block for block, _ in free(text)} == {0}


def test_nvidia_has_no_such_places() -> None:
    text = """verilocc-bench 1
target sm_80
registers R:16 UR:63 P:7 UP:7
class R 1 R
bb0
%0=S2R
STG %0
EXIT
"""
    function = parse_function(text)
    found = VectorPlaces(function, get_target("sm_80"))
    assert not any(list(found.objections(0, index)) for index in range(4))


def kinds(text: str, assignment: dict[str, str], edits: object) -> set[FindingKind]:
    function = parse_function(HEAD + text, canonical=False)
    return {f.kind for f in SymbolicChecker(function).check(assignment, parse_edits(edits))}


def test_the_checker_asks_for_the_place() -> None:
    own = {"%0": "v0", "%1": "s0", "%2": "s2"}
    move = {"move": [["%0", "%0"]]}
    for join, index, expected in (
        ("S_OR_B64 %1\n", 0, {FindingKind.INVALID_EDIT}),
        ("S_OR_B64 %1\n", 1, set()),
        ("", 0, {FindingKind.INVALID_EDIT}),
    ):
        edits = {"insert": [{"at": [2, index], **move}]}
        assert kinds(IF.format(join=join), own, edits) == expected
    scalar = {"insert": [{"at": [2, 0], "move": [["%2", "%2"]]}]}
    assert not kinds(IF.format(join="S_OR_B64 %1\n"), own, scalar)


def test_a_use_and_a_definition_of_the_same_lanes_stay_together() -> None:
    text = "bb0\n%0=V_MOV_B32\n%0=V_FMAC_F32 %0\nDS_WRITE %0\nS_ENDPGM\n"
    own = {"%0": "v0", "%1": "v1"}
    insert = [{"at": [0, 1], "move": [["%1", "%0"]]}]
    edits = {"new": {"%1": "V"}, "insert": insert}
    assert not kinds(text, own, {**edits, "replace": []})
    only_use = {**edits, "replace": [[0, 1, 1, "%1"]]}
    assert kinds(text, own, only_use) == {FindingKind.TIED_MISMATCH}
    both = {**edits, "replace": [[0, 1, 0, "%1"], [0, 1, 1, "%1"], [0, 2, 0, "%1"]]}
    assert not kinds(text, own, both)


def test_a_constant_is_made_again_in_its_own_file() -> None:
    text = "bb0\n%0=V_MOV_B32\nDS_WRITE %0\nS_ENDPGM\n"
    for spelled, register, expected in (
        ("V", "v3", set()),
        ("A 1 a", "a0", {FindingKind.INVALID_EDIT}),
    ):
        edits = {
            "new": {"%1": spelled},
            "insert": [{"at": [0, 1], "rematerialize": ["%1", [0, 0]]}],
        }
        assert kinds(text, {"%0": "v0", "%1": register}, edits) == expected


MACHINE_IR = """---
name: f
body: |
  bb.0:
    liveins: $sgpr0_sgpr1
    %0:sreg_64 = COPY $sgpr0_sgpr1
    %1:sreg_64 = COPY $exec, implicit-def $exec
    $exec = {writer}
    S_ENDPGM 0
...
"""


def test_what_an_opcode_does_not_tell_of_exec_is_marked() -> None:
    target = get_target("gfx942")
    for writer, opcode, change in (
        ("S_OR_B64 $exec, %0, implicit-def $scc", "S_OR_B64", MaskChange.WIDENS),
        ("S_OR_B64 %0, %1, implicit-def $scc", "S_OR_B64.exec", MaskChange.ANY),
        ("S_AND_B64 %0, $exec, implicit-def $scc", "S_AND_B64", MaskChange.NARROWS),
        ("S_AND_B64 %0, %1, implicit-def $scc", "S_AND_B64.exec", MaskChange.ANY),
        ("S_ANDN2_B64_term $exec, %0, implicit-def $scc", "S_ANDN2_B64_term", MaskChange.NARROWS),
        ("S_ANDN2_B64 %0, $exec, implicit-def $scc", "S_ANDN2_B64.exec", MaskChange.ANY),
        ("S_MOV_B64_term %0", "S_MOV_B64_term", MaskChange.ANY),
        ("S_MOV_B64 %0", "S_MOV_B64", MaskChange.ANY),
        ("COPY %0", "COPY.exec", MaskChange.ANY),
        ("S_XOR_B64_term $exec, %0, implicit-def $scc", "S_XOR_B64_term", MaskChange.ANY),
    ):
        module = parse_mir(MACHINE_IR.format(writer=writer))
        normalized = normalize_machine_function(module.functions[0], module, target)
        written = normalized.function.blocks[0].instructions[2]
        assert (written.opcode, target.mask_change(written)) == (opcode, change)
        copy = normalized.function.blocks[0].instructions[1]
        assert (copy.opcode, target.mask_change(copy)) == ("COPY", MaskChange.NONE)
