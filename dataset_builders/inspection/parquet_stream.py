"""Reads rows of Parquet files a few at a time, and checks the columns of a file."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.dataset.parquet import JSON_COLUMNS
from verilocc_bench.dataset.parquet_batches import open_parquet, parquet_batches
from verilocc_bench.errors import InputError

BATCH_ROWS = 16
"""The rows in memory at once, besides one compressed row group."""

NULLABLE = frozenset(
    name
    for name, hint in get_type_hints(Row).items()
    if get_origin(hint) in (Union, types.UnionType)
)
"""The columns of Row that may be null."""

ParquetColumns = dict[str, tuple[str, bool]]
"""By column: its type, and true if it may be null."""

_ARROW_TYPES = {str: "string", int: "int64", bool: "bool"}


def read_columns(path: Path) -> tuple[ParquetColumns, int]:
    """The columns of a Parquet file and its number of rows. Raises InputError for other files."""
    import pyarrow as pa

    columns: ParquetColumns = {}
    with open_parquet(path) as (_, file):
        for field in file.schema_arrow:
            # JSON may be of its own type or a text.
            is_json = field.name in JSON_COLUMNS and isinstance(field.type, pa.JsonType)
            kind = field.type.storage_type if is_json else field.type
            columns[field.name] = str(kind), field.nullable
        return columns, file.metadata.num_rows


def column_faults(columns: ParquetColumns, row_type: type[Row | RawRow]) -> Iterator[str]:
    """The differences between some columns and the fields of a class of rows."""
    expected: ParquetColumns = {}
    for name, hint in get_type_hints(row_type).items():
        alternatives = [a for a in (get_args(hint) or (hint,)) if a is not types.NoneType]
        expected[name] = _ARROW_TYPES[alternatives[0]], hint not in _ARROW_TYPES
    for name, (kind, nullable) in expected.items():
        found = columns.get(name)
        wanted = f"{kind}{'' if nullable else ' not null'}"
        if found is None:
            yield f"the column {name!r} is missing, expected {wanted}"
        elif found != (kind, nullable):
            is_there = f"{found[0]}{'' if found[1] else ' not null'}"
            yield f"the column {name!r} is {is_there}, expected {wanted}"
    for name in columns:
        if name not in expected:
            yield f"the column {name!r} does not belong to {row_type.__name__}"
    if set(columns) == set(expected) and list(columns) != list(expected):
        yield f"the columns are not in the order of {row_type.__name__}"


def stream_rows(
    path: Path, columns: list[str] | None = None, size: int = BATCH_ROWS
) -> Iterator[list[dict[str, Any]]]:
    """The rows of a file in order, at most `size` at a time. InputError as in `read_columns`."""
    for table in parquet_batches(path, columns, size):
        try:
            yield table.to_pylist()
        except UnicodeDecodeError:
            raise InputError("it has text that is not UTF-8", source=path) from None
