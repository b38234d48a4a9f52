"""Rows in training code: Row objects, or mappings of the same columns.

`datasets` gives rows as mappings. A view reads only the columns that it needs,
`normalized` and the column of the label, so a stream may lack all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from verilocc_bench.allocators import Request
from verilocc_bench.allocators.registry import ANSWER_ALONE, BUILT_IN
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.files import parse_json

AnyRow = Row | Mapping[str, Any]
"""A row of the dataset, or a mapping with (some of) its columns."""

NAME_LENGTH = 40


class _Kind(StrEnum):
    COMPILER = "compiler"
    BEST = "best"
    OPTIMAL = "optimal"
    ALTERNATIVE = "alternative"
    ALLOCATOR = "allocator"


@dataclass(frozen=True, slots=True)
class Label:
    """The answer of a row to learn; `source` names one of `alternatives`, or an allocator."""

    kind: _Kind
    source: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that may hold the answer, in the order of the look-up."""
        match self.kind:
            case _Kind.COMPILER:
                return ("assignment",)
            case _Kind.BEST:
                return ("best_assignment", "assignment")
            case _Kind.OPTIMAL:
                return ("best_is_optimal", "best_assignment", "assignment")
            case _Kind.ALTERNATIVE:
                return ("alternatives",)
            case _Kind.ALLOCATOR:
                return ("normalized",)

    def answer(self, row: AnyRow) -> dict[str, str] | None:
        """The answer of a row, or None without an answer of this kind.

        Raises InputError if a column is missing or does not hold an answer.
        """
        columns = self.columns
        if self.kind is _Kind.ALLOCATOR:
            # The answer of an allocator; None without an answer, or for one with edits.
            try:
                answer = BUILT_IN[self.source].allocate(Request(problem_of(row)))
            except AllocationFailed:
                return None
            return None if answer.has_edits else dict(answer.assignment)
        if self.kind is _Kind.OPTIMAL:
            if not column_of(row, columns[0]):
                return None
            columns = columns[1:]
        for column in columns:
            found: Any = _json_column(row, column)
            if found is not None and self.kind is _Kind.ALTERNATIVE:
                found = found.get(self.source)
            if found is None:
                continue
            if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
                raise InputError(
                    f'the column {column!r} must hold answers such as {{"%0": "v4"}}',
                    source=_name(row),
                )
            return found
        return None


def parse_label(text: str) -> Label:
    """The label of a text: `compiler`, `best`, `optimal`, `alternative:…`, `allocator:…`, …

    `best` is the column `best_assignment` if the row has it, else the compiler's
    answer. `optimal` is the same for rows in which that answer provably uses the fewest
    vector registers; other rows have none. `alternative:SOURCE` is an answer in the
    column `alternatives`. `allocator:NAME` is the answer of a built-in allocator that
    sees the function alone, such as `allocator:linear-scan`, which runs on demand.
    Raises InputError for any other text.
    """
    name, colon, source = text.partition(":")
    named = {_Kind.ALTERNATIVE, _Kind.ALLOCATOR}
    if name in set(_Kind) - named and not colon:
        return Label(_Kind(name))
    if name == _Kind.ALTERNATIVE and source:
        return Label(_Kind.ALTERNATIVE, source)
    if name == _Kind.ALLOCATOR and source in ANSWER_ALONE:
        return Label(_Kind.ALLOCATOR, source)
    if name == _Kind.ALLOCATOR and source:
        known = ", ".join(ANSWER_ALONE)
        raise InputError(f"no allocator {source[:NAME_LENGTH]!r} makes labels; known: {known}")
    raise InputError(
        f"unknown label {text[:NAME_LENGTH]!r}; expected 'compiler', 'best', 'optimal', "
        "'alternative:SOURCE', such as 'alternative:llvm-basic 22.1.0', or "
        "'allocator:NAME', such as 'allocator:linear-scan'"
    )


def column_of(row: AnyRow, column: str) -> Any:
    """One column of a row. Raises InputError if a mapping lacks it."""
    if isinstance(row, Row):
        return getattr(row, column)
    if column not in row:
        raise InputError(f"the column {column!r} is missing", source=_name(row))
    return row[column]


def problem_of(row: AnyRow) -> AllocationProblem:
    """The problem of a row, from its column `normalized`. Raises InputError for an invalid text."""
    text = column_of(row, "normalized")
    if not isinstance(text, str):
        raise InputError("the column 'normalized' must hold a text", source=_name(row))
    return AllocationProblem.from_text(text, _name(row))


def _json_column(row: AnyRow, column: str) -> dict[str, Any] | None:
    """The JSON object of a column, or None for null."""
    text = column_of(row, column)
    if text is None:
        return None
    document = parse_json(text, _name(row)) if isinstance(text, str) else text
    if not isinstance(document, dict):
        raise InputError(f"the column {column!r} must hold a JSON object", source=_name(row))
    return document


def _name(row: AnyRow) -> str:
    """The name of a row in messages."""
    identifier = row.id if isinstance(row, Row) else row.get("id")
    return f"row {identifier}" if isinstance(identifier, str) else "row"
