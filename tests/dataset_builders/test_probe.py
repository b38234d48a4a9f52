"""The probe must see a split that sweep metadata gives away, and none that is drawn by chance."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from dataset_builders.release import probe
from dataset_builders.release.duplicates import RowCandidate
from dataset_builders.release.probe import _area, probe_splits
from dataset_builders.sweeps import SWEEPS, SweepPoint

pytest.importorskip("sklearn", reason="the extra 'build' is not installed")

pytestmark = pytest.mark.slow


def candidates(name_of: dict[str, str]) -> list[RowCandidate]:
    points = SWEEPS["default"].points(["gfx942"])[:300]
    return [
        RowCandidate(point, point.key, "assign", name_of[point.group], ())
        for point in points
        if point.group in name_of
    ]


def areas(found: dict[str, object]) -> tuple[float, float]:
    return tuple(found[name]["area"] for name in ("logistic_regression", "nearest_neighbours"))  # type: ignore[index, return-value]


@pytest.fixture(autouse=True)
def _few_deals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_DEALS", 3)


def points_by_group() -> dict[str, SweepPoint]:
    return {p.group: p for p in SWEEPS["default"].points(["gfx942"])}


def test_groups_drawn_by_chance_cannot_be_told() -> None:
    name_of = {
        group: "test" if hashlib.md5(group.encode()).digest()[0] % 4 == 0 else "train"
        for group in points_by_group()
    }
    found = probe_splits(candidates(name_of))["test"]
    assert found["groups"] > 15
    assert max(areas(found)) < 0.65


def test_a_split_by_size_is_seen() -> None:
    name_of = {
        group: "test" if point.parameters.integer("num_warps") >= 8 else "train"
        for group, point in points_by_group().items()
        if "block_n" in point.parameters
    }
    found = probe_splits(candidates(name_of))["test"]
    assert areas(found)[0] > 0.85
    assert found["logistic_regression"]["chance_high"] < 0.8
    assert areas(found)[1] > 0.6


def test_what_a_split_is_named_for_is_left_out() -> None:
    name_of = {
        group: "test_unseen_head_dimension"
        if point.parameters.get("head_dim") in (80, 96)
        else "train"
        for group, point in points_by_group().items()
        if point.family == "mha"
    }
    found = probe_splits(candidates(name_of))["test_unseen_head_dimension"]
    assert found["left_out"] == ["block_d", "head_dim"]
    assert max(areas(found)) < 0.65


def test_too_few_groups_are_not_probed() -> None:
    groups = list(points_by_group())
    name_of = dict.fromkeys(groups, "train") | dict.fromkeys(groups[:2], "test")
    assert probe_splits(candidates(name_of)) == {}


@pytest.mark.parametrize("name", ["logistic_regression", "nearest_neighbours"])
def test_few_rows_give_a_figure_and_no_warning(name: str) -> None:
    # pytest turns warnings into errors: these groups are too few for the folds.
    generator = np.random.default_rng(0)
    features = 1e4 * generator.normal(size=(40, 3))
    inside = np.arange(40) % 10 == 0
    groups = np.arange(40)
    assert 0.0 <= _area(name, features, inside, groups) <= 1.0
