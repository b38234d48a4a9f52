"""The working folder: whole or not at all, whenever its process is killed."""

from __future__ import annotations

import errno
import gzip
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.journal.journal import BLOCK, Journal
from dataset_builders.journal.results import result_document
from verilocc_bench.dataset import RawRow, load_rows
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import InputError, RejectedKernel

KEYS = [f"key-{number:03d}" for number in range(BLOCK + 10)]


def document(key: str) -> dict[str, Any]:
    return {"name": key, "text": f"about {key} " * 50}


def fill(folder: Path, keys: list[str] = KEYS) -> None:
    with Journal(folder, {}) as journal:
        journal.arrange(KEYS)
        for key in keys:
            journal.store(key, document(key))


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("shard-*.parquet"))


def test_whole_blocks_become_shards(tmp_path: Path) -> None:
    fill(tmp_path, KEYS[1:])
    assert len(shards(tmp_path)) == 1
    assert len(list(tmp_path.glob("*.json.gz"))) == BLOCK - 1
    fill(tmp_path, KEYS[:1])
    assert len(shards(tmp_path)) == 2
    assert not list(tmp_path.glob("*.json.gz"))
    with Journal(tmp_path, {}) as journal:
        assert all(journal.has(key) for key in KEYS)
        assert not journal.has("another")
        assert [journal.load_document(key) for key in KEYS] == [document(key) for key in KEYS]


def test_files_of_a_whole_block_become_a_shard_when_the_order_is_known(tmp_path: Path) -> None:
    with Journal(tmp_path, {}) as journal:
        for key in KEYS:
            journal.store(key, document(key))
    assert not shards(tmp_path)
    fill(tmp_path, [])
    assert len(shards(tmp_path)) == 2
    # In another order other keys are neighbours; none is lost or kept twice.
    with Journal(tmp_path, {}) as journal:
        journal.arrange(["new", *KEYS[::2]])
        journal.store("new", document("new"))
        assert [journal.load_document(key) for key in ("new", *KEYS)] == [
            document(key) for key in ("new", *KEYS)
        ]
    assert len(shards(tmp_path)) == 3


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it but `finally`."""


def test_killed_between_any_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of the folder's entries may be the last one."""
    block = 6
    monkeypatch.setattr("dataset_builders.journal.journal.BLOCK", block)
    real_replace, real_unlink = Path.replace, Path.unlink
    fill(tmp_path / "start", KEYS[: block - 1])
    steps = 0
    for step in range(200):
        folder = tmp_path / f"step{step}"
        folder.mkdir()
        for path in (tmp_path / "start").iterdir():
            os.link(path, folder / path.name)
        left = step

        def spend() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        def replace_counted(self: Path, target: Any) -> Path:
            spend()
            return real_replace(self, target)

        def unlink_counted(self: Path, missing_ok: bool = False) -> None:
            if not self.name.startswith("."):  # a killed process cleans nothing up
                spend()
            elif left < 0:  # noqa: B023
                return
            real_unlink(self, missing_ok)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", replace_counted)
            patch.setattr(Path, "unlink", unlink_counted)
            stored = KEYS[: block - 1]
            try:
                with Journal(folder, {}) as journal:
                    journal.arrange(KEYS)
                    for key in KEYS[block - 1 : block + 2]:
                        journal.store(key, document(key))
                        stored = [*stored, key]
            except Killed:
                steps += 1
        with Journal(folder, {}) as journal:
            for key in stored:
                assert journal.load_document(key) == document(key)
            assert not list(folder.glob(".*"))
            journal.arrange(KEYS)
            assert sum(journal.has(key) for key in KEYS) in (len(stored), len(stored) + 1)
            assert len(shards(folder)) <= 1
        if left >= 0:
            break
    assert steps > block  # each of the small files' removals was once the end


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_shard_is_done_again(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path)
    victim = next(path for path in shards(tmp_path) if path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(data if damage == "flipped" else data[:-5])
    with Journal(tmp_path, {}) as journal:
        assert capsys.readouterr().err == f"{victim}: damaged; what was in it is done again\n"
        missing = [key for key in KEYS if not journal.has(key)]
        assert len(missing) in (BLOCK, 10)
        for key in set(KEYS) - set(missing):
            assert journal.load_document(key) == document(key)
    fill(tmp_path, missing)
    assert capsys.readouterr().err == ""
    with Journal(tmp_path, {}) as journal:
        assert [journal.load_document(key) for key in KEYS] == [document(key) for key in KEYS]


def test_a_damaged_file_is_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, KEYS[:3])
    victim = tmp_path / f"{KEYS[1]}.json.gz"
    victim.write_bytes(victim.read_bytes()[:-3])
    with Journal(tmp_path, {}) as journal:
        assert str(victim) in capsys.readouterr().err
        assert [journal.has(key) for key in KEYS[:3]] == [True, False, True]


def test_a_damaged_manifest_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path)
    (tmp_path / "shards.json").write_text('[{"file"')
    with Journal(tmp_path, {}) as journal:
        assert [journal.load_document(key) for key in KEYS] == [document(key) for key in KEYS]
    assert "shards.json: damaged" in capsys.readouterr().err
    with Journal(tmp_path, {}) as journal:
        assert all(journal.has(key) for key in KEYS)
    assert capsys.readouterr().err == ""


def test_damage_while_the_folder_is_open(tmp_path: Path) -> None:
    fill(tmp_path)
    with Journal(tmp_path, {}) as journal:
        shard = shards(tmp_path)[0]
        for path in shards(tmp_path):
            path.write_bytes(b"PAR1 no more")
        with pytest.raises(InputError, match=r"damaged meanwhile.*again"):
            journal.load_document(KEYS[0])
        journal.store("loose", {})
        journal.path("loose").write_bytes(gzip.compress(b"[1]"))
        with pytest.raises(InputError, match=r"loose.json.gz: the file is damaged"):
            journal.load_document("loose")
    assert shard.exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_named_and_loses_nothing(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    with Journal(tmp_path, {}) as journal:
        journal.arrange(KEYS)
        for key in KEYS[: BLOCK - 1]:
            journal.store(key, document(key))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(InputError, match=os.strerror(code)) as raised:
                journal.store(KEYS[BLOCK - 1], document(KEYS[BLOCK - 1]))
        assert raised.value.source == str(journal.path(KEYS[BLOCK - 1]))
        assert not list(tmp_path.glob(".*"))
    fill(tmp_path, KEYS[BLOCK - 1 :])
    with Journal(tmp_path, {}) as journal:
        assert [journal.load_document(key) for key in KEYS] == [document(key) for key in KEYS]


def test_one_folder_in_another_with_another_fingerprint(tmp_path: Path) -> None:
    with Journal(tmp_path, {"a": 1}) as outer, Journal(tmp_path / "best", {"b": 2}) as inner:
        inner.store("id", {"answer": 1})
        outer.store("id", {"row": 1})
        with pytest.raises(InputError, match="another build is at work"):
            Journal(tmp_path, {"a": 1}).__enter__()
    with Journal(tmp_path, {"a": 1}) as outer, Journal(tmp_path / "best", {"b": 2}) as inner:
        assert inner.load_document("id") == {"answer": 1}
        assert outer.load_document("id") == {"row": 1}
    with pytest.raises(InputError, match="begun with another b; remove"):
        Journal(tmp_path / "best", {"b": 3}).__enter__()


@pytest.fixture(name="built", scope="module")
def _built() -> BuiltKernel:
    row = load_rows("mini", split="test", track="assign").rows[0]
    row = replace(row, **RELEASE_COLUMNS)
    return BuiltKernel(row, RawRow(row.id, "mir", "raw"), Timings(1.5, 2.5, 3.5))


def test_results_come_back(built: BuiltKernel, tmp_path: Path) -> None:
    with Journal(tmp_path, {}) as journal:
        journal.store("row", result_document(built))
        journal.store("none", result_document(RejectedKernel("kind", "reason")))
        found = journal.load("row")
        assert (found.row, found.raw, found.rejection) == (built.row, built.raw, None)
        assert found.timings == Timings(1.5, 2.5, 3.5)
        columns = journal.load_document("row")["row"]
        assert not columns.keys() & {"cluster", "bank_conflicts"}
        assert not any(name.startswith("best_") for name in columns)
        rejected = journal.load("none")
        assert (rejected.row, rejected.raw) == (None, None)
        assert rejected.rejection == ("kind", "reason")
        journal.store("strange", {"something": 1})
        with pytest.raises(InputError, match=r"strange.*no result as this version"):
            journal.load("strange")


def test_a_folder_of_the_version_before_is_read(built: BuiltKernel, tmp_path: Path) -> None:
    columns = {
        name: value for name, value in asdict(built.row).items() if name not in RELEASE_COLUMNS
    }
    documents = {
        "row": {"row": columns, "raw": asdict(built.raw)},
        "none": {"rejection": ["kind", "reason"]},
    }
    (tmp_path / "fingerprint.json").write_text(json.dumps({"a": 1}))
    for key, each in documents.items():
        data = gzip.compress(json.dumps(each).encode(), compresslevel=3, mtime=0)
        (tmp_path / f"{key}.json.gz").write_bytes(data)
    with Journal(tmp_path, {"a": 1}) as journal:
        journal.arrange(["row", "none"])  # which packs them into a shard
        assert not list(tmp_path.glob("*.json.gz"))
        found = journal.load("row")
        assert (found.row, found.raw, found.timings) == (built.row, built.raw, None)
        assert journal.load("none").rejection == ("kind", "reason")
