"""The score between the compiler's registers and the proved bound."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import check_certificate, lower_bound
from verilocc_bench.backends.amdgpu import code_cost
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.score import (
    CODE_WEIGHTS,
    certified_bound,
    code_score,
    kernel_score,
    known_bounds,
    occupancy_score,
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
    kernel = {
        "id": "?", "samples": 4, "valid": 1, "registers": 48, "label_registers": 48,
        "occupancy": 8, "label_occupancy": 8, "occupancy_at_bound": 10,
    }  # fmt: skip
    assert kernel_score({**kernel, "bound": 40}) == 0.5 / 4
    assert kernel_score({**kernel, "bound": 40, "certified_bound": 48}) == 1 / 4
    none = {**kernel, "valid": 0, "registers": None, "bound": None}
    assert kernel_score(none) == 0
    assert kernel_score({**none, "samples": 0}) is None
    found = score_record([{**kernel, "valid": 4, "bound": 48}, none])
    assert (found["score"], found["score_possible"]) == (0.5, 0.5)
    assert found["score_occupancy"] == 0.25
    assert found["score_low"] == 0
    assert found["score_high"] == 1
    assert set(score_record([]).values()) == {None}


@pytest.mark.parametrize(
    ("occupancy", "label", "at_bound", "score"),
    [
        (10, 8, 10, 1.0), (8, 8, 10, 0.5), (6, 8, 10, 1 / 3),
        (8, 8, 8, 1.0), (7, 8, 8, 0.5), (9, None, 10, 0.5),
    ],
)  # fmt: skip
def test_occupancy_scores_by_the_same_form(
    occupancy: int, label: int | None, at_bound: int, score: float
) -> None:
    kernel = {"samples": 2, "valid": 1, "occupancy": occupancy, "label_occupancy": label}
    found = occupancy_score({**kernel, "occupancy_at_bound": at_bound})
    assert found == pytest.approx(score / 2)
    assert occupancy_score({**kernel, "valid": 0}) == 0


def test_machine_code_scores_by_its_cost() -> None:
    assert [*CODE_WEIGHTS.values()] == [*code_cost._WEIGHTS.values()]  # in the same order

    def kernel(moves: int | None, valid: int = 1, arch: str = "gfx942") -> dict[str, object]:
        label = dict.fromkeys(CODE_WEIGHTS, 8)  # costs 27 * 8
        code = {"answer": {**label, "loop_register_moves": moves}, "label": label, "refused": None}
        return {"task": f"{arch}/mha", "samples": 1, "valid": valid, "machine_code": code}

    assert code_score(kernel(8)) == 0.5
    assert code_score(kernel(2)) == pytest.approx(216 / (216 + 96))
    assert code_score(kernel(8, valid=0)) == 0
    assert code_score(kernel(None)) is None
    # NVIDIA's code is not counted, and so a wrong answer counts no more than a valid one.
    assert code_score(kernel(8, arch="sm_80")) is code_score(kernel(8, 0, "sm_80")) is None
    refused = {"answer": None, "label": None, "refused": "no code"}
    assert code_score({**kernel(8), "machine_code": refused}) is None
    assert code_score({**kernel(8), "machine_code": None}) is None


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
