"""Fresh sweeps: one seed, one list; nothing that a published split has."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dataset_builders.release.duplicates import EMBEDDED_DATASET, RowCandidate
from dataset_builders.release.similarity import instruction_tokens
from dataset_builders.release.writer import _functions_of, _near_duplicates
from dataset_builders.sweeps import SWEEPS
from dataset_builders.sweeps.fresh import fresh_sweep, is_fresh
from dataset_builders.sweeps.splits import split_of
from verilocc_bench.cli import main
from verilocc_bench.dataset import embedded_path, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.targets import TARGETS


def test_a_seed_decides_the_points_and_another_seed_draws_others() -> None:
    first, second = fresh_sweep("a").points(), fresh_sweep("b").points()
    fresh_sweep.cache_clear()
    assert fresh_sweep("a").points() == first
    # The two ways to sm_90 make a fifth lane.
    assert 300 <= len(first) <= 400
    assert len(set(first) & set(second)) < len(first) / 20


def test_no_point_is_of_a_group_that_is_published() -> None:
    published = {p.group for name in ("default", "mini") for p in SWEEPS[name].points()}
    points = fresh_sweep("a").points()
    assert not published & {point.group for point in points}
    values = [dict(point.parameters) for point in points]
    assert {48, 72, 160} & {each.get("head_dim") for each in values}
    assert {point.kernel for point in points} == {p.kernel for p in SWEEPS["default"].points()}


def test_all_points_are_for_evaluation_and_the_name_hides_the_seed() -> None:
    sweep = fresh_sweep("a")
    assert is_fresh(sweep.name)
    assert sweep.name == "fresh:" + hashlib.sha256(b"a").hexdigest()
    assert {split_of(sweep.name, point) for point in sweep.points()} == {"test"}


@pytest.mark.parametrize("seed", ["", "a b", "x" * 65, "\n"])
def test_other_seeds_are_refused(seed: str) -> None:
    with pytest.raises(InputError, match="the seed"):
        fresh_sweep(seed)


@pytest.mark.parametrize(
    "arguments", [["--sweep", "fresh"], ["--sweep", "mini", "--seed", "a"]], ids=" ".join
)
def test_build_takes_the_seed_with_the_sweep_fresh_alone(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", *arguments, "--output", str(tmp_path / "d")]) == 2
    assert "needs --seed, and no other takes it" in capsys.readouterr().err


def test_a_function_of_sm_90_is_left_out_too() -> None:
    row = load_rows("mini:sm_90", split="test").rows[0]
    point = fresh_sweep("a").points(["sm_90"])[0]
    found = [RowCandidate(point, "new", "assign", "test", instruction_tokens(row.normalized))]
    rejected = _near_duplicates(found, [], fresh_sweep("a").name, {EMBEDDED_DATASET: {}})
    said = f"distance 0.0000 from {row.id} of {EMBEDDED_DATASET}"
    assert rejected == {point.key: ("near-duplicate", said)}
    assert _functions_of(*(f"{embedded_path()}:{arch}" for arch in TARGETS))[row.id]
