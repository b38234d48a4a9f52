"""Guards: what they separate, what may guard, and the bound on what they can cost."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier

HEADER = """verilocc-bench 1
target sm_80
registers R:60 UR:63 P:7 UP:7
class R 1 R
class P 1 P
"""


def problem(body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEADER + body, canonical=False))


def valid(body: str, **registers: str) -> bool:
    answer = {f"%{name[1:]}": register for name, register in registers.items()}
    return FastVerifier(problem(body)).verify(answer).valid


OPPOSITE = """bb0
%0:P=SETP
@%0 %1:R=MOV
@!%0 %2:R=MOV
@%0 STS %1
@!%0 STS %2
"""


def test_opposite_guards_share_a_register() -> None:
    assert valid(OPPOSITE, r0="P0", r1="R0", r2="R0")
    # Defined anew in between, the predicate may hold for both.
    again = OPPOSITE.replace("@!%0 %2", "%0=SETP\n@!%0 %2").replace("@%0 STS", "STS")
    assert not valid(again, r0="P0", r1="R0", r2="R0")
    assert not valid(OPPOSITE.replace("@!%0 %2", "%2"), r0="P0", r1="R0", r2="R0")


def test_a_loop_needs_its_values_only_where_it_goes_on() -> None:
    body = """bb0->bb1
%0:R=MOV
bb1->bb1,bb2
%1:R=ADD %0
%2:P=SETP %1
@!%2 %3:R=MOV
@%2 BRA
bb2
STS %3
"""
    assert valid(body, r0="R0", r1="R1", r2="P0", r3="R0")
    assert not valid(body.replace("@!%2 %3", "%3"), r0="R0", r1="R1", r2="P0", r3="R0")


def test_what_no_path_can_do_destroys_nothing() -> None:
    body = """bb0->bb1,bb2
%0:P=SETP
@%0 BRA
bb1
%1:R=MOV
@!%0 %2:R=MOV
STS %1
bb2
"""
    assert valid(body, r0="P0", r1="R0", r2="R0")
    assert not valid(body.replace("@!%0 %2", "@%0 %2"), r0="P0", r1="R0", r2="R0")


def test_a_guard_that_nothing_wrote_keeps_its_value() -> None:
    body = "bb0\n@%0:P %1:R=MOV\n%2:P=SETP\n@!%0 %3:R=MOV\n%4:P=SETP\n@%0 STS %1\n"
    registers = {"r1": "R0", "r3": "R0"}
    assert valid(body, r0="P0", r2="P1", r4="P1", **registers)
    assert not valid(body, r0="P0", r2="P0", r4="P1", **registers)


def test_guards_beyond_analysis_are_refused() -> None:
    """Pairs a_i, b_i in the worst order: the diagram doubles with each."""
    count = 24
    lines = ["bb0->bb1", *(f"%{n}:P=SETP" for n in range(2 * count)), f"%{2 * count}:R=MOV"]
    for n in range(count):
        lines += [f"bb{2 * n + 1}->bb{2 * n + 3},bb{2 * n + 2}", f"@!%{n} BRA"]
        lines += [f"bb{2 * n + 2}->bb{2 * n + 3}", f"@%{count + n} STS %{2 * count}"]
    lines += [f"bb{2 * count + 1}", ""]
    with pytest.raises(InputError, match=r"^function [0-9a-f]{16}: the guards depend"):
        _ = problem("\n".join(lines)).liveness


def test_long_chains_of_guards_are_refused_or_done() -> None:
    count = 700
    lines = ["bb0", *(f"%{n}:P=SETP" for n in range(count)), f"%{count}:R=MOV"]
    lines += [f"@!%{count - 1 - n} %{count}=MOV" for n in range(count)]
    lines += [f"STS %{count}", ""]
    with pytest.raises(InputError, match="guards depend"):
        _ = problem("\n".join(lines)).liveness
