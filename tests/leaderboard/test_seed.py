"""The leaderboard's own entries: made like anybody's, and what lies there is what is found."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from leaderboard.boards import boards
from leaderboard.rendering.entries import read_entries
from leaderboard.seed import ENTRIES, main, seeds
from verilocc_bench.allocators import BUILT_IN

pytestmark = pytest.mark.slow


def test_every_baseline_is_an_entry() -> None:
    found = seeds()
    places = [(each.name, board) for each in found for board in each.boards or ("all",)]
    assert len(set(places)) == len(places)
    asked = {argument for each in found for argument in each.arguments}
    # The label's own best answer is `best` with a beginning.
    assert set(BUILT_IN) - asked == {"best-or-compiler"}
    assert {each.track for each in found} == {board.track for board in boards()}
    assert {name for each in found for name in each.boards or ()} <= {b.name for b in boards()}


def test_what_lies_there_is_of_the_boards() -> None:
    entries = read_entries(ENTRIES)
    known = {board.name: board for board in boards()}
    for entry in entries:
        assert entry.hash == known[entry.board].hash
        assert entry.document["accepted"]
        assert entry.submission["command"].startswith("verilocc-bench evaluate ")
    for board in boards():
        here = {entry.submission["name"] for entry in entries if entry.board == board.name}
        assert here == {each.name for each in seeds() if each.is_of(board)}, board.name
    packed = list(ENTRIES.glob("*/*.answers.jsonl.gz"))
    assert packed
    for path in packed:
        document = json.loads(
            path.with_name(path.name.replace("answers.jsonl.gz", "json")).read_text()
        )
        found = hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
        assert document["files"]["answers.jsonl"] == found


def assert_is_made_anew(output: Path, board: str) -> None:
    """The entry linear-scan in a folder is the one that lies in the repository."""
    made, kept = (
        json.loads((folder / board / "linear-scan.json").read_text())
        for folder in (output, ENTRIES)
    )
    kept["submission"]["date"] = made["submission"]["date"]  # of the run, so it is another
    for key in ("submission", "board", "results", "kernels", "claims", "examples", "marks"):
        assert made[key] == kept[key], key
    assert made["claims"]
    assert all(claim["same"] for claim in made["claims"])


@pytest.mark.exhaustive  # of mini-expert it is asked below
def test_an_entry_is_made_anew(tmp_path: Path) -> None:
    arguments = ["--board", "mini", "--only", "linear-scan", "--output", str(tmp_path)]
    assert main([*arguments, "--work", str(tmp_path / "work")]) == 0
    assert_is_made_anew(tmp_path, "mini")


def test_an_entry_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nobody"]) == 2
    assert "no entry of seeds.yaml is named 'nobody'" in capsys.readouterr().err


def test_what_cannot_be_made_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A board that the copy lacks, and a run that fails; the rest is made as it was made before."""
    where = ["--work", str(tmp_path / "work"), "--output", str(tmp_path)]
    (tmp_path / "work/mini-expert/compiler").mkdir(parents=True)
    (tmp_path / "work/mini-expert/compiler/run").write_text("no folder")
    chosen = ["--only", "compiler", "--only", "linear-scan"]
    chosen += ["--board", "fresh-2026-12", "--board", "mini-expert"]
    assert main(["--dataset", "mini", *chosen, *where]) == 2
    said = capfd.readouterr().err
    assert "seed: fresh-2026-12 is left out: mini: its test split of the assign track has" in said
    assert "seed: mini-expert: compiler: evaluate ended with status 2" in said
    assert [path.name for path in tmp_path.glob("*/*.json")] == ["linear-scan.json"]
    assert_is_made_anew(tmp_path, "mini-expert")
