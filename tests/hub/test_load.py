"""What was published is loaded with the real clients: by config, revision, streaming, offline."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from tests.hub.clients import NAME, command, published, script
from tests.hub.look import look, merge
from tests.hub.server import UPLOAD, LocalHub
from verilocc_bench.dataset import Row, embedded_path, load_rows, read_parquet, write_parquet
from verilocc_bench.dataset.rows import RELEASE_COLUMNS

QUIET = """
import json, sys
import datasets
datasets.disable_progress_bars()
from datasets import load_dataset
"""

EVERYTHING = (
    QUIET
    + """
found = load_dataset("verilocc/regalloc")
rows = {"": {split: rows["id"] for split, rows in found.items()}}
features = found["test"].features.items()
types = {name: str(getattr(feature, "dtype", feature._type)) for name, feature in features}
for config in datasets.get_dataset_config_names("verilocc/regalloc"):
    found = load_dataset("verilocc/regalloc", config)
    rows[config] = {split: list(rows["id"]) for split, rows in found.items()}
streamed = load_dataset("verilocc/regalloc", split="test", streaming=True)
print(json.dumps([{"": {s: list(r) for s, r in rows.pop("").items()}, **rows}, types,
                  [row["id"] for row in streamed]]))
"""
)

REVISIONS = (
    QUIET
    + """
print(json.dumps([list(load_dataset("verilocc/regalloc", split="test", revision=revision)["kernel"])
                  for revision in sys.argv[1:]]))
"""
)

COUNT = QUIET + "print(len(load_dataset('verilocc/regalloc', *sys.argv[1:])['test']))"

OURS = """
import json, sys
from verilocc_bench.dataset import iterate_rows, load_raw_row, load_rows
from verilocc_bench.errors import InputError
for asked in sys.argv[1:]:
    kind, split, track, revision = asked.split(" ")
    try:
        if kind == "iterate":
            rows = list(iterate_rows("verilocc/regalloc", split=split, track=track,
                                     revision=revision or None))
        else:
            rows = load_rows("verilocc/regalloc", split=split, track=track,
                             revision=revision or None).rows
        print(json.dumps(sorted(row.kernel + row.id for row in rows)))
    except InputError as error:
        print(error)
"""

EVALUATE = """
import contextlib, io, json, sys
from verilocc_bench.cli import main
options = "--dataset verilocc/regalloc --split test_larger --model linear-scan --limit 1 --json"
for revision in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["evaluate", *options.split(), "--revision", revision]) == 0
    print(json.dumps(json.loads(said.getvalue())["dataset"]))
"""

CARD_FILES = {
    "default": "data/*/*/{split}-*.parquet",
    "gemm": "data/*/gemm/{split}-*.parquet",
    "gfx90a": "data/gfx90a/*/{split}-*.parquet",
    "sm_80": "data/sm_80/*/{split}-*.parquet",
}
SPLITS = {
    "default": ["train", "test", "test_unseen_tile_shape", "test_larger"],
    "gemm": ["train", "test", "test_unseen_tile_shape", "test_larger"],
    "gfx90a": ["train", "test", "test_unseen_tile_shape"],
    "sm_80": ["test", "test_larger"],
}


def _card() -> str:
    configs = [
        {
            "config_name": config,
            "data_files": [
                {"split": split, "path": pattern.format(split=split)} for split in SPLITS[config]
            ],
        }
        for config, pattern in CARD_FILES.items()
    ]
    return f"---\n{yaml.safe_dump({'configs': configs}, sort_keys=False)}---\n"


def _ids(rows: list[Row]) -> list[str]:
    return sorted(row.id for row in rows)


def _with_better_label(row: Row) -> Row:
    return replace(
        row,
        best_assignment="{}",
        best_source="exact",
        best_registers_used=3,
        best_lower_bound=2,
        best_is_optimal=False,
        best_certificate="{}",
        best_bank_conflicts=1,
        bank_conflicts=2,
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two shards of `test`, of which the first has only nulls in columns where the other has not;
    splits that only one architecture has."""
    rows = [replace(row, **RELEASE_COLUMNS) for row in load_rows("mini").rows[:8]]
    folder = tmp_path / "small"
    places: dict[str, list[Row]] = {
        "gfx90a/gemm/train-00000-of-00001": [rows[0]],
        "gfx90a/gemm/test-00000-of-00002": [rows[1], rows[2]],
        "gfx90a/gemm/test-00001-of-00002": [_with_better_label(rows[3])],
        "gfx90a/gemm/test_unseen_tile_shape-00000-of-00001": [rows[4]],
        "sm_80/gemm/test-00000-of-00001": [rows[5]],
        "sm_80/gemm/test_larger-00000-of-00001": [_with_better_label(rows[6])],
    }
    for place, content in places.items():
        write_parquet(content, folder / "data" / f"{place}.parquet")
    (folder / "README.md").write_text(_card())
    return folder


def _load(hub: LocalHub, home: Path, text: str, *arguments: str, **more: Any) -> Any:
    return json.loads(script(hub, home, text, *arguments, **more))


def test_the_embedded_dataset(hub: LocalHub, tmp_path: Path) -> None:
    published(hub, tmp_path, embedded_path())
    rows, _, streamed = _load(hub, tmp_path, EVERYTHING)
    mini = load_rows("mini").rows
    wanted = {
        "": mini,
        "default": mini,
        "split": load_rows("mini", track="split").rows,
        "sm_90": load_rows("mini:sm_90").rows,
        **{arch: [r for r in mini if r.arch == arch] for arch in {r.arch for r in mini}},
        **{name: [r for r in mini if r.family == name] for name in {r.family for r in mini}},
    }
    raw = rows.pop("raw")
    assert {name: list(splits) for name, splits in rows.items()} == {
        name: ["test"] for name in wanted
    }
    assert {name: sorted(splits["test"]) for name, splits in rows.items()} == {
        name: _ids(list(content)) for name, content in wanted.items()
    }
    parts = (rows[name]["test"] for name in ("default", "split", "sm_90"))
    assert sorted(raw["test"]) == sorted(each for part in parts for each in part)
    assert sorted(streamed) == _ids(list(mini))
    # The cache has it now, for others and for us.
    offline = script(hub, tmp_path, COUNT, "default", HF_HUB_OFFLINE="1")
    assert int(offline) == len(mini)
    options = ["--dataset", NAME, "--model", "linear-scan", "--limit", "1", "--json"]
    hub.forget_requests()
    results = json.loads(command(hub, tmp_path, "evaluate", *options, HF_HUB_OFFLINE="1"))
    assert results["dataset"]["hash"] == load_rows("mini").hash
    assert hub.requests() == []


def test_types_splits_and_architectures(hub: LocalHub, small: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, small)
    rows, types, streamed = _load(hub, tmp_path, EVERYTHING)
    assert {config: list(splits) for config, splits in rows.items() if config} == SPLITS
    assert types["best_assignment"] == types["best_certificate"] == types["assignment"] == "Json"
    assert types["best_source"] == "string"
    assert types["best_registers_used"] == types["best_lower_bound"] == "int64"
    assert types["best_bank_conflicts"] == types["bank_conflicts"] == "int64"
    assert (types["best_is_optimal"], types["occupancy"]) == ("bool", "int64")
    content = {
        (path.parts[-3], path.name.split("-")[0], row.id)
        for path in small.rglob("*.parquet")
        for row in read_parquet(path, Row)
    }
    for config, archs in {"default": ("gfx90a", "sm_80"), "sm_80": ("sm_80",)}.items():
        assert {(split, row) for split, ids in rows[config].items() for row in ids} == {
            (split, row) for arch, split, row in content if arch in archs
        }
    assert sorted(streamed) == sorted(row for _, split, row in content if split == "test")


def test_revisions(hub: LocalHub, small: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, small, "--tag", "v1")
    first = look(hub, NAME).head
    changed = small / "data/gfx90a/gemm/test-00001-of-00002.parquet"
    rows = read_parquet(changed, Row)
    write_parquet([replace(rows[0], kernel="renamed")], changed)
    hub.forget_requests()
    published(hub, tmp_path, small, "--create-pr")
    assert len(hub.requests(UPLOAD)) == 1
    asked = ["main", "v1", first, "refs/pr/1"]
    before = _load(hub, tmp_path, REVISIONS, *asked)
    assert ["renamed" in kernels for kernels in before] == [False, False, False, True]
    merge(hub, NAME, 1)
    after = _load(hub, tmp_path, REVISIONS, *asked)
    assert ["renamed" in kernels for kernels in after] == [True, False, False, True]
    assert int(script(hub, tmp_path, COUNT, HF_HUB_OFFLINE="1")) == 4
    home = tmp_path / "ours"
    now = look(hub, NAME).head
    kinds = ["load test assign v1", "load test assign ", f"load test assign {now}",
             "iterate test assign v1", "iterate test assign ", "iterate test_larger assign main",
             "iterate validation assign ", "iterate test assign nowhere"]  # fmt: skip
    said = script(hub, home, OURS, *kinds).splitlines()
    assert [("renamed" in line) for line in said[:5]] == [False, True, True, False, True]
    assert (said[0], said[1], len(json.loads(said[5]))) == (said[3], said[4], 1)
    assert said[6].startswith(f"{NAME}: there is no split 'validation' of the config 'default'")
    assert said[7] == f"{NAME}: the Hub has no revision 'nowhere' of it"
    # Without the Hub: what was loaded, by the names it was asked for.
    hub.forget_requests()
    offline = script(hub, home, OURS, *kinds[:5], HF_HUB_OFFLINE="1").splitlines()
    assert offline == said[:5]
    assert hub.requests() == []


def test_a_file_that_unpacks_to_gigabytes(hub: LocalHub, small: Path, tmp_path: Path) -> None:
    path = small / "data/gfx90a/gemm/test-00001-of-00002.parquet"
    table = parquet.read_table(path)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 64, pa.int32()), pa.array(["x" * 2**24]))
    place = table.schema.get_field_index("normalized")
    many = pa.concat_tables([table] * 64).combine_chunks().set_column(place, "normalized", texts)
    parquet.write_table(many, path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 200_000
    published(hub, tmp_path, small)
    said = script(hub, tmp_path / "ours", OURS, "load test assign ", "iterate test assign ")
    loaded, iterated = said.splitlines()
    assert loaded.startswith(f"{NAME}: {path.name}: it unpacks to more than the ")
    # One row after the other: the first is none.
    assert iterated.startswith(f"{NAME}: row ")
    assert "the column 'id' is" in iterated


def test_evaluate_at_revisions(hub: LocalHub, small: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, small, "--tag", "v1", "--revision", "next")
    head = look(hub, NAME, "next").head
    revisions = ["v1", "next", head]
    said = [json.loads(line) for line in script(hub, tmp_path, EVALUATE, *revisions).splitlines()]
    assert [each["revision"] for each in said] == revisions
    assert len({each["hash"] for each in said}) == 1


def test_the_hub_is_busy_once(hub: LocalHub, small: Path, tmp_path: Path) -> None:
    published(hub, tmp_path, small)
    for kind in ("GET /api/datasets/.*/regalloc$", "GET .*/resolve/.*parquet"):
        hub.fail(kind, status=429, headers={"Retry-After": "0"})
        hub.fail(kind, status=503)
    hub.fail("GET .*/resolve/.*parquet", "cut", skip=1)
    said = script(hub, tmp_path, OURS, "load test assign ")
    assert len(json.loads(said)) == 4
    shutil.rmtree(tmp_path / "hub")
    hub.fail("GET /api/datasets/", status=418, body="you sent {authorization}", times=9)
    said = script(hub, tmp_path, OURS, "load test assign ")
    assert said.startswith(f"{NAME}: cannot be loaded from the Hub: ")
    assert "hf_" not in said
