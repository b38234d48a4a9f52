"""`verilocc-bench dataset`: exit statuses, JSON, what is printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dataset_builders.inspection import lists_check
from tests.command_line import CommandLine
from tests.dataset_builders.inspection_folders import SPLITS, draft


@pytest.fixture(autouse=True)
def _splits_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists_check, "split_of", lambda _, point: SPLITS[point.group])


@pytest.fixture(scope="module", name="good")
def _good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draft().write(tmp_path_factory.mktemp("good"))


@pytest.fixture(name="bad")
def _bad(good: Path, tmp_path: Path) -> Path:
    """A folder with one finding for each of 30 files."""
    bad = Path(shutil.copytree(good, tmp_path / "bad"))
    for number in range(30):
        (bad / f"notes{number}.txt").write_text("mine")
    return bad


def test_check(good: Path, bad: Path, run: CommandLine) -> None:
    out = run("dataset", "check", good, "--jobs", "1").out
    assert out == "7 rows, 18 files, labels verified: nothing wrong\n"
    assert run.json("dataset", "stats", "mini")
    check = ["dataset", "check", str(bad), "--jobs", "1", "--no-labels"]
    lines = run(*check, status=1).out.splitlines()
    assert lines[0] == "unlisted_file: 30"
    assert lines[1] == "  notes0.txt: the manifest does not list this file"
    assert lines[-2:] == [
        "  … and 20 more (--json has all)",
        "7 rows, 48 files, labels not verified: 30 findings",
    ]
    document = run.json(*check, status=1)
    assert (document["passed"], document["rows"], len(document["findings"])) == (False, 7, 30)
    assert document["findings"][0] == {
        "kind": "unlisted_file",
        "file": "notes0.txt",
        "row": None,
        "message": "the manifest does not list this file",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "."], "expected manifest.json and the folders"),
        (["check", "no/such/folder"], "not 'no/such/folder'"),
        (["check", "./owner"], "not './owner'"),
        (["rebuild", "owner/name"], "a dataset on the Hub does not do"),
        (["rebuild", "mini", "--sample", "0"], "expected a positive number"),
        (["rebuild", "mini", "--id", "nothing"], "there is no"),
        (["publish"], "invalid choice"),
        ([], "required: ACTION"),
    ],
)
def test_bad_usage(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: CommandLine,
) -> None:
    pytest.importorskip("triton", reason="the extra 'build' is not installed")
    monkeypatch.chdir(tmp_path)
    run.refuses(["dataset", *arguments], message)


def test_rebuild(good: Path, tmp_path: Path, cuda: None, run: CommandLine) -> None:
    pytest.importorskip("triton", reason="the extra 'build' is not installed")
    command = ["dataset", "rebuild", str(good), "--id", "52dedc6393ee792f", "--jobs", "1"]
    assert run(*command).out == "1 of 1 rows are the same again\n"
    found = draft()
    found.manifest["versions"]["triton"] = "1.0"
    found.change("52dedc6393ee792f", kernel="gemm")
    folder = found.write(tmp_path)
    lines = run(*command[:2], folder, *command[3:], status=1).out.splitlines()
    assert lines[0] == "triton is 3.7.1 here, the dataset was built with 1.0"
    assert lines[1] == "different"
    assert lines[-1] == "0 of 1 rows are the same again"
