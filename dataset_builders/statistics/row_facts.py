"""The facts of each row for the figures, read column by column.

Texts of functions and of assignments are nearly all of a file; they stay on
disk. The other columns are read a few rows at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any, cast

from verilocc_bench.dataset import Row
from verilocc_bench.dataset.parquet import rows_from_table
from verilocc_bench.dataset.parquet_batches import parquet_batches
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json

TRACKS = {"data": "assign", "split": "split"}
"""The track, by folder."""

_FILE_NAME = re.compile(r"(\w+)-\d{5}-of-\d{5}\.parquet")


@dataclass(frozen=True, slots=True)
class RowFacts:
    """One row without its texts.

    `pressure`, `best_lower_bound` and the registers used are of the vector
    file. `registers_used`, `occupancy` (waves or warps) and `bank_conflicts`
    belong to the compiler's label. Fields that begin with `best_` belong to the
    best known answer; `best_source` is None if that is the label. All of these
    are None if the dataset does not tell. `tile` is the kind of kernel (gemm,
    attention, decoding) with the rows and columns of its tile, as `gemm
    64x128`; it and `head_dimension` are None if a kernel has none.
    `alternatives` are the sources of further labels.
    """

    id: str
    track: str
    arch: str
    family: str
    split: str
    kernel: str
    data_type: str | None
    tile: str | None
    head_dimension: int | None
    label_source: str
    alternatives: tuple[str, ...]
    pressure: int
    registers_used: int | None
    occupancy: int | None
    bank_conflicts: int | None
    best_source: str | None
    best_registers_used: int | None
    best_lower_bound: int | None
    best_is_optimal: bool
    best_bank_conflicts: int | None
    group: str
    cluster: str
    n_blocks: int
    n_instructions: int
    n_virtual_registers: int
    license: str

    @property
    def lower_bound(self) -> int:
        """Vector registers that every assignment needs: the best known bound, or the pressure."""
        return self.pressure if self.best_lower_bound is None else self.best_lower_bound

    @property
    def meets_bound(self) -> bool:
        """True if the label is proved optimal: it uses as many registers as the bound."""
        return self.registers_used is not None and self.registers_used == self.lower_bound

    @property
    def label_gap(self) -> int | None:
        """Vector registers of the compiler's label above the bound; None without a label."""
        if self.track != "assign" or self.registers_used is None:
            return None
        return self.registers_used - self.lower_bound

    @property
    def best_gap(self) -> int | None:
        """Vector registers of the best known answer above the bound."""
        best = self.best_registers_used
        return None if best is None else best - self.lower_bound

    @property
    def has_better(self) -> bool:
        """True if a better label than the compiler's is known."""
        return self.best_source is not None

    @property
    def has_fewer(self) -> bool:
        """True if a label with fewer vector registers than the compiler's is known."""
        best, own = self.best_registers_used, self.registers_used
        return best is not None and own is not None and best < own


_OWN = ("track", "split", "data_type", "tile", "head_dimension")
"""The facts that no column has."""

_COLUMNS = make_dataclass(
    "_Columns",
    [
        (column.name, column.type)
        for column in fields(Row)
        if column.name in {*(f.name for f in fields(RowFacts)), "params"} - {*_OWN}
    ],
    frozen=True,
)
"""The columns of Row that are read."""


def read_facts(folder: Path) -> tuple[RowFacts, ...]:
    """The facts of all rows of a dataset folder, in the order of its files.

    Raises InputError if there are none, or if a file is not a Parquet file of
    rows.
    """
    paths = [path for name in TRACKS for path in sorted(folder.glob(f"{name}/*/*/*.parquet"))]
    if not paths:
        raise InputError(
            "expected the folder of a dataset, with files such as "
            "data/gfx942/gemm/train-00000-of-00001.parquet",
            source=folder,
        )
    return tuple(facts for path in paths for facts in _facts_of_file(path))


def _facts_of_file(path: Path) -> Iterator[RowFacts]:
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise InputError("expected a name such as train-00000-of-00001.parquet", source=path)
    track = TRACKS[path.parents[2].name]
    columns = [field.name for field in fields(_COLUMNS)]
    for table in parquet_batches(path, columns):
        # The function takes any record whose columns Row has, but is typed for two.
        for row in rows_from_table(table, cast("type[Row]", _COLUMNS), path):
            yield _facts(row, track, name[1], path)


def _facts(columns: Any, track: str, split: str, path: Path) -> RowFacts:
    def value(name: str) -> dict[str, Any]:
        text, place = getattr(columns, name), f"{path}: row {columns.id}, column {name}"
        found = {} if text is None else parse_json(text, place)
        if not isinstance(found, dict):
            raise InputError("expected a JSON object", source=place)
        return found

    parameters = value("params")
    used = value("registers_used")
    facts = {field.name: getattr(columns, field.name) for field in fields(_COLUMNS)}
    del facts["params"]
    facts["alternatives"] = tuple(value("alternatives"))
    facts["pressure"] = _count(value("pressure"), "pressure", columns.id, path)
    if columns.registers_used is not None:
        facts["registers_used"] = _count(used, "registers_used", columns.id, path)
    facts["best_is_optimal"] = bool(columns.best_is_optimal)
    return RowFacts(
        **facts,
        track=track,
        split=split,
        data_type=kind if isinstance(kind := parameters.get("dtype"), str) else None,
        tile=_tile(columns.family, parameters),
        head_dimension=_integer(parameters.get("head_dim")),
    )


def _count(counts: dict[str, Any], column: str, identifier: str, path: Path) -> int:
    """The vector file's count."""
    count = _integer(counts.get("vector"))
    if count is None:
        raise InputError(
            f"row {identifier}, column {column}: expected a number of registers under 'vector'",
            source=path,
        )
    return count


def _tile(family: str, parameters: dict[str, Any]) -> str | None:
    decoding = "block_h" in parameters
    rows = _integer(parameters.get("block_h" if decoding else "block_m"))
    columns = _integer(parameters.get("block_n"))
    if rows is None or columns is None:
        return None
    kind = "decoding" if decoding else "attention" if family == "mha" else family
    return f"{kind} {rows}x{columns}"


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
