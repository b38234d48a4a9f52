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
from dataset_builders.journal.journal import Journal, result_document
from verilocc_bench.dataset import RawRow, load_rows
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import InputError, RejectedKernel

KEYS = [f"key-{number:03d}" for number in range(10)]


def document(key: str) -> dict[str, Any]:
    return {"name": key, "text": f"about {key} " * 50}


def fill(folder: Path, keys: list[str] = KEYS) -> None:
    with Journal(folder, {}) as journal:
        for key in keys:
            journal.store(key, document(key))


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it but `finally`."""


def test_killed_between_any_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step is done or not: what was stored before is there, and nothing half-written."""
    real = Path.replace
    for done in (False, True):
        folder = tmp_path / str(done)
        fill(folder, KEYS[:3])

        def replace_killed(self: Path, target: Any, done: bool = done) -> Path:
            if done:
                real(self, target)
            raise Killed

        with monkeypatch.context() as patch, Journal(folder, {}) as journal:
            patch.setattr(Path, "replace", replace_killed)
            patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process cleans no file
            with pytest.raises(Killed):
                journal.store(KEYS[3], document(KEYS[3]))
        assert bool(list(folder.glob(".*"))) is not done
        with Journal(folder, {}) as journal:
            assert not list(folder.glob(".*"))
            assert [journal.has(key) for key in KEYS[:5]] == [True, True, True, done, False]
            for key in KEYS[: 3 + done]:
                assert journal.load_document(key) == document(key)


def test_a_damaged_file_is_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, KEYS[:3])
    victim = tmp_path / f"{KEYS[1]}.json.gz"
    victim.write_bytes(victim.read_bytes()[:-3])
    with Journal(tmp_path, {}) as journal:
        assert str(victim) in capsys.readouterr().err
        assert [journal.has(key) for key in KEYS[:3]] == [True, False, True]


def test_damage_while_the_folder_is_open(tmp_path: Path) -> None:
    with Journal(tmp_path, {}) as journal:
        for data in (b"PAR1 no more", gzip.compress(b"[1]")):
            journal.store("loose", {})
            journal.path("loose").write_bytes(data)
            with pytest.raises(InputError, match=r"loose.json.gz: the file is damaged"):
                journal.load_document("loose")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_named_and_loses_nothing(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    with Journal(tmp_path, {}) as journal:
        for key in KEYS[:3]:
            journal.store(key, document(key))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(InputError, match=os.strerror(code)) as raised:
                journal.store(KEYS[3], document(KEYS[3]))
        assert raised.value.source == str(journal.path(KEYS[3]))
        assert not list(tmp_path.glob(".*"))
    fill(tmp_path, KEYS[3:])
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
        found = journal.load("row")
        assert (found.row, found.raw, found.timings) == (built.row, built.raw, None)
        assert journal.load("none").rejection == ("kind", "reason")
