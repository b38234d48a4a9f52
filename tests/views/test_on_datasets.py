"""Views of `datasets` objects: maps, streams, caches; and rows as mappings."""

from __future__ import annotations

import json
import logging
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets.fingerprint import Hasher

from tests.model.tiny_models import byte_level_tokenizer
from verilocc_bench.dataset import Row, load_rows, write_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.views import (
    ExampleOutcome,
    TokenizedOptions,
    TokenizedView,
    graph_of,
    tokenize_dataset,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_bars() -> Any:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Small kernels, and one of the split track, which has no label."""
    found = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)[:3]
    return [*found, load_rows("mini", track="split").rows[0]]


@pytest.fixture
def table(rows: list[Row]) -> datasets.Dataset:
    return datasets.Dataset.from_list([asdict(row) for row in rows])


def tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level_tokenizer(),
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
    )


def test_a_map_a_stream_and_the_generator_give_the_same(
    table: datasets.Dataset, rows: list[Row]
) -> None:
    options = TokenizedOptions("window")
    lengths = sorted(len(e.input_ids) for e in TokenizedView(tokenizer(), options).examples(rows))
    options = replace(options, maximum_tokens=lengths[len(lengths) // 2])
    view = TokenizedView(tokenizer(), options)
    expected = [asdict(example) for example in view.examples(rows)]
    counts = view.report.counts
    assert counts[ExampleOutcome.NO_LABEL] == 1
    assert counts[ExampleOutcome.WHOLE] == len(expected) > 10
    assert counts[ExampleOutcome.TOO_LONG] > 5
    mapped, report = tokenize_dataset(table, TokenizedView(tokenizer(), options), batch_rows=2)
    assert mapped.to_list() == expected
    assert report.counts == counts
    streaming = TokenizedView(tokenizer(), options)
    stream, growing = tokenize_dataset(table.to_iterable_dataset(), streaming, batch_rows=3)
    assert growing.counts[ExampleOutcome.WHOLE] == 0
    assert list(stream) == expected
    assert growing.counts == counts


def test_a_stream_of_files(tmp_path: Path, rows: list[Row]) -> None:
    write_parquet(rows, tmp_path / "train.parquet")
    files = {"train": str(tmp_path / "*.parquet")}
    stream = datasets.load_dataset(
        "parquet", data_files=files, split="train", streaming=True, cache_dir=str(tmp_path)
    )
    options = TokenizedOptions("window", block_tokens=2048)
    found, _ = tokenize_dataset(
        stream.shuffle(seed=1, buffer_size=2), TokenizedView(tokenizer(), options)
    )
    blocks = list(found)
    assert blocks
    assert {len(column) for block in blocks for column in block.values()} == {2048}
    assert set(blocks[0]) == {
        "input_ids",
        "attention_mask",
        "labels",
        "position_ids",
        "sequence_ids",
    }


def test_a_report_outlives_the_cache_and_other_processes(
    tmp_path: Path, rows: list[Row], caplog: pytest.LogCaptureFixture
) -> None:
    datasets.Dataset.from_list([asdict(row) for row in rows]).save_to_disk(str(tmp_path / "rows"))
    options = TokenizedOptions("window", maximum_tokens=1500)
    calls: list[int] = []
    reports, lists, files = [], [], []
    for _ in range(2):
        table = datasets.load_from_disk(str(tmp_path / "rows"))
        view = TokenizedView(tokenizer(), options)
        found, report = tokenize_dataset(table, view)
        calls.append(sum(view.report.counts.values()))
        reports.append(report.counts)
        lists.append(found.to_list())
        files.append([file["filename"] for file in found.cache_files])
    assert calls[0] > 0
    assert calls[1] == 0  # taken from the cache
    assert files[0] == files[1] != []
    assert lists[0] == lists[1]
    assert reports[0] == reports[1]
    assert reports[1][ExampleOutcome.TOO_LONG] > 0
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="verilocc_bench.views"):
        tokenize_dataset(table, TokenizedView(tokenizer(), options))
    assert f"{reports[0][ExampleOutcome.TOO_LONG]} too_long, 1 no_label" in caplog.text


def test_fingerprints_are_of_what_decides_and_nothing_else(rows: list[Row]) -> None:
    view = TokenizedView(tokenizer(), TokenizedOptions("window", maximum_tokens=9000))
    before = Hasher.hash(view)
    assert list(view.examples(rows[:1]))
    assert Hasher.hash(view) == before
    assert Hasher.hash(pickle.loads(pickle.dumps(view))) == before
    assert Hasher.hash(TokenizedView(tokenizer(), view.options)) == before
    assert (
        Hasher.hash(TokenizedView(tokenizer(), replace(view.options, maximum_tokens=8000)))
        != before
    )
    words = tokenizer()
    words.add_tokens(["one more"])
    assert Hasher.hash(TokenizedView(words, view.options)) != before
    twin = pickle.loads(pickle.dumps(view))
    assert list(twin.examples(rows[:1])) == list(view.examples(rows[:1]))


def test_what_is_no_split_or_lacks_a_column(table: datasets.Dataset) -> None:
    view = TokenizedView(tokenizer())
    with pytest.raises(InputError, match=r"expected one split, .* not a DatasetDict"):
        tokenize_dataset(datasets.DatasetDict({"train": table}), view)
    without = table.remove_columns(["assignment"])
    for source in (without, without.to_iterable_dataset()):
        with pytest.raises(InputError, match="the column 'assignment' is missing; there are id"):
            tokenize_dataset(source, view)
    with pytest.raises(InputError, match="the column 'normalized' is missing"):
        list(view.examples([{"assignment": "{}"}]))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("normalized", 7, "the column 'normalized' must hold a text"),
        ("normalized", "no such thing\n", "expected the first line of a normalized text"),
        ("assignment", "[]", "the column 'assignment' must hold a JSON object"),
        ("assignment", "{", "expected JSON"),
        ("assignment", '{"%0": 4}', "must hold answers such as"),
    ],
)
def test_rows_that_are_damaged(rows: list[Row], column: str, value: Any, message: str) -> None:
    row = {**asdict(rows[0]), column: value}
    view = TokenizedView(tokenizer(), TokenizedOptions("window"))
    for use in (lambda: list(view.examples([row])), lambda: graph_of(row)):
        with pytest.raises(InputError, match=message) as error:
            use()
        assert rows[0].id in str(error.value)
    assert json.loads(asdict(rows[0])["assignment"])
