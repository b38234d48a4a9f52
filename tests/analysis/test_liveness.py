"""The rules of liveness, each on the smallest function that shows it."""

from __future__ import annotations

import pytest

from tests.generated import random_function
from verilocc_bench.analysis import AllocationProblem, analyse_liveness, conditions, iterate_bits
from verilocc_bench.analysis.effects import Effects
from verilocc_bench.ir import parse_function

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
"""


def problem(body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEADER + body, canonical=False))


def live(function: AllocationProblem, register: int, lane: int = 0) -> list[int]:
    offset = function.liveness.lane_offsets[register]
    return list(iterate_bits(function.liveness.live[offset + lane]))


# Point 0 is the entry; without early clobbers, instruction i of one block has point i + 1.


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        pytest.param("%0:V=A\nB\nUSE %0\n", {(0, 0): [1, 2]}, id="to-before-the-last-use"),
        pytest.param("%0:V=A\nB\n", {(0, 0): [1]}, id="dead-but-held-after-its-instruction"),
        pytest.param("%0:V=A\nB\nUSE %0!\n", {(0, 0): [1]}, id="an-undef-use-reads-nothing"),
        # Dead at once, then anew.
        pytest.param("%0:V2=A\n%0.0!=B\n%0.1=C\nUSE %0\n", {(0, 0): [1, 2, 3], (0, 1): [1, 3]},
                     id="an-undef-definition-ends-the-other-lanes"),
        pytest.param("%0:V2=A\n%0.0=B\nUSE %0\n", {(0, 1): [1, 2]}, id="others-are-kept"),
        pytest.param("%0:V2.0!=A\nB\nUSE %0\n", {(0, 0): [1, 2], (0, 1): []},
                     id="a-lane-never-written-holds-nothing"),
    ],
)  # fmt: skip
def test_where_lanes_are_live(body: str, lanes: dict[tuple[int, int], list[int]]) -> None:
    function = problem("bb0\n" + body)
    assert {lane: live(function, *lane) for lane in lanes} == lanes


def test_a_lane_counts_only_where_a_definition_may_reach() -> None:
    function = problem("bb0->bb1,bb2\nbb1->bb3\n%0:V=A\nbb2->bb3\nB\nC\nbb3\nD\nUSE %0\n")
    assert live(function, 0) == [1, 4]  # not in bb2
    assert function.pressure.maximum["vector"] == 1
    # After the join it may be undefined: it is live, but no lower bound counts it.
    assert function.pressure.curves["vector"] == (0, 1, 0, 0, 0, 0)


def test_live_around_a_loop() -> None:
    function = problem("bb0->bb1\n%0:V=A\nbb1->bb1,bb2\nUSE %0\nB\nbb2\nC\n")
    assert live(function, 0) == [1, 2, 3]


def test_early_clobbers_have_a_point_before_their_instruction() -> None:
    function = problem("bb0\n%0:V=A\n%1:V&=B %0\nUSE %1\n")
    assert function.liveness.points == ((0, -1), (0, 0), (0, 1), (0, 1), (0, 2))
    assert live(function, 0) == [1, 2]
    assert live(function, 1) == [2, 3]


def test_live_in_registers_hold_their_units_until_the_last_read() -> None:
    function = problem("bb0(v0,v1)\nA\n%0:V=COPY v0\nUSE %0\n")
    fixed = dict(zip(function.liveness.fixed_lanes, function.liveness.live[1:], strict=True))
    assert list(iterate_bits(fixed["v", 0])) == [0, 1]
    assert fixed["v", 1] == 0  # nothing reads it


def test_pressure_counts_lanes() -> None:
    function = problem("bb0\n%0:V2=A\n%1:V=B\nUSE %0,%1\n")
    assert function.pressure.curves["vector"] == (0, 2, 3, 0)
    assert function.pressure.maximum["vector"] == 3
    assert function.pressure.peak["vector"] == 2


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        ("bb0\n%0,%0=A\n", 1),  # one lane, defined twice
        ("bb0\n%0=A\n%0&=B %0\n", 1),  # early, and read
        ("bb0(v0)\nA v0,v0\n", 1),
        # No path leads to bb1 and beyond: nothing surely reaches bb4.
        ("bb0\nbb1->bb2,bb3\nbb2->bb4\n%0=A\nbb3->bb4\n%1=A\nbb4\nB\nC %0,%1\n", 1),
    ],
)
def test_the_bound_counts_no_unit_twice(body: str, bound: int) -> None:
    assert problem(body).pressure.maximum["vector"] == bound


def test_loop_depths() -> None:
    nested = problem("bb0->bb1\nbb1->bb2\nbb2->bb2,bb3\nbb3->bb1,bb4\nbb4\n")
    assert nested.loop_depths == (0, 1, 2, 1, 0)


def test_irreducible_flow_has_no_natural_loop() -> None:
    irreducible = problem("bb0->bb1,bb2\nbb1->bb2\nbb2->bb1,bb3\nbb3\n")
    assert irreducible.loop_depths == (0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(60))
def test_the_way_without_conditions_finds_what_the_general_one_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = random_function(seed)
    plain = analyse_liveness(function)
    monkeypatch.setattr(Effects, "is_plain", property(lambda _: False))
    assert analyse_liveness(function) == plain


def test_without_guards_no_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on what guards can make of a function, not on its length."""
    monkeypatch.setattr(conditions, "WORK_LIMIT", 0)
    function = problem("bb0->bb1\n%0:V=A\nbb1->bb1,bb2\n%1:V=B %0\nUSE %1\nbb2\nUSE %0\n")
    assert live(function, 0) == [1, 2, 3]
    assert live(function, 1) == [2]
