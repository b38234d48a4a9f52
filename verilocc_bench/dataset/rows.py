"""Rows of the dataset: their columns, their hashes, and a check against the text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json
from verilocc_bench.ir import instance_id


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
    the label's. All of these are None on the split track.

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


BEST_COLUMNS = tuple(field.name for field in fields(Row) if field.name.startswith("best_"))
"""The columns about the best known answer."""

RELEASE_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(BEST_COLUMNS),
    "bank_conflicts": None,
    "cluster": "",
}
"""The columns that the release of a dataset fills in, with their values until then."""


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
        "n_virtual_registers": 1 + max(map(int, set(_VIRTUAL.findall(text))), default=-1),
    }
    for name, value in expected.items():
        if name in columns and columns[name] != value:
            raise InputError(
                f"row {str(columns.get('id'))[:40]}: the column {name!r} is "
                f"{str(columns[name])[:40]!r}, its text says {str(value)!r}",
                source=source,
            )
