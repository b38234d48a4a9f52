"""Figures of a dataset: counted again by other means, the same bytes every time."""

from __future__ import annotations

import argparse
import builtins
import json
import statistics as reference
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from dataset_builders.statistics import PLOTS, draw_plots, statistics_of
from dataset_builders.statistics.document import statistics_document
from dataset_builders.statistics.summary import quartiles
from dataset_builders.statistics.tables import plain_table, statistics_tables
from verilocc_bench.cli.dataset_command import run
from verilocc_bench.dataset import Row, load_rows, write_parquet
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import InputError, MissingExtraError

TEMPLATE = Row(
    id="0", family="gemm", arch="gfx942", kernel="gemm",
    params='{"block_m":64,"block_n":128,"dtype":"fp16"}', track="assign", normalized="",
    assignment="{}", label_source="llvm-greedy 22.1.0", alternatives='{"llvm-basic 22.1.0":{}}',
    best_assignment=None, best_source=None, best_registers_used=8, best_lower_bound=8,
    best_is_optimal=True, best_certificate="{}", best_bank_conflicts=5, group="g", cluster="0",
    n_blocks=1, n_instructions=10, n_virtual_registers=5, pressure='{"vector":7}',
    registers_used='{"vector":8}', occupancy=8, bank_conflicts=5,
    license="Apache-2.0", provenance="{}",
)  # fmt: skip
BETTER = {"best_assignment": "{}", "best_source": "linear-scan", "best_bank_conflicts": 1}
NO_BEST: dict[str, Any] = {**RELEASE_COLUMNS, "cluster": "0"}
HEAD = '{"block_h":16,"block_n":64,"dtype":"bf16","head_dim":80}'
ROWS: dict[str, list[Row]] = {
    "data/gfx942/gemm/train-00000-of-00001.parquet": [
        TEMPLATE,
        replace(TEMPLATE, id="1", n_instructions=30, registers_used='{"vector":9}', **BETTER),
        replace(
            TEMPLATE, id="2", n_instructions=20, registers_used='{"vector":12}', cluster="1",
            best_registers_used=12, best_is_optimal=False, best_source="b", best_bank_conflicts=4,
        ),
    ],
    "data/sm_80/mha/test_larger-00000-of-00001.parquet": [
        replace(
            replace(TEMPLATE, **NO_BEST), id="3", arch="sm_80", family="mha", kernel="mha_decode",
            params=HEAD, alternatives="{}", occupancy=None, label_source="ptxas 13.5.37",
            cluster="",
        )
    ],
    "split/gfx942/gemm/train-00000-of-00001.parquet": [
        replace(
            replace(TEMPLATE, **NO_BEST), id="4", track="split", assignment=None,
            registers_used=None, params="{}",
        )
    ],
}  # fmt: skip
LEAKAGE = {
    "summary": {
        "test_larger": {
            "rows": 1, "minimum_distance": 0.3, "median_distance": 0.3,
            "share_below": {"0.1": 0.0, "0.05": 0.0},
        }
    },
    "rows": [
        {"id": "3", "split": "test_larger", "nearest": "0", "nearest_split": "train",
         "distance": 0.3}
    ],
    "embedded": {},
}  # fmt: skip


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    for path, rows in ROWS.items():
        write_parquet(rows, tmp_path / path)
    (tmp_path / "rejected.jsonl").write_text('{"kind":"duplicate"}\n' * 2 + '{"kind":"a"}\n')
    (tmp_path / "leakage.json").write_text(json.dumps(LEAKAGE))
    return tmp_path


def options(folder: Path | str, **values: Any) -> argparse.Namespace:
    return argparse.Namespace(
        **{"action": "stats", "folder": folder, "json": True, "plots": None, **values}
    )


def document_of(folder: Path | str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(options(folder)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    document: dict[str, Any] = json.loads(captured.out)
    assert captured.out == json.dumps(document, indent=2, sort_keys=True) + "\n"
    return document


def test_every_figure_of_a_small_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(folder, capsys)
    assert (document["rows"], document["groups"]) == (5, 1)
    assert document["clusters"] == {"count": 3, "rows_not_alone": 3, "largest": 3}
    assert document["counts"] == [
        {"track": t, "architecture": a, "family": f, "split": s, "rows": n}
        for t, a, f, s, n in (
            ("assign", "gfx942", "gemm", "train", 3),
            ("assign", "sm_80", "mha", "test_larger", 1),
            ("split", "gfx942", "gemm", "train", 1),
        )
    ]
    gemm, mha, split = document["tasks"]
    assert gemm["instructions"] == {
        "minimum": 10, "lower": 15, "median": 20, "upper": 25, "maximum": 30,
    }  # fmt: skip
    assert gemm["registers_used"]["maximum"] == 12
    assert gemm["occupancy"] == {"8": 3}
    assert mha["occupancy"] == {}
    assert gemm["share_with_alternative"] == 1
    assert mha["share_with_alternative"] == 0
    assert gemm["lower_bound"]["minimum"] == 8
    assert gemm["share_with_fewer_registers"] == gemm["share_label_proved_optimal"] == 1 / 3
    assert gemm["share_with_better"] == gemm["share_best_proved_optimal"] == 2 / 3
    assert (gemm["mean_label_gap"], gemm["mean_best_gap"]) == ((0 + 1 + 4) / 3, (0 + 0 + 4) / 3)
    assert (gemm["label_bank_conflicts"], gemm["best_bank_conflicts"]) == (15, 10)
    assert gemm["best_sources"] == {"linear-scan": 1, "b": 1}
    # Without the columns: the bound is the pressure, and what is not known is null.
    assert mha["lower_bound"]["minimum"] == 7
    assert mha["share_with_better"] == mha["share_best_proved_optimal"] == 0
    assert (mha["mean_label_gap"], mha["mean_best_gap"]) == (1, None)
    assert mha["label_bank_conflicts"] is mha["best_bank_conflicts"] is None
    assert split["mean_label_gap"] is None
    assert (split["registers_used"], split["share_label_proved_optimal"]) == (None, 0)
    assert document["tiles"] == {"train": {"gemm 64x128": 3}, "test_larger": {"decoding 16x64": 1}}
    assert document["head_dimensions"]["test_larger"] == {"80": 1}
    assert document["data_types"]["train"] == {"fp16": 3}
    assert document["licenses"] == {"Apache-2.0": 5}
    assert document["rejected"] == {"a": 1, "duplicate": 2}
    assert document["leakage"]["summary"] == LEAKAGE["summary"]
    assert document["leakage"]["embedded"] is None
    sizes = {
        name: [path.stat().st_size for path in (folder / name).rglob("*.parquet")]
        for name in ("data", "split")
    }
    assert document["folders"] == {
        name: {"files": len(found), "bytes": sum(found)} for name, found in sizes.items()
    }


def test_figures_of_the_embedded_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of("mini", capsys)
    rows = [row for track in ("assign", "split") for row in load_rows("mini", track=track).rows]
    rows += load_rows("mini:sm_90").rows
    counts = Counter((row.track, row.arch, row.family) for row in rows)
    assert {
        (c["track"], c["architecture"], c["family"]): c["rows"] for c in document["counts"]
    } == counts
    for task in document["tasks"]:
        key = task["track"], task["architecture"], task["family"]
        mine = [row for row in rows if (row.track, row.arch, row.family) == key]
        sizes = [row.n_instructions for row in mine]
        assert task["instructions"]["median"] == reference.median(sizes)
        assert task["instructions"]["maximum"] == max(sizes)
        used = [json.loads(row.registers_used)["vector"] for row in mine if row.registers_used]
        bounds = [row.best_lower_bound or json.loads(row.pressure)["vector"] for row in mine]
        assert task["share_label_proved_optimal"] == pytest.approx(
            sum(map(int.__eq__, used, bounds)) / len(mine)
        )
        assert sum(task["alternatives"].values()) == sum(len(row.other_labels) for row in mine)
    assert document["leakage"] is None or document["leakage"]["summary"] == {}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 13])
def test_quartiles(count: int) -> None:
    values = [(7 * i * i) % 31 for i in range(count)]
    found = quartiles(values)
    assert found is not None
    cuts = reference.quantiles(values * (1 + (count == 1)), n=4, method="inclusive")
    assert [found.lower, found.median, found.upper] == pytest.approx(cuts)
    assert (found.minimum, found.maximum) == (min(values), max(values))
    assert quartiles([]) is None


def test_tables_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(folder, json=False)) == 0
    text = capsys.readouterr().out
    for title in ("Rows", "Sizes", "Labels", "Tiles", "Rejected", "Distance to train", "Files"):
        assert f"\n{title}\n\n" in f"\n{text}"
    assert "33.3 %" in text
    assert text == "\n".join(map(plain_table, statistics_tables(statistics_of(folder))))


def test_texts_of_functions_stay_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()
    plain = parquet.ParquetFile.iter_batches

    def spy(self: Any, columns: list[str], **options: Any) -> Any:
        read.update(columns)
        return plain(self, columns=columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", spy)
    statistics_of(folder)
    assert "pressure" in read
    assert not read & {"normalized", "assignment", "best_assignment", "provenance"}


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("data/gfx942/gemm/train-00000-of-00001.parquet", b"no", "expected a Parquet file"),
        ("data/gfx942/gemm/train.parquet", b"no", "expected a name such as train-00000"),
        ("rejected.jsonl", b'{"kind":"a"}\n{}\n', "rejected.jsonl:2: expected an object"),
        ("rejected.jsonl", b'{"kind":"\xff"}\n', "rejected.jsonl: cannot be read"),
        ("leakage.json", b'{"summary":{}}', "leakage.json: expected an object with 'summary'"),
        ("leakage.json", b"[]", "leakage.json: expected an object with 'summary'"),
    ],
)
def test_bad_files_are_named(folder: Path, path: str, content: bytes, expected: str) -> None:
    (folder / path).write_bytes(content)
    with pytest.raises(InputError) as error:
        statistics_of(folder)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"pressure": "{}"}, "column pressure: expected a number of registers under 'vector'"),
        ({"registers_used": '{"vector":"9"}'}, "column registers_used: expected a number"),
        ({"params": "[]"}, "column params: expected a JSON object"),
        ({"params": "{"}, "column params:1:2: expected JSON"),
    ],
)
def test_bad_rows_are_named(folder: Path, change: dict[str, str], expected: str) -> None:
    path = folder / "data/gfx942/gemm/train-00000-of-00001.parquet"
    write_parquet([replace(TEMPLATE, id="bad", **change)], path)
    with pytest.raises(InputError) as error:
        statistics_of(folder)
    assert str(path) in str(error.value)
    assert "row bad" in str(error.value)
    assert expected in str(error.value)


def test_a_missing_column_and_a_missing_folder(folder: Path) -> None:
    path = folder / "data/gfx942/gemm/train-00000-of-00001.parquet"
    parquet.write_table(parquet.ParquetFile(path).read().drop_columns(["cluster"]), path)
    with pytest.raises(InputError, match="the column 'cluster' is missing"):
        statistics_of(folder)
    with pytest.raises(InputError, match="expected the folder of a dataset"):
        statistics_of(folder / "nothing")
    with pytest.raises(InputError, match="expected the folder of a dataset, with files"):
        statistics_of(folder / "data")


def test_without_rejections_and_leakage(folder: Path) -> None:
    (folder / "rejected.jsonl").unlink()
    (folder / "leakage.json").unlink()
    document = statistics_document(statistics_of(folder))
    assert (document["rejected"], document["leakage"]) == ({}, None)


@pytest.mark.slow
def test_plots_are_the_same_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    assert run(options(folder, plots=folder / "first")) == 0
    # Nobody's own settings show.
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 33.0)
    assert draw_plots(statistics_of(folder), folder / "second") == list(PLOTS)
    assert matplotlib.rcParams["font.size"] == 33.0
    for name in PLOTS:
        first = (folder / "first" / name).read_bytes()
        assert first == (folder / "second" / name).read_bytes()
        assert first.startswith(b"\x89PNG")
        assert not any(word in first for word in (b"tEXt", b"tIME", b"Matplotlib"))


def test_without_matplotlib(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[plot\]"):
        draw_plots(statistics_of(folder), folder / "plots")
    assert not (folder / "plots").exists()
