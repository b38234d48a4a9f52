"""Parquet files of strangers: read within bounds, whatever they say of themselves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from verilocc_bench.cli import main
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.dataset import parquet_batches as bounded
from verilocc_bench.dataset.parquet import iterate_parquet
from verilocc_bench.dataset.parquet_batches import MemoryBudget, check_parquet, parquet_batches
from verilocc_bench.dataset.parquet_pages import PageError, pages_of
from verilocc_bench.errors import InputError

FILES = sorted(embedded_path().rglob("*.parquet"))
ROW = load_rows("mini").rows[0]


def raw_rows(path: Path, content: Any, **options: Any) -> Path:
    count = len(content)
    columns = {
        "id": pa.array(["0" * 16] * count),
        "format": pa.array(["mir"] * count),
        "content": content,
    }
    parquet.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[-4:-1]))
def test_headers_say_what_the_footer_of_an_honest_file_says(path: Path) -> None:
    metadata = parquet.ParquetFile(path).metadata
    with path.open("rb") as file:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for place in range(group.num_columns):
                chunk = group.column(place)
                start = min(
                    chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset
                )
                pages = list(pages_of(file, start, chunk.total_compressed_size))
                assert sum(page.stored_bytes for page in pages) == chunk.total_compressed_size
                # The footer counts headers as well, unpacked or not.
                unpacked = sum(page.unpacked_bytes for page in pages)
                assert 0 <= chunk.total_uncompressed_size - unpacked <= 16_384 * len(pages)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_every_kind_are_found(version: str, tmp_path: Path) -> None:
    texts = [f"text {n} {'x' * (n % 97)}" for n in range(3000)]
    path = raw_rows(
        tmp_path / "pages.parquet",
        pa.array([*texts, None]),
        data_page_version=version,
        data_page_size=1000,
        use_dictionary=["format"],
        column_encoding={"content": "DELTA_BYTE_ARRAY", "id": "PLAIN"},
        write_page_checksum=True,
    )
    found = [each for table in parquet_batches(path) for each in table["content"].to_pylist()]
    assert found == [*texts, None]


@pytest.mark.parametrize(
    "data", [b"", b"\x15", b"\xff" * 100, b"\x1c" * 100, b"\x19\xf5\xff\xff\xff\xff\x0f", bytes(64)]
)
def test_what_is_no_header(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "header"
    path.write_bytes(data)
    with path.open("rb") as file, pytest.raises(PageError):
        list(pages_of(file, 0, 64))


def test_rows_are_those_that_were_written() -> None:
    for path in FILES:
        row_type: Any = RawRow if "raw" in path.parts else Row
        assert [vars(row) for row in iterate_parquet(path, row_type)] == parquet.ParquetFile(
            path
        ).read().to_pylist()


def test_groups_without_rows_are_no_error(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b"], "count": [1, 2]})
    path = tmp_path / "x.parquet"
    parquet.write_table(table.slice(0, 0), path)
    (batch,) = parquet_batches(path)
    assert batch.schema.names == ["text", "count"]
    assert batch.num_rows == 0
    assert check_parquet(path) > 0
    with parquet.ParquetWriter(path, table.schema) as writer:
        for part in (table.slice(0, 1), table.slice(0, 0), table.slice(1, 1)):
            writer.write_table(part)
    assert parquet.ParquetFile(path).num_row_groups == 3
    assert [t for batch in parquet_batches(path) for t in batch["text"].to_pylist()] == ["a", "b"]
    assert check_parquet(path) > 0


def test_one_long_text_that_every_row_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of kilobytes that holds 2 GB: none of it is in memory for long."""
    monkeypatch.setattr(bounded, "FLOOR_BYTES", 64 << 20)
    monkeypatch.setattr(bounded, "BATCH_BYTES", 32 << 20)
    text = pa.array(["x" * (4 << 20)])
    content = pa.DictionaryArray.from_arrays(pa.array([0] * 512, pa.int32()), text)
    path = raw_rows(
        tmp_path / "bomb.parquet", content, compression="zstd", dictionary_pagesize_limit=1 << 30
    )
    assert path.stat().st_size < 100_000
    before = pa.default_memory_pool().max_memory()
    found: list[str] = []
    with pytest.raises(InputError, match=r"unpacks to more than the [\d,]+ bytes accepted"):
        found.extend(row.id for row in iterate_parquet(path, RawRow))
    assert len(found) == 14
    assert pa.default_memory_pool().max_memory() - before < 256 << 20


def test_many_rows_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "FLOOR_BYTES", 1 << 20)
    path = raw_rows(tmp_path / "bomb.parquet", pa.array([""] * 100_000))
    with pytest.raises(InputError, match="unpacks to more"):
        read_parquet(path, RawRow)
    monkeypatch.setattr(bounded, "GROUP_BYTES", 1 << 18)
    delta = {"use_dictionary": False, "column_encoding": {"content": "DELTA_BYTE_ARRAY"}}
    path = raw_rows(tmp_path / "lengths.parquet", pa.array([""] * 100_000), **delta)
    with pytest.raises(InputError, match="pages that unpack to 861,608"):
        read_parquet(path, RawRow)


def test_prefixes_that_every_text_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta encoding repeats a long text without a dictionary."""
    monkeypatch.setattr(bounded, "FLOOR_BYTES", 32 << 20)
    path = raw_rows(
        tmp_path / "bomb.parquet",
        pa.array(["y" * (1 << 20)] * 64),
        use_dictionary=False,
        compression="zstd",
        column_encoding={"content": "DELTA_BYTE_ARRAY"},
    )
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match="unpacks to more"):
        read_parquet(path, RawRow)


def test_pages_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = raw_rows(tmp_path / "large.parquet", pa.array(["z" * (2 << 20)]), compression="zstd")
    assert len(read_parquet(path, RawRow)) == 1
    monkeypatch.setattr(bounded, "GROUP_BYTES", 2 << 20)
    with pytest.raises(InputError, match=r"row group 0 has .* pages that unpack to 2,0"):
        read_parquet(path, RawRow)


def test_rows_that_are_held_together_have_a_limit(tmp_path: Path) -> None:
    path = raw_rows(tmp_path / "rows.parquet", pa.array(["z" * 1000] * 100))
    assert len(list(iterate_parquet(path, RawRow))) == 100
    with pytest.raises(InputError, match="MiB of rows at once"):
        list(iterate_parquet(path, RawRow, MemoryBudget(50_000)))


def test_columns_that_are_no_text(tmp_path: Path) -> None:
    path = raw_rows(tmp_path / "nested.parquet", pa.array([["a"] * 3]))
    with pytest.raises(InputError, match=r"'content' must be of text.* not of type list"):
        read_parquet(path, RawRow)
    path = raw_rows(tmp_path / "bytes.parquet", pa.array([b"\xff"]).view(pa.string()))
    with pytest.raises(InputError, match="'content' has text that is not UTF-8"):
        read_parquet(path, RawRow)


def test_a_pipe_among_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data" / "gfx90a" / "gemm"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "test-00000-of-00001.parquet")
    assert main(["evaluate", "--model", "linear-scan", "--dataset", str(tmp_path)]) == 2
    assert "expected a file, this is a device or a pipe" in capsys.readouterr().err
