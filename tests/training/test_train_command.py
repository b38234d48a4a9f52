"""`verilocc-bench train`: quick help, and errors of one line."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.training.small import write_recipe
from verilocc_bench.cli import main
from verilocc_bench.training import packages


def test_help_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from verilocc_bench.cli import main\n"
        "try:\n    main(['train', '--help'])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "assert not {'torch', 'transformers', 'numpy', 'yaml'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for option in ("RECIPE", "--dataset", "--output", "--base", "--jobs", "--revision", "--export"):
        assert option in done.stdout


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a command that must fail."""
    capsys.readouterr()  # the bar of the tiny model that a recipe names
    try:
        status = main(["train", *arguments])
    except SystemExit as end:
        status = int(end.code or 0)
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    (line,) = said.err.strip().splitlines()
    assert line.startswith("verilocc-bench train: ")
    return line


def test_a_bad_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_recipe(tmp_path / "r.yaml", steps=3)
    line = refused([str(path), "--dataset", "mini", "-o", str(tmp_path / "run")], capsys)
    assert f"{path}: the recipe: unknown key 'steps'" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({}, ["--dataset", "nowhere"], "'nowhere'"),
        ({"split": "train"}, ["--dataset", "mini"], "no split 'train'"),
        ({}, ["--dataset", "mini", "--jobs", "0"], "--jobs 0"),
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
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_recipe(tmp_path / "r.yaml", **changes)
    assert said in refused([str(path), *options, "-o", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()


def test_without_torch_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for missing in packages.PACKAGES:
        with monkeypatch.context() as patch:
            patch.setattr(
                packages,
                "find_spec",
                lambda name, missing=missing: None if name == missing else find_spec(name),
            )
            line = refused(["r.yaml", "--dataset", "mini", "-o", str(tmp_path / "r")], capsys)
        assert f"'{missing}'" in line
        assert "verilocc-bench[train]" in line
