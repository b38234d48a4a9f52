"""Building a dataset: resumable, deterministic, loadable, honest about what it rejects."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml
from pyarrow import parquet

from dataset_builders.building.fingerprint import fingerprint
from dataset_builders.building.install import WORK_FOLDER
from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.journal.journal import Journal, result_document
from dataset_builders.release.better_labels import open_journal
from dataset_builders.sweeps import sweep_named
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.cli import main
from verilocc_bench.dataset import RawRow, embedded_path, load_rows, read_parquet
from verilocc_bench.dataset.rows import BEST_COLUMNS, RELEASE_COLUMNS
from verilocc_bench.errors import InputError
from verilocc_bench.views.chat import chat_file

pytestmark = pytest.mark.slow

LIMIT = 3


def files_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def command(output: Path, jobs: int) -> list[str]:
    options = ["--sweep", "default", "--arch", "gfx90a,gfx942", "--limit", str(LIMIT)]
    return ["build", *options, "--output", str(output), "--jobs", str(jobs)]


@pytest.fixture(name="built", scope="module")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("build") / "whole"
    assert main(command(output, 1)) == 0
    return output


def test_a_complete_build_is_left_alone(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*")}
    assert main(command(built, 2)) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*")} == before


def test_another_build_does_not_overwrite(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "--sweep", "mini", "--output", str(built)]) == 2
    assert "finished build with another" in capsys.readouterr().err
    third = Path(shutil.copytree(built, tmp_path.with_name("third")))
    manifest = json.loads((third / "manifest.json").read_text()) | {"every": 3}
    (third / "manifest.json").write_text(json.dumps(manifest))
    assert main(command(third, 1)) == 2
    assert "finished build with another every" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["build", "--sweep", "mini", "--output", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["notes.txt"]  # noqa: PTH208


def test_a_build_killed_while_it_was_put_in_place(built: Path, tmp_path: Path) -> None:
    from dataset_builders.building.install import install

    staging, output = tmp_path / "staging", tmp_path / "output"
    shutil.copytree(built, staging)
    # An earlier run got as far as some parts, of a dataset with other shards.
    (output / "data" / "gfx942").mkdir(parents=True)
    (output / "data" / "gfx942" / "train-00001-of-00002.parquet").write_bytes(b"old")
    (output / "README.md").write_text("old")
    install(staging, output)
    assert files_in(output) == files_in(built)


def test_a_working_folder_left_behind_goes(built: Path) -> None:
    before = files_in(built)
    (built / ".work").mkdir()
    (built / ".work" / "x.json.gz").write_bytes(b"")
    assert main(command(built, 1)) == 0
    assert files_in(built) == before
    assert not (built / ".work").exists()


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    with Journal(tmp_path / ".work", {}) as journal:
        journal.path("a-key").write_bytes(b"\x1f\x8b cut off")
        with pytest.raises(InputError, match="damaged"):
            journal.load("a-key")


def test_every_point_is_a_row_or_a_rejection(built: Path) -> None:
    rejected = [json.loads(line) for line in (built / "rejected.jsonl").read_text().splitlines()]
    rows = []
    for track in ("assign", "split"):
        for split in SPLITS:
            if list((built / {"assign": "data"}.get(track, track)).glob(f"*/*/{split}-*")):
                rows += load_rows(str(built), split=split, track=track).rows
    assert len(rows) + len(rejected) == LIMIT
    assert all(entry["kind"] and entry["reason"] for entry in rejected)
    assert {row.arch for row in rows} == {"gfx90a", "gfx942"}
    assert {row.family for row in rows} == {"gemm", "mha"}
    groups: dict[str, set[str]] = {}
    for row in rows:
        groups.setdefault(row.group, set()).add(row.id)
    assert not list(built.glob(".*"))


def test_conversations_and_raw_code_are_of_the_rows(built: Path) -> None:
    def ids(*paths: Path) -> set[str]:
        return {each for path in paths for each in parquet.read_table(path)["id"].to_pylist()}

    paths = list(built.glob("data/*/*/*.parquet"))
    assert ids(*paths) <= ids(*built.glob("raw/data/*/*/*.parquet"))
    chats = {path: chat_file(path.relative_to(built)) for path in paths}
    assert any(chats.values())
    assert all(ids(built / chat) == ids(path) for path, chat in chats.items() if chat is not None)
    head = yaml.safe_load((built / "README.md").read_text().split("---\n")[1])
    assert {"default", "raw", "chat"} <= {each["config_name"] for each in head["configs"]}


@pytest.mark.parametrize(
    "everything", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
def test_mini_is_rebuilt_to_the_same_bytes(everything: bool, tmp_path: Path) -> None:
    """All but one row of each target and track is taken from an interrupted build."""
    output = tmp_path / "mini"
    work = output / WORK_FOLDER
    columns = (*BEST_COLUMNS, "bank_conflicts")
    points = sweep_named("mini").points()
    rows = (*load_rows("mini").rows, *load_rows("mini:sm_90").rows)
    rows = sorted((*rows, *load_rows("mini", track="split").rows), key=lambda r: -r.n_instructions)
    smallest = {row.arch if row.label else row.track: row.id for row in rows}.values()
    paths = embedded_path().glob("raw/*/*/*/*.parquet")
    raws = {raw.id: raw for path in paths for raw in read_parquet(path, RawRow)}
    with Journal(work, fingerprint(points)) as journal, open_journal(work / "best") as found:
        for row in rows:
            if not everything and row.id not in smallest:
                bare = dataclasses.replace(row, **RELEASE_COLUMNS)
                kernel = BuiltKernel(bare, raws[row.id], Timings())
                journal.store(json.loads(row.provenance)["point"], result_document(kernel))
                found.store(row.id, {name: getattr(row, name) for name in columns})
    assert main(["build", "--sweep", "mini", "--output", str(output), "--jobs", "1"]) == 0
    assert files_in(output) == files_in(embedded_path())
