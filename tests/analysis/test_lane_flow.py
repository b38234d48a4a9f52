"""The facts about lanes under conditions, and the order in which blocks are visited."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem, block_order, liveness
from verilocc_bench.analysis.block_order import PendingBlocks
from verilocc_bench.analysis.conditions import TRUE
from verilocc_bench.analysis.effects import Effects, LaneNumbering
from verilocc_bench.analysis.lane_flow import LaneFlow
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function

HEADER = """verilocc-bench 1
target sm_80
registers R:60 UR:63 P:7 UP:7
class R 1 R
class R2 2 R/2
class P 1 P
"""


def problem(body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEADER + body, canonical=False))


def visits(pending: PendingBlocks) -> list[int]:
    found = []
    while (block := pending.pop()) is not None:
        found.append(block)
    return found


def test_blocks_wait_once_each() -> None:
    pending = PendingBlocks([0, 2, 1])
    pending.add(1)  # waits already
    assert visits(pending) == [0, 2, 1]
    pending.add(2)
    pending.add(2)
    assert visits(pending) == [2]


def test_sweeps_go_to_the_end_and_back_again() -> None:
    pending = PendingBlocks([0, 1, 2, 3])
    assert [pending.pop(), pending.pop()] == [0, 1]
    pending.add(1)  # behind this sweep, which is here
    pending.add(0)
    assert visits(pending) == [2, 3, 1, 0]
    pending.add(3)
    pending.add(1)
    assert pending.pop() == 1  # forwards again
    pending.add(0)
    assert visits(pending) == [3, 0]


def test_visits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_order, "VISITS", 2)
    monkeypatch.setattr(block_order, "VISITS_OF_A_BLOCK", 1)
    pending = PendingBlocks([0, 1, 2])
    assert visits(pending) == [0, 1, 2]
    for _ in range(2):
        pending.add(1)
        assert visits(pending) == [1]
    pending.add(1)
    with pytest.raises(InputError, match="between the 3 blocks are too tangled to analyse"):
        pending.pop()


def test_a_lane_has_one_condition() -> None:
    """An instruction that defines a lane again, where a guard holds, leaves it reached at all."""
    predicate, lane = 0, 1
    guarded = Effects(1 << lane, 0, 0, 0, (predicate, True), ())
    flow = LaneFlow([[]], [[guarded]], [None], 0, 2)
    before = {TRUE: flow.nowhere | 1 << lane}
    assert flow.reached_after(before, guarded) == before
    holds = flow.conditions.literal((predicate, True))
    nothing = {TRUE: flow.nowhere}
    assert flow.reached_after(nothing, guarded) == {**nothing, holds: 1 << lane}


def test_a_guard_is_its_lane_and_the_value_that_it_must_have() -> None:
    """After the two lanes of %0 comes %1, then P3."""
    function = problem("bb0\n%0:R2=A\n@%1:P B\n@!%1 B\n@P3 B\n@!P3 B\nB %0\n").function
    lanes = LaneNumbering(function)
    assert [lanes.literal(each.guard) for _, _, each in function.instructions()] == [
        None, (2, True), (2, False), (3, True), (3, False), None,
    ]  # fmt: skip


def certain(found: AllocationProblem, block: int, index: int) -> set[int]:
    """The lanes of R that surely hold values together after an instruction."""
    point = found.liveness.after[block][index]
    files = [c.files[0] for c in found.function.virtual_registers for _ in range(c.width)]
    return {
        lane
        for lane, first, last, surely in found.liveness.segments
        if surely and first <= point <= last and files[lane] == "R"
    }


def test_a_lane_that_one_path_ended_is_not_counted() -> None:
    """In bb1 an instruction that also writes a guard begins %0 anew by its first lane."""
    found = problem(
        "bb0->bb1,bb2\n%0:R2=A\n%1:P=A\n@%1 BRA\nbb1->bb3\n%0.0!,%1=A\nB\nbb2->bb3\nB\nbb3\nB\n"
        "@%1 B\nB %0\n"
    )
    assert certain(found, 0, 0) == certain(found, 2, 0) == {0, 1}
    assert certain(found, 1, 1) == certain(found, 3, 0) == {0}
    assert found.pressure.curves["vector"][found.liveness.after[3][0]] == 1


def test_of_the_states_at_a_point_that_with_most_lanes_counts() -> None:
    """After the branch %3 holds; then %4 decides whether %1 and %2 are read, or %0."""
    found = problem(
        "bb0->bb1,bb4\n%0:R=A\n%1:R=A\n%2:R=A\n%3:P=A\n%4:P=A\n@%3 BRA\n"
        "bb1->bb2,bb3\n@%4 BRA\nbb2\nB %1,%2\nbb3\nB %0\nbb4\nB\n"
    )
    assert certain(found, 0, 4) == certain(found, 0, 5) == {1, 2}
    assert found.pressure.curves["vector"][-6:] == (2, 2, 2, 0, 0, 0)


def test_live_ranges_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of %0, two of %1: it is read in another block as well."""
    text = "bb0->bb1\n%0:R=A\n%1:R=A %0\nbb1\nB %1\nB %1\n"
    assert len(problem(text).liveness.segments) == 3
    monkeypatch.setattr(liveness, "SEGMENTS", 3)
    assert len(problem(text).liveness.segments) == 3
    monkeypatch.setattr(liveness, "SEGMENTS", 2)
    with pytest.raises(InputError, match="more than 2 live ranges, counted in each block anew"):
        _ = problem(text).liveness
