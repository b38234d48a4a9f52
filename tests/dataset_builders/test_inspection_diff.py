"""Two folders compared: every planted difference is told, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataset_builders.inspection.diff import DatasetDiff, RowChange, diff_datasets
from tests.dataset_builders.inspection_folders import draft
from verilocc_bench.dataset import Row, read_parquet
from verilocc_bench.errors import InputError

REDUCE = "ff6a8c95c1702273"
DECODE = "8a0c1350f3e3e019"


@pytest.fixture(scope="module", name="good")
def _good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draft().write(tmp_path_factory.mktemp("good"))


def diff(old: Path, new: Path) -> DatasetDiff:
    return diff_datasets(old, new, progress=False)


def test_a_folder_equals_its_copy(good: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(good, tmp_path / "copy"))
    assert diff(good, copy).equal
    # Other bytes, the same rows.
    path = copy / "data/gfx90a/gemm/train-00000-of-00001.parquet"
    table = pq.ParquetFile(path).read()
    pq.write_table(table, path, compression="none")
    assert diff(good, copy).equal


def test_all_that_can_change(good: Path, tmp_path: Path) -> None:
    found = draft()
    row = next(row for row in found.rows if row.id == REDUCE)
    used = json.loads(row.registers_used or "")
    label = {**(row.label or {}), "%0": "s99"}
    found.change(
        REDUCE,
        assignment=json.dumps(label, separators=(",", ":")),
        registers_used=json.dumps(used | {"vector": 77}),
    )
    found.splits[DECODE] = "validation"
    found.rows = [row for row in found.rows if row.arch != "gfx942"]
    found.manifest["versions"]["triton"] = "9.9"
    found.manifest["flags"]["new"] = ["-x"]
    found.rejected = [{"point": "a", "kind": "duplicate"}]
    folder = found.write(tmp_path)
    (folder / "more.txt").write_text("more")
    difference = diff(good, folder)
    assert difference.removed == ("283d953e61cef95c",)
    assert difference.added == ()
    assert difference.moved == ((DECODE, "test", "validation"),)
    assert difference.changed == (
        RowChange(REDUCE, ("assignment", "registers_used"), (used["vector"], 77)),
    )
    assert difference.columns == {"assignment": 1, "registers_used": 1}
    assert difference.manifest == {"flags.new": (None, ["-x"]), "versions.triton": ("3.7.1", "9.9")}
    assert difference.rejected == {"a": (None, "duplicate")}
    assert {"README.md", "leakage.json", "more.txt"} == set(difference.files)
    turned = diff(folder, good)
    assert turned.added == ("283d953e61cef95c",)
    assert turned.changed[0].registers == (77, used["vector"])
    assert json.loads(json.dumps(difference.to_json()))["equal"] is False


def test_a_function_that_changed_is_no_other_kernel(good: Path, tmp_path: Path) -> None:
    found = draft()
    point = json.loads(next(row for row in found.rows if row.id == DECODE).provenance)["point"]
    found.change(DECODE, id="0" * 16)
    found.splits["0" * 16] = "test"
    difference = diff(good, found.write(tmp_path))
    assert difference.replaced == ((point, DECODE, "0" * 16),)
    assert not difference.added
    assert not difference.removed


def test_a_raw_row_that_changed(good: Path, tmp_path: Path) -> None:
    found = draft()
    raw = next(raw for raw in found.raws if raw.id == REDUCE)
    found.raws[found.raws.index(raw)] = type(raw)(raw.id, raw.format, raw.content + "\n")
    assert diff(good, found.write(tmp_path)).changed == (RowChange(REDUCE, ("raw content",)),)


def test_a_folder_of_an_older_layout(good: Path, tmp_path: Path) -> None:
    old = Path(shutil.copytree(good, tmp_path / "old"))
    for name in ("rows.jsonl", "leakage.json"):
        (old / name).unlink()
    for path in old.glob("data/*/*/*.parquet"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["cluster", "best_source"]), path)
    difference = diff(old, good)
    rows = [row for path in good.glob("data/*/*/*.parquet") for row in read_parquet(path, Row)]
    better = sum(row.best_source is not None for row in rows)
    assert difference.columns == {"best_source": better, "cluster": 6}
    assert difference.files == ("leakage.json",)


def test_no_dataset(good: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset"):
        diff(good, tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(InputError, match="JSON object"):
        diff(good, tmp_path)
