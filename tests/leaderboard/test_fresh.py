"""Boards of fresh kernels: opened with the hash of a seed, closed with the seed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import verilocc_bench
from dataset_builders.sweeps.fresh import fresh_sweep
from leaderboard.boards import BOARDS, Board, boards
from leaderboard.fresh import main
from verilocc_bench.dataset import load_rows

MINI = Path(verilocc_bench.__file__).with_name("data") / "mini"


@pytest.fixture(name="known")
def _known(tmp_path: Path) -> Path:
    return Path(shutil.copy(BOARDS, tmp_path / "boards.json"))


@pytest.fixture(name="built")
def _built(tmp_path: Path) -> Path:
    """What a build of the seed `a` could have left."""
    folder = Path(shutil.copytree(MINI, tmp_path / "built"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"sweep": fresh_sweep("a").name, "beside": "0" * 64}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_board_opens_with_the_hash_of_its_seed_and_closes_with_the_seed(
    known: Path, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: str, *arguments: str, name: str = "fresh-1") -> int:
        return main([command, name, *arguments, "--boards", str(known)])

    assert run("open", "--dataset", str(built), name="../x") == 2
    assert "the name '../x' has other than small letters" in capsys.readouterr().err
    assert run("open", "--dataset", str(built)) == 0
    *before, board = (Board(**each) for each in json.loads(known.read_text()))
    assert tuple(before) == boards()
    assert (board.name, board.dataset, board.functions) == ("fresh-1", "verilocc/fresh-1", 60)
    assert board.hash == load_rows("mini").hash
    assert (f"fresh:{board.seed_sha256}", board.seed) == (fresh_sweep("a").name, None)

    assert run("open", "--dataset", str(built)) == 2
    assert "there is a board 'fresh-1'" in capsys.readouterr().err
    assert run("close", "--seed", "b") == 2
    assert "not that of the board" in capsys.readouterr().err
    assert run("close", "--seed", "a", name="mini") == 2
    assert "no board 'mini' of fresh kernels" in capsys.readouterr().err
    assert run("close", "--seed", "a") == 0
    assert Board(**json.loads(known.read_text())[-1]).seed == "a"
    manifest = (built / "manifest.json").read_text()
    for old, new, reason in (
        ("beside", "limit", "may equal"), ('"beside"', '"beside": 1, "limit"', "without --limit"),
    ):  # fmt: skip
        (built / "manifest.json").write_text(manifest.replace(old, new))
        assert run("open", "--dataset", str(built), name="fresh-2") == 2
        assert reason in capsys.readouterr().err
    known.write_text('{"a": 1}')
    assert run("close", "--seed", "a") == 2
    assert "expected a list of boards" in capsys.readouterr().err


def test_a_board_of_chosen_kernels_is_not_opened(
    known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["open", "x", "--dataset", str(MINI), "--boards", str(known)]
    assert main(command) == 2
    assert "of the sweep 'mini'" in capsys.readouterr().err
    assert known.read_bytes() == BOARDS.read_bytes()
