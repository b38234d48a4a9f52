"""Every kind of finding fires where it should, and says where: in two checks the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import InvolvedLane
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import (
    FastVerifier,
    Finding,
    FindingKind,
    IndependentVerifier,
    Verdict,
)
from verilocc_bench.verification.smt import SMTVerifier

Check = Callable[[AllocationProblem], FastVerifier | IndependentVerifier | SMTVerifier]

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
reserved s32
"""


def problem(classes: str, body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEADER + classes + body, canonical=False))


SIMPLE = problem(
    "class G 1 s\nclass V 1 v\nclass V2 2 v/2\n",
    "bb0(v0)\n"
    "%0:V=COPY v0\n"
    "%1:V2.0!=V_MOV_B32 %0\n"
    "%1.1=V_MOV_B32 %0\n"
    "%2:G=S_MOV_B32\n"
    "GLOBAL_STORE_DWORD %1,%0,%2\n",
)
VALID = {"%0": "v0", "%1": "v2", "%2": "s0"}


def with_all_cores(problem: AllocationProblem) -> SMTVerifier:
    pytest.importorskip("z3", reason="needs z3-solver (the extra exact)")
    return SMTVerifier(problem, cores=10_000)


both = pytest.mark.parametrize(
    "check",
    [FastVerifier, pytest.param(with_all_cores, marks=pytest.mark.slow)],
    ids=["fast", "smt"],
)
"""Every core is asked for, so that the two checks find the same."""


def judge(check: Check = FastVerifier, **changes: str | None) -> Verdict:
    answer = VALID | {f"%{key[1:]}": value for key, value in changes.items()}
    return check(SIMPLE).verify({k: v for k, v in answer.items() if v is not None})


def only(verdict: Verdict) -> Finding:
    assert not verdict.valid
    assert len(verdict.findings) == 1
    return verdict.findings[0]


@both
def test_a_valid_answer_is_measured(check: Check) -> None:
    verdict = judge(check)
    assert verdict.valid
    assert verdict.findings == ()
    assert verdict.registers_used == {"vector": 4, "v": 4, "a": 0, "s": 1, "vcc": 0}
    assert verdict.occupancy == 8


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"_0": None}, FindingKind.MISSING),
        ({"_7": "v9"}, FindingKind.UNKNOWN_VIRTUAL_REGISTER),
        ({"_0": "v256"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "R4"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "v07"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "s4"}, FindingKind.WRONG_CLASS),
        ({"_2": "vcc"}, FindingKind.WRONG_CLASS),
        ({"_2": "vcc_lo"}, FindingKind.WRONG_CLASS),
        ({"_1": "v5"}, FindingKind.MISALIGNED),
        ({"_2": "s32"}, FindingKind.RESERVED),
        ({"_0": "v64"}, FindingKind.OVER_BUDGET),
        ({"_1": "v63"}, FindingKind.OVER_BUDGET),
        ({"_1": "v255"}, FindingKind.OVER_BUDGET),
        ({"_0": "v2"}, FindingKind.OVERLAP),
        # Numbers have plain digits, and the first of several is not 0.
        ({"_1٣": "v9"}, FindingKind.UNKNOWN_VIRTUAL_REGISTER),
        ({"_00": "v9"}, FindingKind.UNKNOWN_VIRTUAL_REGISTER),
        ({"_0": "v١"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "v"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": ""}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "vcc0"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
        ({"_0": "v[0:1]"}, FindingKind.UNKNOWN_PHYSICAL_REGISTER),
    ],
)
@both
def test_kinds(check: Check, changes: dict[str, str | None], kind: FindingKind) -> None:
    verdict, expected = judge(check, **changes), judge(**changes)
    assert only(verdict).kind is kind
    assert verdict.registers_used == expected.registers_used
    assert verdict.occupancy == expected.occupancy
    of_values = FindingKind.WRONG_VALUE if kind is FindingKind.OVERLAP else kind
    assert {f.kind for f in judge(IndependentVerifier, **changes).findings} == {of_values}


@both
def test_an_overlap_names_the_instruction_and_the_lanes(check: Check) -> None:
    finding = only(judge(check, _0="v3"))
    assert (finding.block, finding.instruction) == (0, 2)
    assert finding.registers == ("%1", "%0")
    assert finding.unit == "v3"
    assert finding.operand == 0
    assert finding.lanes == (
        InvolvedLane("%1.1", ((0, 2),), (0, 4)),
        InvolvedLane("%0", ((0, 0),), (0, 4)),
    )
    assert finding.message == (
        "bb0 instruction 2 (V_MOV_B32) writes %1.1 to v3, which holds %0, "
        "defined at bb0 instruction 0 and next read at bb0 instruction 4"
    )


@both
def test_a_fixed_register_is_not_clobbered(check: Check) -> None:
    function = problem("class V 1 v\n", "bb0(v0)\n%0:V=OP\nUSE v0,%0\n")
    verdict = check(function).verify({"%0": "v0"})
    assert only(verdict).kind is FindingKind.FIXED_REGISTER_CLOBBERED
    assert check(function).verify({"%0": "v1"}).valid


@both
def test_a_live_lane_is_not_clobbered_by_a_fixed_definition(check: Check) -> None:
    function = problem("class S2 2 s/2 vcc/2\n", "bb0\n%0=OP\nvcc=V_CMP\nS_CBRANCH vcc\nUSE %0\n")
    verdict = check(function).verify({"%0": "vcc"})
    assert [(f.kind, f.instruction, f.unit) for f in verdict.findings] == [
        (FindingKind.FIXED_REGISTER_CLOBBERED, 1, "vcc_hi"),
        (FindingKind.FIXED_REGISTER_CLOBBERED, 1, "vcc_lo"),
    ]
    assert check(function).verify({"%0": "s4"}).valid


@both
def test_an_early_clobber_does_not_share_with_the_uses_of_its_instruction(check: Check) -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V=OP\n%1:V&=EARLY %0\nUSE %1\n")
    assert only(check(function).verify({"%0": "v0", "%1": "v0"})).kind is (
        FindingKind.EARLY_CLOBBER
    )
    late = problem("class V 1 v\n", "bb0\n%0:V=OP\n%1:V=LATE %0\nUSE %1\n")
    assert check(late).verify({"%0": "v0", "%1": "v0"}).valid


@pytest.mark.parametrize("use", ["%0~0", "%0!~0"])
@both
def test_tied_operands_share_a_register(check: Check, use: str) -> None:
    function = problem("class V 1 v\n", f"bb0\n%0:V=OP\n%1:V=TIED {use}\nUSE %1\n")
    assert only(check(function).verify({"%0": "v0", "%1": "v1"})).kind is (
        FindingKind.TIED_MISMATCH
    )
    assert check(function).verify({"%0": "v0", "%1": "v0"}).valid


@pytest.mark.parametrize(
    ("classes", "body", "words"),
    [
        ("class V2 2 v/2\nclass V 1 v\n", "bb0\n%0:V2=OP\n%1:V=OP %0~0\n", "ties 2 lanes to 1"),
        ("class FOO 1 v\n", "bb0\n%0=OP\n", "FOO"),
        ("class V 1 v[0-9]\n", "bb0\n%0=OP\n", "V"),
        ("class V 1 v\n", "bb0(v1,v0)\n%0=OP\n", "in order"),
        ("class V 1 v\n", "bb0\n%0=OP v256\n", "v256"),
    ],
)
def test_functions_that_are_none_of_the_target(classes: str, body: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        problem(classes, body)


def test_all_findings_come_in_the_order_of_the_program() -> None:
    verdict = FastVerifier(SIMPLE).verify({"%0": "v3", "%1": "v2", "%2": "s32", "%9": "v1"})
    assert [finding.kind for finding in verdict.findings] == [
        FindingKind.RESERVED,
        FindingKind.UNKNOWN_VIRTUAL_REGISTER,
        FindingKind.OVERLAP,
    ]
    assert verdict.registers_used is None
    assert verdict.occupancy is None


@pytest.mark.slow
def test_a_huge_wrong_answer_is_judged() -> None:
    answer = {f"%{number}": "v0" for number in range(100_000)}
    verdict = FastVerifier(SIMPLE).verify(answer)
    assert not verdict.valid
