"""Rows in Parquet files: their schema, and how they are written and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from verilocc_bench.dataset.parquet_batches import MemoryBudget, parquet_batches
from verilocc_bench.dataset.rows import BEST_COLUMNS, RawRow, Row
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically

if TYPE_CHECKING:
    import pyarrow

RowType = TypeVar("RowType", Row, RawRow)

_NULLABLE = {"assignment", "registers_used", "occupancy", "bank_conflicts", *BEST_COLUMNS}
_LATER = {"best_certificate", "best_bank_conflicts", "bank_conflicts"}
"""Columns that datasets of earlier versions lack; they are read as nulls."""

_INTEGERS = {
    "n_blocks",
    "n_instructions",
    "n_virtual_registers",
    "occupancy",
    "best_registers_used",
    "best_lower_bound",
    "bank_conflicts",
    "best_bank_conflicts",
}
_BOOLEANS = {"best_is_optimal"}
JSON_COLUMNS = frozenset(
    {
        "params",
        "assignment",
        "alternatives",
        "best_assignment",
        "best_certificate",
        "pressure",
        "registers_used",
        "provenance",
    }
)
"""The columns with JSON: of the type JSON, for which `datasets` gives objects, or plain text."""

# Raw text is five times as long and read rarely, so it is not worth minutes of packing.
_COMPRESSION_LEVELS: dict[type[Row | RawRow], int] = {Row: 19, RawRow: 9}


def _schema(row_type: type[Row | RawRow], *, old_layout: bool = True) -> pyarrow.Schema:
    import pyarrow as pa

    types = dict.fromkeys(_INTEGERS, pa.int64()) | dict.fromkeys(_BOOLEANS, pa.bool_())
    if not old_layout:
        types |= dict.fromkeys(JSON_COLUMNS, pa.json_())
    return pa.schema(
        [
            pa.field(f.name, types.get(f.name, pa.string()), nullable=f.name in _NULLABLE)
            for f in fields(row_type)
        ]
    )


def write_parquet(
    rows: Sequence[Row] | Sequence[RawRow], path: Path, *, old_layout: bool = False
) -> None:
    """Writes rows as one Parquet file; the same rows give the same bytes.

    In the old layout JSON is plain text, and pages have no index. The texts are the same.
    """
    import pyarrow as pa

    assert rows
    schema = _schema(type(rows[0]), old_layout=old_layout)
    columns = zip(*(astuple(row) for row in rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    save_table(
        pa.Table.from_arrays(arrays, schema=schema),
        path,
        level=_COMPRESSION_LEVELS[type(rows[0])],
        dictionaries=["family", "arch", "kernel", "track", "label_source", "license"]
        if isinstance(rows[0], Row)
        else ["format"],
        index=not old_layout,
    )


def save_table(
    table: pyarrow.Table, path: Path, *, level: int, dictionaries: list[str], index: bool = True
) -> None:
    """Writes an Arrow table as one Parquet file: the same bytes for the same table.

    The columns `dictionaries` have few values; `index` has the first row of each page, for
    readers that fetch some rows of a file.
    """
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=level,
        row_group_size=256,
        write_page_checksum=True,
        write_page_index=index,
        use_dictionary=dictionaries,
    )
    write_atomically(path, sink.getvalue().to_pybytes())


def read_parquet(path: Path, row_type: type[RowType]) -> list[RowType]:
    """The rows of a Parquet file. Raises InputError like iterate_parquet."""
    return list(iterate_parquet(path, row_type, MemoryBudget()))


def iterate_parquet(
    path: Path, row_type: type[RowType], memory: MemoryBudget | None = None
) -> Iterator[RowType]:
    """The rows of a Parquet file one by one, without holding all of them.

    Raises InputError if the file is not Parquet, lacks columns or unpacks to too
    much, and if the budget `memory` is used up.
    """
    for table in parquet_batches(path, [field.name for field in fields(row_type)]):
        if memory is not None:
            memory.spend(table.nbytes, path)
        yield from rows_from_table(table, row_type, path)


def rows_from_table(
    table: pyarrow.Table, row_type: type[RowType], source: str | Path
) -> list[RowType]:
    """The rows of an Arrow table that has at least the columns of `row_type`.

    Raises InputError if a column has another type, or if one is missing that
    datasets of earlier versions have, too.
    """
    import pyarrow as pa

    columns: list[list[Any]] = []
    for field in _schema(row_type):
        if field.name not in table.column_names:
            if field.name in _LATER:
                columns.append([None] * table.num_rows)
                continue
            raise InputError(f"the column {field.name!r} is missing", source=source)
        column = table.column(field.name)
        try:
            column = column.cast(field.type)
        except (pa.ArrowException, ValueError):
            raise InputError(
                f"the column {field.name!r} must be of type {field.type}, not {column.type}",
                source=source,
            ) from None
        if column.null_count and not field.nullable:
            raise InputError(f"the column {field.name!r} has nulls", source=source)
        try:
            columns.append(column.to_pylist())
        except UnicodeDecodeError:
            raise InputError(
                f"the column {field.name!r} has text that is not UTF-8", source=source
            ) from None
    return [row_type(*values) for values in zip(*columns, strict=True)]
