"""Named versions: `mini@1.0` is the rows with that version's hash, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leaderboard.boards import boards
from verilocc_bench.cli import main
from verilocc_bench.dataset import is_local, load_rows, split_name, versions
from verilocc_bench.dataset.versions import known_versions, split_version, tag_of
from verilocc_bench.errors import InputError


def test_every_board_is_of_a_version() -> None:
    for board in boards():
        if board.seed_sha256 is not None:
            continue  # fresh kernels have no versions: a seed gives one board
        name = split_name(board.dataset)[0].rpartition("/")[2]
        assert known_versions()[board.hash].startswith(f"{name}@"), board.name


@pytest.mark.parametrize(
    ("name", "parts", "dataset"),
    [
        ("mini", ("mini", None), ("mini", "")),
        ("mini:expert@1.0", ("mini:expert", "1.0"), ("mini", "expert")),
        ("verilocc/regalloc:sm_90@2.13", ("verilocc/regalloc:sm_90", "2.13"), None),
        ("a@b", ("a@b", None), ("a@b", "")),
    ],
)
def test_names(name: str, parts: tuple[str, str | None], dataset: tuple[str, str] | None) -> None:
    assert split_version(name) == parts
    assert split_name(name) == (dataset or ("verilocc/regalloc", "sm_90"))
    assert tag_of(name) == (parts[1] and f"v{parts[1]}")


def test_only_rows_of_the_version_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_local("mini@1.0")
    assert load_rows("mini@1.0").rows == load_rows("mini").rows
    with pytest.raises(InputError, match=r"mini@9\.9: .*4e02dbac2edc7156… is of mini@1\.0; known"):
        load_rows("mini@9.9")
    with pytest.raises(InputError, match="mini: --revision is for datasets on the Hub"):
        load_rows("mini", revision="v1")
    monkeypatch.setattr(versions, "known_versions", dict)
    with pytest.raises(InputError, match="is of no known version"):
        load_rows("mini@1.0")


def test_a_version_is_of_its_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"a" * 64: "mini@1.0", "b" * 64: "regalloc@1.0"}
    monkeypatch.setattr(versions, "known_versions", lambda: known)
    for name in ("mini@1.0", "./copy:sm_90@1.0", "me/copy@1.0"):
        versions.check_version(name, "test", "a" * 64)
    with pytest.raises(InputError, match=r"is of mini@1\.0"):
        versions.check_version("verilocc/regalloc@1.0", "test", "a" * 64)


def test_results_tell_the_version(tmp_path: Path) -> None:
    command = ["evaluate", "--model", "linear-scan", "--dataset", "mini@1.0", "--limit", "1"]
    assert main([*command, "--output-path", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "results.json").read_text())["dataset"]
    assert (told["name"], told["version"]) == ("mini", "mini@1.0")
