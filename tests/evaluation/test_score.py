"""The score between the compiler's registers and the proved bound."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import check_certificate, lower_bound
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.score import (
    certified_bound,
    kernel_score,
    known_bounds,
    register_score,
    score_record,
)


@pytest.mark.parametrize(
    ("registers", "bound", "compiler", "score"),
    [
        (40, 40, 48, 1.0),
        (48, 40, 48, 0.5),
        (44, 40, 48, 2 / 3),
        (56, 40, 48, 1 / 3),
        (40, 40, 40, 1.0),  # the compiler is at the bound: one register more halves the score
        (41, 40, 40, 0.5),
        (41, 40, None, 0.5),
    ],
)
def test_the_anchors(registers: int, bound: int, compiler: int | None, score: float) -> None:
    assert register_score(registers, bound, compiler) == pytest.approx(score)


def test_a_kernel_scores_by_its_share_of_valid_samples() -> None:
    kernel = {"id": "?", "samples": 4, "valid": 1, "registers": 48, "label_registers": 48}
    assert kernel_score({**kernel, "bound": 40}) == 0.5 / 4
    assert kernel_score({**kernel, "bound": 40, "certified_bound": 48}) == 1 / 4
    none = {**kernel, "valid": 0, "registers": None, "bound": None}
    assert kernel_score(none) == 0
    found = score_record([{**kernel, "valid": 4, "bound": 48}, none])
    assert (found["score"], found["score_possible"]) == (0.5, 0.5)
    assert found["score_low"] == 0
    assert found["score_high"] == 1
    assert set(score_record([]).values()) == {None}


def test_the_bounds_of_mini_are_proved_and_nearly_all_are_reached() -> None:
    rows = load_rows("mini").rows
    known = known_bounds()
    assert {row.id for row in rows} <= known.keys()
    assert all(bound <= best for bound, best in known.values())
    assert sum(known[row.id][0] == known[row.id][1] for row in rows) >= 0.9 * len(rows)
    small = sorted(rows, key=lambda row: row.n_instructions)[:6]
    assert {row.arch for row in small} >= {"gfx90a", "sm_80"}
    for row in small:
        problem = AllocationProblem.from_text(row.normalized)
        bound, best = known[row.id]
        found = lower_bound(problem, known=best)
        check_certificate(problem, found)
        assert found.value == bound == certified_bound(row.id, problem.pressure.maximum["vector"])
