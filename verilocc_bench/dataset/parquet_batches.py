"""Reads Parquet files a few rows at a time, in bounded memory whatever they contain.

Half a megabyte can hold gigabytes: well-packed pages, one long value that every
row repeats, or empty rows. The reader does not trust the sizes in the footer. It
first reads the headers of all pages (dataset.parquet_pages), which bound the
memory for unpacking. It then reads so few rows at once that even rows of the
longest possible value fit into memory, and counts their bytes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from verilocc_bench.dataset.parquet_pages import PLAIN, SHARED_PREFIXES, PageError, pages_of
from verilocc_bench.errors import InputError
from verilocc_bench.files import MIB, open_input

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

FLOOR_BYTES = 256 * MIB
RATIO = 200
"""A file may unpack to 256 MiB plus 200 times its size; the released ones to 5 to 20 times."""

MEMORY_BYTES = 4096 * MIB
"""The most bytes of rows that are held at once."""

ROW_BYTES = 8192
"""The bytes that a row counts beside its text: half the bytes of a small kernel's row."""

LENGTHS_BYTES = 16
"""The bytes of a value's lengths in encodings that unpack those of a whole page at once."""

ELEMENT_BYTES = 256
"""The bytes that an element of a list counts beside its text."""

GROUP_BYTES = 1024 * MIB
"""The most bytes of a row group's columns in the file, and of their largest pages unpacked."""

BATCH_BYTES = 256 * MIB
BATCH_ROWS = 64
PAGES = 200_000
FOOTER_STRINGS_BYTES = 16 * MIB
FOOTER_ELEMENTS = 100_000


@dataclass(slots=True)
class MemoryBudget:
    """The bytes that further rows may have, and their limit in words."""

    left_bytes: int = MEMORY_BYTES
    limit: str = f"{MEMORY_BYTES // MIB:,} MiB of rows at once"

    def spend(self, count: int, source: str | Path) -> None:
        """Takes bytes from the budget. Raises InputError about `source` if too few are left."""
        self.left_bytes -= count
        if self.left_bytes < 0:
            raise InputError(f"it unpacks to more than the {self.limit}", source=source)


@contextmanager
def open_parquet(path: Path) -> Iterator[tuple[BinaryIO, parquet.ParquetFile]]:
    """Opens a regular file as bytes and as Parquet. Raises InputError for errors of reading it."""
    import pyarrow as pa
    from pyarrow import parquet

    with open_input(path) as file:
        try:
            # Read column by column and page by page: a column may be as long as the file.
            opened = parquet.ParquetFile(
                file,
                buffer_size=MIB,
                pre_buffer=False,
                page_checksum_verification=True,
                thrift_string_size_limit=FOOTER_STRINGS_BYTES,
                thrift_container_size_limit=FOOTER_ELEMENTS,
            )
            yield file, opened
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise InputError(f"expected a Parquet file: {reason}", source=path) from None


def parquet_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    size: int = BATCH_ROWS,
    lists: pyarrow.DataType | None = None,
) -> Iterator[pyarrow.Table]:
    """The rows of a file in order, at most `size` at a time.

    `columns` selects columns; it may name columns that the file does not have. Columns may
    have the type `lists`, too.
    Raises InputError for a file that is not Parquet or unpacks to too much.
    """
    import pyarrow as pa

    with open_parquet(path) as (file, opened):
        names = _names(opened, columns, path, lists)
        rows = min(size, _rows_at_once(file, opened, names, path, lists is not None))
        budget = _budget_of(file)
        metadata = opened.metadata
        groups = [n for n in range(metadata.num_row_groups) if metadata.row_group(n).num_rows]
        if not groups:
            yield opened.schema_arrow.empty_table().select(names)
        for batch in opened.iter_batches(batch_size=rows, row_groups=groups, columns=names):
            arrays = [
                column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                for column in batch.columns
            ]
            table = pa.Table.from_arrays(arrays, names=batch.schema.names)
            budget.spend(table.nbytes + ROW_BYTES * batch.num_rows, path)
            yield table


def _budget_of(file: BinaryIO) -> MemoryBudget:
    file_bytes = file.seek(0, os.SEEK_END)
    limit = FLOOR_BYTES + RATIO * file_bytes
    return MemoryBudget(limit, f"{limit:,} bytes accepted of a file of {file_bytes:,}")


def check_parquet(path: Path) -> int:
    """The rows that any reader may read at once. Raises InputError like parquet_batches."""
    for _ in parquet_batches(path):
        pass
    with open_parquet(path) as (file, opened):
        return _rows_at_once(file, opened, _names(opened, None, path), path)


def _names(
    opened: parquet.ParquetFile,
    columns: Sequence[str] | None,
    path: Path,
    lists: pyarrow.DataType | None = None,
) -> list[str]:
    """The requested columns that exist, or all. Raises InputError for an unaccepted type."""
    schema = opened.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise InputError("two columns have one name", source=path)
    names = [name for name in schema.names if columns is None or name in columns]
    for name in names:
        if lists is not None and "." in name:
            raise InputError(f"the column's name {name[:60]!r} has a dot", source=path)
        if lists is None or schema.field(name).type != lists:
            _check_type(name, schema.field(name).type, path)
    return names


def _check_type(name: str, kind: pyarrow.DataType, path: Path) -> None:
    """Raises InputError unless a column holds text, JSON, whole numbers or truth values.

    A single value of a list could have any length.
    """
    from pyarrow import JsonType, types

    plain = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_integer,
        types.is_boolean,
        types.is_null,
    )
    value = kind.value_type if types.is_dictionary(kind) else kind
    value = kind.storage_type if isinstance(kind, JsonType) else value
    if not any(is_plain(value) for is_plain in plain):
        raise InputError(
            f"the column {name!r} must be of text, whole numbers or booleans, not of type "
            f"{str(kind)[:60]}",
            source=path,
        )


def _rows_at_once(
    file: BinaryIO,
    opened: parquet.ParquetFile,
    names: Sequence[str],
    path: Path,
    has_lists: bool = False,
) -> int:
    """The rows of these columns that surely fit into BATCH_BYTES.

    No value is longer than its page; a list may have all pages of its column, and no value of a
    dictionary or with the beginning of another, of which few bytes could make many. Raises
    InputError if the pages of a row group are too large to read.
    """
    metadata = opened.metadata
    largest = count = total = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stored = unpacked = 0
        for place in range(group.num_columns):
            chunk = group.column(place)
            name, inner = chunk.path_in_schema, ""
            if has_lists:
                name, _, inner = name.partition(".")
            if name not in names:
                continue
            start = chunk.data_page_offset
            # Without rows the data page is missing, and its offset is 0; nothing is read then.
            last = start if group.num_rows else math.inf
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < last:
                start = chunk.dictionary_page_offset
            longest = 0
            try:
                for page in pages_of(file, start, chunk.total_compressed_size):
                    if inner and (page.is_dictionary or page.encoding == SHARED_PREFIXES):
                        form = "a dictionary" if page.is_dictionary else "shared prefixes"
                        raise InputError(f"the lists {name!r} have {form}", source=path)
                    size = page.unpacked_bytes
                    if inner or page.encoding not in PLAIN:
                        size += page.values * (ELEMENT_BYTES if inner else LENGTHS_BYTES)
                    total += size
                    longest = longest + size if inner else max(longest, size)
                    count += 1
                    if count > PAGES:
                        raise InputError(f"more than the {PAGES:,} pages accepted", source=path)
            except PageError as error:
                raise InputError(f"expected a Parquet file: {error}", source=path) from None
            stored += chunk.total_compressed_size
            unpacked += longest
        if max(stored, unpacked) > GROUP_BYTES:
            raise InputError(
                f"row group {number} has {stored:,} bytes, with pages that unpack to "
                f"{unpacked:,}: more than the {GROUP_BYTES:,} accepted",
                source=path,
            )
        largest = max(largest, unpacked)
    # Rows repeat what pages hold once, so their bytes are counted again when they are read.
    _budget_of(file).spend(total, path)
    return max(1, BATCH_BYTES // max(largest, 1))
