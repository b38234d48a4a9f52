"""How many lanes are live, and surely together, at the points of the judges' golden functions.

`python -m tests.analysis.test_golden_liveness` writes the file anew: read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.effects import LaneNumbering, all_effects
from verilocc_bench.analysis.lane_flow import LaneFlow
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function

FUNCTIONS = Path(__file__).parents[1] / "verification" / "golden"
GOLDEN = Path(__file__).with_name("golden_liveness.txt")


def _problems() -> list[tuple[str, AllocationProblem]]:
    found = []
    for file in sorted(FUNCTIONS.glob("*.txt")):
        for number, case in enumerate(file.read_text().rstrip("\n").split("\n\n")):
            text = case.partition("answer: ")[0]
            function = parse_function(text, canonical=False)
            found.append((f"{file.stem}-{number}", AllocationProblem(function)))
    return found


def _counts(problem: AllocationProblem) -> str:
    """At each point lanes live, defined, and of those live the ones that are counted."""
    liveness = problem.liveness
    together = [0] * len(liveness.points)
    for lane, first, last, surely in liveness.segments:
        for point in range(first, last + 1):
            together[point] |= surely << lane
    return " ".join(
        f"{sum(m >> p & 1 for m in liveness.live)}"
        f":{sum(m >> p & 1 for m in liveness.defined)}:{together[p].bit_count()}"
        for p in range(len(liveness.points))
    )


def test_lanes_are_counted_as_they_were() -> None:
    kept = dict(line.split(": ", 1) for line in GOLDEN.read_text().splitlines())
    assert {name: _counts(problem) for name, problem in _problems()} == kept


@pytest.mark.parametrize("seed", range(12))
def test_predicates_matter_until_they_are_defined_anew(seed: int) -> None:
    """Against walks from each block, lane by lane."""
    function = random_function(seed, registers=9, blocks=6, guarded=True)
    lanes = LaneNumbering(function)
    flow = LaneFlow(
        [block.successors for block in function.blocks],
        all_effects(function, lanes),
        [lanes.literal(block.branch_guard) for block in function.blocks],
        0,
        lanes.count,
    )
    guards = {e.guard[0] for each in flow.effects for e in each if e.guard}
    for block, ahead in enumerate(flow._guards_ahead):
        assert ahead == sum(_matters(flow, block, lane) << lane for lane in guards)


def _matters(flow: LaneFlow, block: int, lane: int) -> bool:
    seen, pending = set(), [block]
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        for effect in flow.effects[number]:
            if effect.guard and effect.guard[0] == lane:
                return True
            if effect.guard is None and effect.defined >> lane & 1:
                break
        else:
            pending += flow.successors[number]
    return False


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{name}: {_counts(problem)}\n" for name, problem in _problems()))
