"""Rows that contradict themselves, and damaged files, are refused before they are scored."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from verilocc_bench.cli import main
from verilocc_bench.dataset import Row, embedded_path, load_raw_row, load_rows, write_parquet
from verilocc_bench.dataset.parquet import read_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import PreparedRow
from verilocc_bench.ir import instance_id

ROWS = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
ROW = next(row for row in ROWS if row.arch == "gfx942" and row.family == "gemm")
OTHER = next(row for row in ROWS if row.arch == "gfx942" and row.family == "mha")
SPLIT = load_rows("mini", track="split").rows[0]

Refused = Callable[..., str]


def place(
    folder: Path, arch: str = ROW.arch, family: str = ROW.family, split: str = "test"
) -> Path:
    return folder / "data" / arch / family / f"{split}-00000-of-00001.parquet"


@pytest.fixture(name="refused")
def _refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """What evaluate says of rows, in its one line."""

    def refused(*rows: Row, options: tuple[str, ...] = ()) -> str:
        write_parquet(rows, place(tmp_path))
        command = ["evaluate", "--model", "linear-scan", "--dataset", str(tmp_path), *options]
        assert main(command) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return refused


def test_the_rows_that_are_there_agree_with_their_texts() -> None:
    for row in (ROW, OTHER, SPLIT, ROWS[0]):
        PreparedRow(row)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "0" * 16}, f"'id' is '{'0' * 16}', its text says '{ROW.id}'"),
        ({"n_blocks": -1}, "'n_blocks' is '-1', its text says '1'"),
        ({"n_instructions": ROW.n_instructions + 1}, "the column 'n_instructions'"),
        ({"n_virtual_registers": -5}, "the column 'n_virtual_registers' is '-5'"),
        ({"arch": "gfx90a"}, "is of gfx90a/gemm, not as the path says"),
        ({"family": "mha"}, "is of gfx942/mha, not as the path says"),
        ({"track": "split"}, "expected the track 'assign', not 'split'"),
        ({"pressure": '{"vector":-3}'}, "the column 'pressure' is {'vector': -3}"),
        ({"pressure": "[]"}, "the column 'pressure' is []"),
        ({"pressure": "{"}, "column pressure:1:2: expected JSON"),
        ({"registers_used": '{"vector":1}'}, "the column 'registers_used' is {'vector': 1}"),
        ({"occupancy": -8}, "the column 'occupancy' is -8"),
        ({"best_lower_bound": 999}, "'best_lower_bound' is 999, its label uses"),
        ({"assignment": '{"%0":"v0"}'}, "the label is wrong"),
        ({"assignment": "[]"}, "column 'assignment' must hold a JSON object"),
    ],
)
def test_a_column_that_contradicts_the_text(
    refused: Refused, change: dict[str, Any], said: str
) -> None:
    assert said in refused(replace(ROW, **change))


def test_the_architecture_is_that_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_parquet([replace(ROW, arch="gfx90a")], place(tmp_path, "gfx90a"))
    assert main(["evaluate", "--model", "linear-scan", "--dataset", str(tmp_path)]) == 2
    assert "'arch' is 'gfx90a', its text says 'gfx942'" in capsys.readouterr().err


def test_a_row_that_is_not_asked_about_is_not_checked(refused: Refused, tmp_path: Path) -> None:
    longer = [row for row in ROWS if (row.arch, row.family) == (ROW.arch, ROW.family)][-1]
    said = refused(ROW, replace(longer, n_virtual_registers=1))
    assert "'n_virtual_registers' is '1'" in said
    command = ["evaluate", "--model", "linear-scan", "--dataset", str(tmp_path), "--limit", "1"]
    assert main([*command, "--output-path", str(tmp_path / "results")]) == 0


def test_rows_that_stand_twice(refused: Refused, tmp_path: Path) -> None:
    assert f"row {ROW.id} stands twice in the split" in refused(ROW, ROW)
    write_parquet([ROW], place(tmp_path, split="train"))
    both = ("--split", "train,test")
    assert f"row {ROW.id} stands in several of the splits" in refused(ROW, options=both)


@pytest.mark.parametrize("budget", ["bound", "occupancy"])
def test_budgets_follow_from_figures_that_are_right(refused: Refused, budget: str) -> None:
    used = json.loads(ROW.registers_used or "")
    wrong = replace(ROW, registers_used=json.dumps({**used, "vector": used["vector"] + 8}))
    assert "the column 'registers_used'" in refused(wrong, options=("--budget", budget))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"registers_used": '{"vector":1}'}, "expected counts of a, s, v, vcc, vector"),
        ({"registers_used": '{"a":-4,"s":33,"v":128,"vcc":2,"vector":128}'}, "expected counts"),
        ({"registers_used": '{"a":0,"s":33,"v":128,"vcc":2,"vector":96}'}, "'registers_used'"),
        ({"occupancy": 7}, "the column 'occupancy' is 7"),
    ],
)
def test_figures_of_the_split_track(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        PreparedRow(replace(SPLIT, **change))


def test_a_row_in_a_file_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "row.json"
    path.write_text(json.dumps({"id": ROW.id, "arch": "sm_80", "normalized": ROW.normalized}))
    assert main(["bound", str(path), "--no-solver"]) == 2
    assert f"row.json: row {ROW.id}: the column 'arch' is 'sm_80'" in capsys.readouterr().err
    path.write_text(json.dumps({"normalized": ROW.normalized}))
    assert main(["bound", str(path), "--no-solver"]) == 0


def test_a_text_of_other_words(tmp_path: Path) -> None:
    """Nothing is assumed of the text but that its id is its hash."""
    text = "verilocc-bench 1\n%99999999999999999999\n"
    write_parquet([replace(ROW, id=instance_id(text), normalized=text)], place(tmp_path))
    with pytest.raises(InputError, match="'arch' is 'gfx942', its text says 'None'"):
        load_rows(str(tmp_path))


def test_a_flipped_bit_in_a_page_changes_no_text(tmp_path: Path) -> None:
    """Pages have checksums. The statistics in their headers have none, and nobody reads them."""
    path = tmp_path / "rows.parquet"
    rows = [ROW, OTHER]
    write_parquet(rows, path)
    data = path.read_bytes()
    column = parquet.ParquetFile(path).metadata.row_group(0).column(6)
    assert column.path_in_schema == "normalized"
    generator = random.Random(5)
    noticed = 0
    for _ in range(60):
        flipped = bytearray(data)
        place = column.data_page_offset + generator.randrange(column.total_compressed_size)
        flipped[place] ^= 1 << generator.randrange(8)
        path.write_bytes(flipped)
        try:
            assert read_parquet(path, Row) == rows
        except InputError:
            noticed += 1
    assert noticed > 3


def test_a_file_that_the_manifest_lists_otherwise(tmp_path: Path) -> None:
    """Every bit of it: an alternative label, say, of which the text knows nothing."""
    folder = tmp_path / "mini"
    shutil.copytree(embedded_path(), folder)
    assert load_rows(str(folder)).rows
    for pattern, load in (
        ("data/gfx942/gemm/*.parquet", lambda: load_rows(str(folder))),
        ("raw/data/gfx942/gemm/*.parquet", lambda: load_raw_row(str(folder), ROW.id)),
    ):
        (path,) = folder.glob(pattern)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
        with pytest.raises(InputError, match="its SHA-256 is not what") as caught:
            load()
        assert caught.value.source == str(path)
    next(folder.glob("raw/data/sm_80/mha/test-*.parquet")).unlink()
    with pytest.raises(InputError, match="its SHA-256"):
        load_rows(str(folder))
    next(folder.glob("data/sm_80/mha/*.parquet")).unlink()
    with pytest.raises(InputError, match="the file is missing"):
        load_rows(str(folder))


def test_text_that_is_no_utf_8(tmp_path: Path) -> None:
    path = place(tmp_path)
    write_parquet([ROW], path)
    table = parquet.ParquetFile(path).read()
    index = table.schema.get_field_index("kernel")
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    parquet.write_table(table.set_column(index, table.schema.field("kernel"), broken), path)
    with pytest.raises(InputError, match="the column 'kernel' has text that is not UTF-8"):
        load_rows(str(tmp_path))


def test_the_occupancy_keeps_to_the_limit_of_the_text() -> None:
    head, body = SPLIT.normalized.split("class ", 1)
    head = "".join(line for line in head.splitlines(True) if not line.startswith("occupancy "))
    text = f"{head}occupancy 3\nclass {body}"
    limited = replace(SPLIT, id=instance_id(text), normalized=text, occupancy=3)
    PreparedRow(limited)
    assert SPLIT.occupancy is not None
    assert SPLIT.occupancy > 3
    with pytest.raises(InputError, match="the column 'occupancy' is"):
        PreparedRow(replace(limited, occupancy=SPLIT.occupancy))
