"""What the symbolic checker finds on the assign track."""

from __future__ import annotations

import pytest

from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification.symbolic import SymbolicChecker, conditional

AMD = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
"""
NVIDIA = """verilocc-bench 1
target sm_80
registers R:16 UR:8 P:7 UP:7
class R 1 R
class P 1 P
"""


def check(body: str, answer: dict[str, str], header: str = AMD) -> tuple[Finding, ...]:
    return SymbolicChecker(parse_function(header + body, canonical=False)).check(answer)


def only(findings: tuple[Finding, ...]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def test_a_use_that_does_not_find_its_value() -> None:
    finding = only(check("bb0\n%0=A\n%1=B\nV_ADD_F32 %0,%1\n", {"%0": "v5", "%1": "v5"}))
    assert finding.kind is FindingKind.WRONG_VALUE
    assert (finding.block, finding.instruction, finding.operand) == (0, 2, 0)
    assert finding.message == (
        "bb0 instruction 2 (V_ADD_F32) reads %0, defined at bb0 instruction 0, from v5, "
        "which holds %1 there: v5 was last written by bb0 instruction 1 (B)"
    )
    assert finding.lanes[0].defined == ((0, 1),)
    assert finding.lanes[1].defined == ((0, 0),)
    assert finding.registers == ("%0", "%1")
    assert finding.unit == "v5"
    assert [lane.name for lane in finding.lanes] == ["%1", "%0"]
    assert finding.lanes[1].next_use == (0, 2)


def test_a_value_lost_on_one_path_only() -> None:
    body = "bb0->bb1,bb2\n%0=A\nbb1->bb2\n%1=B\nC %1\nbb2\nD %0\n"
    finding = only(check(body, {"%0": "v5", "%1": "v5"}))
    assert finding.message == (
        "bb2 instruction 0 (D) reads %0, defined at bb0 instruction 0, from v5, which holds "
        "another value there on some path: v5 was last written by bb0 instruction 0 (A) or "
        "bb1 instruction 0 (B)"
    )
    assert check(body, {"%0": "v5", "%1": "v6"}) == ()


def test_two_writes_at_once() -> None:
    both = {"%0": "v5", "%1": "v5"}
    assert only(check("bb0\n%0,%1=A\n", both)).kind is FindingKind.OVERLAP
    finding = only(check("bb0\n%0&,%1=A\n", both))
    assert finding.kind is FindingKind.EARLY_CLOBBER
    assert "writes both %0 and %1 to v5, %0 before it reads" in finding.message
    finding = only(check("bb0\n%0,v5=A\n", {"%0": "v5"}))
    assert finding.kind is FindingKind.FIXED_REGISTER_CLOBBERED
    assert finding.registers == ("%0", "v5")
    assert check("bb0\n%0,%0=A\n", {"%0": "v5"}) == ()


def test_an_early_clobber_spares_the_uses_of_other_lanes() -> None:
    both = {"%0": "v5", "%1": "v5"}
    finding = only(check("bb0\n%0=A\n%1&=B %0\n", both))
    assert "which the instruction itself writes before it reads" in finding.message
    assert check("bb0\n%0=A\n%1=B %0\n", both) == ()
    assert check("bb0\n%0=A\n%0&=B %0\nC %0\n", {"%0": "v5"}) == ()
    # A lane that has no value cannot be destroyed.
    assert check("bb0\nX %0\n%1&=B %0\n", both) == ()


def test_predicates_that_nothing_writes_collide_at_the_entry() -> None:
    body = "bb0\n@%0:P A\n@%1:P B\n"
    finding = only(check(body, {"%0": "P1", "%1": "P1"}, NVIDIA))
    assert (finding.kind, finding.instruction) == (FindingKind.OVERLAP, -1)
    assert check(body, {"%0": "P1", "%1": "P2"}, NVIDIA) == ()
    written = "bb0\n%0:P=S\n@%0 A\n%1:P=S\n@%1 B\n"
    assert check(written, {"%0": "P1", "%1": "P1"}, NVIDIA) == ()
    # A block that no edge leads to is entered with any values.
    assert check("bb0\nbb1\n@%0:P A\n@%1:P B\n", {"%0": "P1", "%1": "P1"}, NVIDIA) == ()


def test_a_guard_that_lost_its_value() -> None:
    body = "bb0\n%0:P=S\n%1:P=S\n@%0 A\n@%1 B\n"
    finding = only(check(body, {"%0": "P0", "%1": "P0"}, NVIDIA))
    assert finding.operand == -1
    assert (
        "is guarded by %0, defined at bb0 instruction 0, from P0, which holds %1" in finding.message
    )


def test_hundreds_of_guards_that_matter_no_more() -> None:
    body = "bb0\n%0:P=ISETP\n@%0 %1:R=MOV\n"
    body += "".join(f"%{n}:P=ISETP\n@%{n} %1=MOV\n" for n in range(2, 300)) + "OP %1\n"
    answer = {f"%{n}": "P3" for n in range(300)} | {"%1": "R4"}
    assert check(body, answer, NVIDIA) == ()


def explosive(count: int) -> str:
    """The condition under which the last register is written joins pairs of predicates, far apart.

    All predicates guard something at the end, so that none can be forgotten.
    """
    lines = ["bb0->bb1,bb2", *(f"%{number}:P=ISETP" for number in range(2 * count)), "@%0 BRA"]
    written = f"%{2 * count}"
    for number in range(count):
        then, join = 2 * number + 1, 2 * number + 2
        name = written + ":R" if number == 0 else written
        lines += [f"bb{then}->bb{join}", f"@%{count + number} {name}=MOV"]
        if number + 1 < count:
            lines += [f"bb{join}->bb{join + 1},bb{join + 2}", f"@%{number + 1} BRA"]
    lines += [f"bb{2 * count}", *(f"@%{number} OP" for number in range(2 * count))]
    return "\n".join([*lines, f"OP {written}"]) + "\n"


@pytest.mark.slow
def test_guards_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "WORK_LIMIT", 10_000)
    count = 16
    answer = {f"%{n}": f"P{n % 7}" for n in range(2 * count)} | {f"%{2 * count}": "R4"}
    with pytest.raises(InputError, match="the limit is 10000 steps"):
        check(explosive(count), answer, NVIDIA)
    small = {f"%{n}": f"P{n}" for n in range(6)} | {"%6": "R4"}
    assert check(explosive(3), small, NVIDIA) == ()
