"""`verilocc-bench train`: quick help, and errors of one line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.training.small import write_recipe
from verilocc_bench.training import packages


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"steps": 3}, ["--dataset", "mini"], "r.yaml: the recipe: unknown key 'steps'"),
        ({}, ["--dataset", "nowhere"], "'nowhere'"),
        ({"split": "train"}, ["--dataset", "mini"], "no split 'train'"),
        ({}, ["--dataset", "mini", "--jobs", "0"], "--jobs: expected a positive number"),
        ({}, ["--dataset", "mini", "--base", "./nowhere"], "./nowhere"),
        ({}, [], "--dataset"),
        ({}, ["--dataset", "mini", "--report-to", "nobody"], "--report-to nobody"),
    ],
)
def test_what_cannot_be_met(
    changes: dict[str, str],
    options: list[str],
    said: str,
    tmp_path: Path,
    run: CommandLine,
) -> None:
    path = write_recipe(tmp_path / "r.yaml", **changes)
    run.refuses(["train", path, *options, "-o", tmp_path / "run"], said)
    assert not (tmp_path / "run").exists()


def test_without_torch_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    for missing in packages.PACKAGES:
        with monkeypatch.context() as patch:
            patch.setattr(
                packages,
                "find_spec",
                lambda name, missing=missing: None if name == missing else find_spec(name),
            )
            command = ["train", "r.yaml", "--dataset", "mini", "-o", tmp_path / "r"]
            run.refuses(command, f"'{missing}'", "verilocc-bench[train]")
