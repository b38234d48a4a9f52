"""The card: a head that the Hub reads, examples that run, figures that are true."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import sys
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import DatasetCard, DatasetCardData
from markdown_it import MarkdownIt

from dataset_builders.release.card import dataset_card, write_card
from dataset_builders.release.card_text import card_words
from dataset_builders.release.citation import bibtex, read_citation
from dataset_builders.statistics import PLOTS, DatasetStatistics, statistics_of
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.cli import main
from verilocc_bench.dataset import (
    RawRow,
    Row,
    embedded_path,
    load_rows,
    read_parquet,
    write_parquet,
)
from verilocc_bench.errors import MissingExtraError
from verilocc_bench.views.chat import chat_file, write_chat

MANIFEST = json.loads((embedded_path() / "manifest.json").read_text())
NOTHING = DatasetStatistics((), {}, None, {})
DEFAULT = MANIFEST | {"sweep": "default", "every": 7, "limit": 75, "beside": "0"}
NAME = "verilocc/regalloc"
PLACES = {
    "gfx90a": ("train", "validation", "test"),
    "gfx942": ("train", "test_unseen_tile_shape"),
    "sm_80": ("test", "test_unseen_tile_shape", "test_larger"),
}


def write_rows(folder: Path, row: Row, split: str) -> None:
    name = f"{row.arch}/{row.family}/{split}-00000-of-00001.parquet"
    base = "data" if row.track == "assign" else "split"
    write_parquet([row], folder / base / name)
    if (chat := chat_file(Path(base, name))) is not None:
        write_chat([row], folder / chat)
    write_parquet([RawRow(row.id, "mir", "")], folder / "raw" / base / name)


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder of small rows of `mini`, in splits of its own, with a card."""
    small = {
        (row.track, row.arch, row.family): row
        for track in ("split", "assign")
        for row in reversed(load_rows("mini", track=track).rows)
    }
    folder = tmp_path_factory.mktemp("dataset")
    for (track, arch, _), row in small.items():
        for split in PLACES[arch] if track == "assign" else ("train",):
            write_rows(folder, row, split)
    (folder / "rejected.jsonl").write_text('{"kind":"duplicate","reason":"…"}\n')
    write_card(folder, DEFAULT, NAME)
    return folder


@pytest.fixture(name="copy")
def _copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.fixture(name="card", scope="module")
def _card(folder: Path) -> str:
    return (folder / "README.md").read_text()


@pytest.fixture(name="embedded_card", scope="module")
def _embedded_card() -> str:
    statistics = statistics_of(embedded_path())
    counts = Counter(
        ("data" if r.track == "assign" else "split", r.arch, r.family, r.split)
        for r in statistics.rows
    )
    return dataset_card(counts, MANIFEST, statistics=statistics)


def blocks(card: str, language: str) -> list[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(card.split("---\n", 2)[2])
    return [t.content for t in tokens if t.type == "fence" and t.info == language]


def test_the_hub_reads_the_head(card: str, embedded_card: str) -> None:
    for text in (card, embedded_card):
        data = DatasetCard(text).data
        assert isinstance(data, DatasetCardData)
        assert (data.license, data.language) == ("apache-2.0", ["code"])
        assert data.size_categories == ["n<1K"]
        assert data.task_categories == ["text-generation"]
        assert [c["config_name"] for c in data.configs or () if c.get("default")] == ["default"]


def test_the_head_takes_the_licences_and_the_size_of_the_rows(copy: Path) -> None:
    (row,) = read_parquet(copy / "data/sm_80/mha/test-00000-of-00001.parquet", Row)
    rows = [replace(row, id=str(i), license="MIT", normalized="") for i in range(1000)]
    write_parquet(rows, copy / "data/sm_80/mha/train-00000-of-00001.parquet")
    statistics = statistics_of(copy)
    counts = {("data", "sm_80", "mha", "train"): len(statistics.rows)}
    text = dataset_card(counts, DEFAULT, statistics=statistics)
    assert DatasetCard(text).data.license == ["apache-2.0", "mit"]
    assert DatasetCard(text).data.size_categories == ["1K<n<10K"]
    assert "Apache-2.0 and MIT, as the sources" in text


@pytest.mark.slow
def test_every_config_and_split_loads_and_the_examples_run(
    folder: Path, card: str, embedded_card: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    examples, of_mini = blocks(card, "python"), blocks(embedded_card, "python")
    assert (len(examples), len(of_mini)) == (4, 1)
    found: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()) as said:
        exec("\n".join([*of_mini, *examples]).replace(NAME, str(folder)), found)
    assert said.getvalue().count("target gfx") == 2
    assert {row["arch"] for row in found["train"]} == {"gfx90a"}
    assert {row["arch"] for row in found["test"]} == {"sm_80"}
    assert found["rows"].info.config_name == "sm_80"
    assert len(found["rows"]) == 2
    loaded = {
        name: {s: len(r) for s, r in datasets.load_dataset(str(folder), name).items()}
        for name in datasets.get_dataset_config_names(str(folder))
    }
    assert loaded["default"] == dict.fromkeys(
        ("train", "validation", "test", "test_unseen_tile_shape", "test_larger"), 0
    ) | {"train": 4, "validation": 2, "test": 4, "test_unseen_tile_shape": 4, "test_larger": 2}
    assert loaded["gfx942"] == {"train": 2, "test_unseen_tile_shape": 2}
    assert loaded["mha"]["test"] == 2
    assert set(loaded["split"]) == {"train"}
    assert list(loaded["chat"]) == ["train", "validation"]
    totals = {name: sum(found.values()) for name, found in loaded.items()}
    assert totals["raw"] == totals["default"] + totals["split"]
    assert list(loaded["default"]) == [s for s in SPLITS if s in loaded["default"]]


def test_the_commands_are_understood(
    folder: Path, card: str, embedded_card: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        line for text in (card, embedded_card) for b in blocks(text, "") for line in b.split("\n")
    ]
    evaluations = [line for line in lines if line.startswith("verilocc-bench evaluate")]
    assert len(evaluations) == 3
    for line in evaluations:
        command = re.sub(rf"{NAME}|\./regalloc", str(folder), line)
        assert main([*shlex.split(command)[1:], "--limit", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["results"]["overall"]["pass@1"] == 1
    builds = [line for line in lines if line.startswith("verilocc-bench build")]
    assert builds == [
        f"verilocc-bench build --sweep {sweep} --arch gfx90a,gfx942,sm_80,sm_90{more} --output DIR"
        for sweep, more in (("default", " --every 7 --limit 75 --beside DATASET"), ("mini", ""))
    ]


def test_every_column_is_explained(card: str) -> None:
    columns, raw_columns = card_words()["columns"], card_words()["raw_columns"]
    assert list(columns) == [field.name for field in fields(Row)]
    assert list(raw_columns) == [field.name for field in fields(RawRow)]
    for name, text in (columns | raw_columns).items():
        assert re.search(rf"^\| `{name}` +\| {re.escape(text)} +\|$", card, re.M), name


def cells(card: str, title: str) -> list[list[str]]:
    """The first table of a section, without its rule."""
    section = card.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.split("\n") if line.startswith("|")]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if "--" not in line
    ]


def test_the_counts_add_up(card: str, embedded_card: str) -> None:
    assert cells(embedded_card, "Rows")[1:] == [
        ["assign", "test", "9", "8", "9", "8", "12", "14", "3", "3", "66"],
        ["split", "test", "1", "2", "1", "2", "1", "2", "–", "–", "9"],
        ["all", "", "10", "10", "10", "10", "13", "16", "3", "3", "75"],
    ]
    table = cells(card, "Rows")
    assert table[0] == [
        *("track", "split", "gfx90a gemm", "gfx90a mha", "gfx942 gemm", "gfx942 mha"),
        *("sm_80 gemm", "sm_80 mha", "all"),
    ]
    assert table[1] == ["assign", "train", "1", "1", "1", "1", "–", "–", "4"]
    assert table[-1][-1] == "22"


def test_conversations_are_described_where_there_are_any(card: str, embedded_card: str) -> None:
    assert "`train`, `validation` as conversations" in dict(cells(card, "Configs"))["`chat`"]
    assert "`chat`" not in embedded_card
    assert 'print(rows[0]["assignment"])' in card
    assert 'print(json.loads(rows[0]["assignment"]))' in dataset_card(
        {("data", "sm_80", "mha", "test"): 1}, MANIFEST, statistics=NOTHING
    )


def test_splits_are_described_where_there_are_rows(card: str, embedded_card: str) -> None:
    described = {row[0].strip("`"): row[1] for row in cells(card, "Splits")[1:]}
    present = [s for s in SPLITS if any(s in places for places in PLACES.values())]
    assert described == {split: SPLITS[split] for split in present}
    assert "All rows are `test`" in embedded_card
    assert "test_larger" not in embedded_card
    assert "validation" not in embedded_card


def test_what_is_not_known_is_not_said(card: str, embedded_card: str) -> None:
    for text in (card, embedded_card):
        assert "None" not in text
        assert "doi" not in text
        assert "plots/" not in text
        assert "Distance to the nearest row of train" not in text
        assert not re.search(r"\n{3}|[^\S\n]\n", text.split("---\n", 2)[2])
        assert not re.search(r"\d{4}-\d{2}-\d{2}", text)
    assert "| duplicate |        1 |" in card
    assert "every one gave a row" in embedded_card


def test_only_what_concerns_its_vendors() -> None:
    rows = {("data", "gfx942", "gemm", "train"): 3}
    amd = dataset_card(rows, DEFAULT | {"archs": ["gfx942"]}, statistics=NOTHING)
    assert "LLVM's\ngreedy" in amd
    assert "ptxas is closed" not in amd
    assert card_words()["limits"]["nvidia"][:40] not in amd
    nvidia = dataset_card({("data", "sm_80", "mha", "test"): 3}, MANIFEST, statistics=NOTHING)
    assert "greedy allocator chose" not in nvidia
    assert "`split`" not in "".join(cells(nvidia, "Configs")[-2])


def test_a_large_dataset_has_plots(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    monkeypatch.setattr("dataset_builders.release.card.FEWEST_ROWS_FOR_PLOTS", 22)
    written = write_card(copy, DEFAULT)
    linked = re.findall(r"!\[[^\]\n]+\]\((plots/[^)]+)\)", (copy / "README.md").read_text())
    assert linked == [f"plots/{n}" for n in ("splits.png", "sizes.png", "registers.png")]
    assert sorted(map(str, written)) == sorted([*linked, "README.md"])
    assert {p.name for p in (copy / "plots").iterdir()} == set(PLOTS) - {"distances.png"}


def test_a_small_dataset_needs_no_matplotlib(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert write_card(copy, DEFAULT) == [Path("README.md")]
    monkeypatch.setattr("dataset_builders.release.card.FEWEST_ROWS_FOR_PLOTS", 22)
    with pytest.raises(MissingExtraError, match="plot"):
        write_card(copy, DEFAULT)


def test_leakage_is_told(copy: Path) -> None:
    summary = {"rows": 2, "minimum_distance": 0.125, "median_distance": 0.25}
    document = {
        "summary": {"test": {**summary, "share_below": {"0.1": 0.0, "0.2": 0.5}}},
        "rows": [],
        "embedded": {**summary, "share_below": {"0.1": 0.0, "0.2": 1.0}},
    }
    (copy / "leakage.json").write_text(json.dumps(document))
    write_card(copy, DEFAULT)
    text = (copy / "README.md").read_text()
    assert cells(text, "Duplicates and leakage")[:3] == [
        ["split", "rows", "least", "median", "below 0.1", "below 0.2"],
        ["test", "2", "0.125", "0.250", "0.0 %", "50.0 %"],
        ["mini", "2", "0.125", "0.250", "0.0 %", "100.0 %"],
    ]


def test_the_same_card_every_time(folder: Path, card: str) -> None:
    write_card(folder, DEFAULT, NAME)
    assert (folder / "README.md").read_text() == card


def test_a_doi_only_where_there_is_one() -> None:
    rows = {("data", "gfx942", "gemm", "train"): 3}
    text = dataset_card(rows, DEFAULT | {"doi": "10.5281/zenodo.1"}, statistics=NOTHING)
    (software,) = re.findall(r"@software\{.*?\n\}", text, re.S)
    assert "  doi = {10.5281/zenodo.1}," in software
    assert text.count("10.5281/zenodo.1") == 1


def test_bibtex_has_what_the_citation_has() -> None:
    citation = read_citation()
    text = bibtex(citation, None)
    assert text.count("{") == text.count("}")
    entries = dict(re.findall(r"^@(\w+)\{([^,]+),$", text, re.M))
    assert entries == {"software": "verilocc-bench", "inproceedings": "jin2025verilocc"}
    values = dict(re.findall(r"^  (\w+) = \{(.*)\},$", text.split("@inproceedings")[1], re.M))
    (paper,) = citation["references"]
    assert values["title"] == paper["title"]
    assert values["eprint"] == "2506.17506"
    assert values["pages"] == f"{paper['start']}--{paper['end']}"
    assert values["author"].split(" and ")[1] == "Ruan, Zhenyuan"
    assert len(values["author"].split(" and ")) == len(paper["authors"])


def test_the_repository_is_named() -> None:
    rows = {("data", "gfx942", "gemm", "train"): 3}
    text = dataset_card(rows, DEFAULT, statistics=NOTHING, repository="someone/else")
    assert "hf download someone/else " in text
    assert NAME not in text
    assert "@" not in text.split("## Cite")[0]


def test_the_document_says_the_same() -> None:
    text = (Path(__file__).parents[2] / "docs" / "dataset.md").read_text()
    for name, meaning in (card_words()["columns"] | SPLITS).items():
        assert f"| `{name}` | {meaning} |\n" in text
