"""Rows of the dataset: their columns, their Parquet files, and a check against the text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from verilocc_bench.dataset.parquet import MemoryBudget, parquet_batches
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, write_atomically
from verilocc_bench.ir import instance_id

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Row:
    """One kernel: an allocation problem with the compiler's answer.

    JSON columns are canonical JSON text. On the split track the compiler split
    live ranges: `assignment` is None, and `registers_used` still has the registers
    that it used.

    `best_assignment` is an answer better than the compiler's: fewer vector
    registers, or as many and a smaller combined cost, and never a lower occupancy.
    `best_source` names the method that found it. Both are None if no better answer
    is known. The other `best_` columns describe the best known answer, which may be
    the compiler's: its vector registers; a lower bound on them for any allocation;
    true if the two are equal; the proof of the bound, as JSON
    (analysis.lower_bounds.json_form); its bank conflicts. `bank_conflicts` are
    those of the label. All of these are None on the split track.

    `group` is the sweep group. Rows of one `cluster` (named by one of their ids)
    are nearly the same function. Splits keep both whole.
    """

    id: str
    family: str
    arch: str
    kernel: str
    params: str
    track: str
    normalized: str
    assignment: str | None
    label_source: str
    alternatives: str
    best_assignment: str | None
    best_source: str | None
    best_registers_used: int | None
    best_lower_bound: int | None
    best_is_optimal: bool | None
    best_certificate: str | None
    best_bank_conflicts: int | None
    group: str
    cluster: str
    n_blocks: int
    n_instructions: int
    n_virtual_registers: int
    pressure: str
    registers_used: str | None
    occupancy: int | None
    bank_conflicts: int | None
    license: str
    provenance: str

    @cached_property
    def label(self) -> dict[str, str] | None:
        """The compiler's own answer; None on the split track."""
        return None if self.assignment is None else self._json("assignment", self.assignment)

    @cached_property
    def best_label(self) -> dict[str, str] | None:
        """An answer better than the compiler's, or None."""
        text = self.best_assignment
        return None if text is None else self._json("best_assignment", text)

    @cached_property
    def other_labels(self) -> dict[str, dict[str, str]]:
        """Further answers by source."""
        return self._json("alternatives", self.alternatives)

    def _json(self, column: str, text: str) -> dict[str, Any]:
        value = parse_json(text, f"row {self.id}, column {column}")
        if not isinstance(value, dict):
            raise InputError(f"row {self.id}: column {column!r} must hold a JSON object")
        return value


@dataclass(frozen=True)
class RawRow:
    """A kernel's machine IR, or its cubin on sm_80; lowering needs it, learning does not."""

    id: str
    format: str
    content: str


RowType = TypeVar("RowType", Row, RawRow)

BEST_COLUMNS = tuple(field.name for field in fields(Row) if field.name.startswith("best_"))
"""The columns about the best known answer."""

RELEASE_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(BEST_COLUMNS),
    "bank_conflicts": None,
    "cluster": "",
}
"""The columns that the release of a dataset fills in, with their values until then."""

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
# Raw text is five times as long and read rarely, so it is not worth minutes of packing.
_COMPRESSION_LEVELS: dict[type[Row | RawRow], int] = {Row: 19, RawRow: 9}


def _schema(row_type: type[Row | RawRow]) -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(
                f.name,
                _arrow_type(f.name),
                nullable=f.name in _NULLABLE,
            )
            for f in fields(row_type)
        ]
    )


def _arrow_type(column: str) -> pyarrow.DataType:
    import pyarrow as pa

    if column in _INTEGERS:
        return pa.int64()
    return pa.bool_() if column in _BOOLEANS else pa.string()


def write_parquet(rows: Sequence[Row] | Sequence[RawRow], path: Path) -> None:
    """Writes rows as one Parquet file; the same rows give the same bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    assert rows
    schema = _schema(type(rows[0]))
    columns = zip(*(astuple(row) for row in rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    parquet.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        sink,
        compression="zstd",
        compression_level=_COMPRESSION_LEVELS[type(rows[0])],
        row_group_size=256,
        write_page_checksum=True,
        use_dictionary=["family", "arch", "kernel", "track", "label_source", "license"]
        if isinstance(rows[0], Row)
        else ["format"],
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


def row_digest(row: Row | RawRow) -> str:
    """The SHA-256, in hex, of all columns of a row."""
    text = json.dumps(asdict(row), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def rows_hash(rows: Iterable[Row]) -> str:
    """A hash of everything that evaluation depends on, independent of the order of the rows."""
    lines = sorted(
        json.dumps([row.id, row.track, row.assignment, row.alternatives]) for row in rows
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def best_hash(rows: Iterable[Row]) -> str | None:
    """A hash of the columns about better labels, independent of order; None if all are empty."""
    columns = {row.id: [getattr(row, name) for name in BEST_COLUMNS] for row in rows}
    if all(value is None for values in columns.values() for value in values):
        return None
    return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()


_TARGET = re.compile(r"^target (\S+)$", re.ASCII | re.MULTILINE)
_BLOCK = re.compile(r"^bb\d", re.ASCII | re.MULTILINE)
_VIRTUAL = re.compile(r"%(\d{1,9})", re.ASCII)


def check_row(columns: Mapping[str, Any], source: str | Path) -> None:
    """Raises InputError about `source` if a column contradicts the column `normalized`.

    Missing columns are ignored. The text is scanned, not parsed: 0.7 ms for a function of
    28 kB. evaluate.prepared compares the columns that need an analysis (pressure, the
    label's registers).
    """
    text = columns["normalized"]
    target, blocks = _TARGET.search(text), list(_BLOCK.finditer(text))
    body = text.count("\n", blocks[0].start()) if blocks else 0
    expected = {
        "id": instance_id(text),
        "arch": None if target is None else target[1],
        "n_blocks": len(blocks),
        "n_instructions": body - len(blocks),
        # Virtual registers are numbered from 0, without gaps.
        "n_virtual_registers": 1 + max(map(int, _VIRTUAL.findall(text)), default=-1),
    }
    for name, value in expected.items():
        if name in columns and columns[name] != value:
            raise InputError(
                f"row {str(columns.get('id'))[:40]}: the column {name!r} is "
                f"{str(columns[name])[:40]!r}, its text says {str(value)!r}",
                source=source,
            )
