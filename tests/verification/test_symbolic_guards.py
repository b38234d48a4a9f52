"""The symbolic checker on guards: until when a predicate decides about values."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker

HEADER = """verilocc-bench 1
target sm_80
registers R:16 UR:8 P:7 UP:7
class R 1 R
class P 1 P
"""


def is_valid(body: str, answer: dict[str, str]) -> bool:
    function = parse_function(HEADER + body, canonical=False)
    found = SymbolicChecker(function).check(answer)
    assert FastVerifier(AllocationProblem(function)).verify(answer).valid == (not found)
    return not found


OPPOSITE = "bb0\n%0:P=P\n@%0 %1:R=A\n@!%0 %2:R=B\n@%0 USE %1\n@!%0 USE %2\n"
LOOP = "bb0->bb1\n%0:R=A\nbb1->bb1,bb2\n%1:R=B %0\n%2:P=P %1\n@!%2 %3:R=A\n@%2 BRA\nbb2\nUSE %3\n"
BRANCH = "bb0->bb1,bb2\n%0:P=P\n@%0 BRA\nbb1\n%1:R=A\n@!%0 %2:R=B\nUSE %1\nbb2\n"
ENTRY = "bb0\n@%0:P %1:R=A\n%2:P=P\n@!%0 %3:R=B\n%4:P=P\n@%0 USE %1\n"


@pytest.mark.parametrize(
    ("body", "change", "places", "valid"),
    [
        (OPPOSITE, ("", ""), "P0 R0 R0", True),
        # Defined anew in between, the predicate may hold for both.
        (OPPOSITE.replace("@%0 USE", "USE"), ("@!%0 %2", "%0=P\n@!%0 %2"), "P0 R0 R0", False),
        (OPPOSITE, ("@!%0 %2", "%2"), "P0 R0 R0", False),
        # A loop needs its values only where it goes on.
        (LOOP, ("", ""), "R0 R1 P0 R0", True),
        (LOOP, ("@!%2 %3", "%3"), "R0 R1 P0 R0", False),
        # What no path can do destroys nothing.
        (BRANCH, ("", ""), "P0 R0 R0", True),
        (BRANCH, ("@!%0 %2", "@%0 %2"), "P0 R0 R0", False),
        # A guard that nothing wrote keeps its value.
        (ENTRY, ("", ""), "P0 R0 P1 R0 P1", True),
        (ENTRY, ("", ""), "P0 R0 P0 R0 P1", False),
    ],
)
def test_what_guards_separate(body: str, change: tuple[str, str], places: str, valid: bool) -> None:
    answer = {f"%{number}": name for number, name in enumerate(places.split())}
    assert is_valid(body.replace(*change), answer) == valid


@pytest.mark.parametrize("again", ["@%1 %0=C", "@%1 %0=C\n@%0 D", "%0=C", "%0=C\n@%0 %2=A"])
def test_what_is_read_only_where_its_predicate_may_have_changed_needs_no_place(again: str) -> None:
    body = f"bb0\n%0:P=P\n%1:P=P\n@%0 %2:R=A\n@!%0 %3:R=B\n{again}\n@%0 USE %2\n"
    answer = {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0"}
    assert is_valid(body, answer)


def test_a_value_that_both_paths_need_is_not_told_apart_by_its_guard() -> None:
    body = "bb0\n%0:P=P\n%1:P=P\n%2:R=A\n@!%0 %3:R=B\n@%1 %0=C\n@%0 USE %2\n"
    answer = {"%0": "P0", "%1": "P1", "%2": "R0"}
    assert is_valid(body, answer | {"%3": "R1"})
    assert not is_valid(body, answer | {"%3": "R0"})


def test_a_predicate_decides_on_the_path_on_which_it_is_not_written_anew() -> None:
    body = (
        "bb0->bb1,bb2\n%0:P=P\n%1:P=P\n%2:R=A\n@!%0 %3:R=B\n@%1 %0=C\n@%1 BRA\n"
        "bb1\nEXIT\nbb2\n@%0 USE %2\n"
    )
    assert is_valid(body, {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0"})
    written = body.replace("@%1 %0=C", "%0=C")
    assert not is_valid(written, {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0"})


def test_guards_of_one_instruction_after_the_other() -> None:
    answer = {"%0": "P3", "%1": "P2", "%2": "P2", "%3": "P0"}
    assert is_valid("bb0\n@!%0:P %1:P=OP\n@%0 %2:P&=OP %1,%2,%3:P\n", answer)
    assert is_valid(
        "bb0->bb0\n@!%0:P %1:P&=OP\n@!%0 %2:P=OP %0,%1,R4\n", {"%0": "P1", "%1": "P0", "%2": "P0"}
    )


ONE_OR_THE_OTHER = "@{0} USE %2\n@!{0} USE %3\n"


def test_a_predicate_that_decides_in_one_successor_is_not_forgotten_before_it() -> None:
    body = (
        "bb0->bb1,bb2\n%0:P=P\n%1:P=P\n%2:R=A\n@!%0 %3:R=B\n@%1 BRA\n"
        f"bb1\n{ONE_OR_THE_OTHER.format('%0')}EXIT\nbb2\nEXIT\n"
    )
    assert is_valid(body, {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0"})


def test_a_predicate_decides_on_while_another_is_written() -> None:
    body = (
        f"bb0\n%0:P=P\n%1:P=P\n%2:R=A\n@!%1 %3:R=B\n%0=P\n@%0 NOP\n{ONE_OR_THE_OTHER.format('%1')}"
    )
    assert is_valid(body, {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0"})


def test_a_branch_forgets_its_own_predicate_alone() -> None:
    body = (
        "bb0->bb1,bb2\n%0:P=P\n%1:P=P\n%2:R=A\n@!%1 %3:R=B\n%4:P=P\n@%4 NOP\n@{0} BRA\n"
        f"bb1\n{ONE_OR_THE_OTHER.format('%1')}EXIT\nbb2\nEXIT\n"
    )
    answer = {"%0": "P0", "%1": "P1", "%2": "R0", "%3": "R0", "%4": "P2"}
    assert is_valid(body.format("%0"), answer)
    assert is_valid(body.format("%4"), answer)
    three = (
        "bb0->bb1,bb2\n%0:P=P\n%1:P=P\n@%1 NOP\n%2:P=P\n%3:R=A\n@!%2 %4:R=B\n@%0 BRA\n"
        "bb1\n@%2 USE %3\n@!%2 USE %4\nEXIT\nbb2\nEXIT\n"
    )
    assert is_valid(three, {"%0": "P0", "%1": "P1", "%2": "P2", "%3": "R0", "%4": "R0"})


def test_a_loop_may_come_back_with_another_predicate() -> None:
    """bb1 is entered where %0 is true; only a later turn finds it false, and destroys %1."""
    body = (
        "bb0->bb1,bb3\n%0:P=P\n%1:R=A\n@%0 BRA\nbb1->bb2\n@!%0 %2:R=KILL\n"
        "bb2->bb1,bb3\nUSE %1\n{}bb3\nEXIT\n"
    )
    answer = {"%0": "P0", "%1": "R0", "%2": "R0"}
    assert not is_valid(body.format("%0=P\n"), answer)
    assert is_valid(body.format(""), answer)
    assert is_valid(body.format("%0=P\n"), answer | {"%2": "R1"})
