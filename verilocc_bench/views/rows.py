"""Rows as training code has them: Row objects, or mappings of the same columns.

`datasets` gives rows as mappings. A view reads only the columns that it
needs, so that a stream may carry no others: `normalized`, and the column that
has the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from verilocc_bench.allocators import Request
from verilocc_bench.allocators.registry import BUILT_IN, answers_alone
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.dataset.rows import rows_from_table
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.files import parse_json

__all__ = ["AnyRow", "Label", "column_of", "parse_label", "problem_of", "row_from_mapping"]

AnyRow = Row | Mapping[str, Any]
"""A row of the dataset, or a mapping with (some of) its columns."""

NAME_LENGTH = 40

_ALLOCATORS = [name for name, allocator in BUILT_IN.items() if answers_alone(allocator)]


class _Kind(StrEnum):
    COMPILER = "compiler"
    BEST = "best"
    OPTIMAL = "optimal"
    ALTERNATIVE = "alternative"
    ALLOCATOR = "allocator"


@dataclass(frozen=True, slots=True)
class Label:
    """Which answer of a row is learnt; `source` names one among `alternatives`, or an allocator."""

    kind: _Kind
    source: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the answer is looked up in, one after the other."""
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
        """The answer of a row; None where it has none of the kind.

        Raises InputError where a column is missing or holds no answer.
        """
        columns = self.columns
        if self.kind is _Kind.ALLOCATOR:
            return _allocated(self.source, row)
        if self.kind is _Kind.OPTIMAL:
            if not column_of(row, columns[0]):
                return None
            columns = columns[1:]
        for column in columns:
            found = _json_column(row, column)
            if found is not None and self.kind is _Kind.ALTERNATIVE:
                found = found.get(self.source)
            if found is not None:
                return _checked(found, row, column)
        return None


def parse_label(text: str) -> Label:
    """The label that `compiler`, `best`, `optimal` or one of the two forms with a name stands for.

    `best` is the column `best_assignment` where a row has one, else the
    compiler's. `optimal` is the same, of rows where it is proved that no
    answer uses fewer vector registers; others have none. `alternative:SOURCE`
    is that of the column `alternatives`, `allocator:NAME` what a built-in
    allocator that sees the function alone answers, such as
    `allocator:linear-scan`; it runs when the answer is asked for. Raises
    InputError for anything else.
    """
    name, colon, source = text.partition(":")
    named = {_Kind.ALTERNATIVE, _Kind.ALLOCATOR}
    if name in set(_Kind) - named and not colon:
        return Label(_Kind(name))
    if name == _Kind.ALTERNATIVE and source:
        return Label(_Kind.ALTERNATIVE, source)
    if name == _Kind.ALLOCATOR and source in _ALLOCATORS:
        return Label(_Kind.ALLOCATOR, source)
    if name == _Kind.ALLOCATOR and source:
        known = ", ".join(_ALLOCATORS)
        raise InputError(f"no allocator {source[:NAME_LENGTH]!r} makes labels; known: {known}")
    raise InputError(
        f"unknown label {text[:NAME_LENGTH]!r}; expected 'compiler', 'best', 'optimal', "
        "'alternative:SOURCE', such as 'alternative:llvm-basic 22.1.0', or 'allocator:NAME', "
        "such as 'allocator:linear-scan'"
    )


def _allocated(name: str, row: AnyRow) -> dict[str, str] | None:
    """What an allocator answers; None where it has no answer, or edits."""
    try:
        answer = BUILT_IN[name].allocate(Request(problem_of(row)))
    except AllocationFailed:
        return None
    return None if answer.has_edits else dict(answer.assignment)


def row_from_mapping(mapping: Mapping[str, Any]) -> Row:
    """The Row of a mapping, such as a row of a `datasets.Dataset`; further columns are left out.

    Raises InputError, which names the row, where a column is missing, null
    where it must not be, or of another type.
    """
    import pyarrow as pa

    names = [field.name for field in fields(Row) if field.name in mapping]
    try:
        table = pa.table({name: [mapping[name]] for name in names})
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"a column cannot be read: {reason}", source=_name(mapping)) from None
    return rows_from_table(table, Row, _name(mapping))[0]


def column_of(row: AnyRow, column: str) -> Any:
    """One column of a row. Raises InputError where a mapping lacks it."""
    if isinstance(row, Row):
        return getattr(row, column)
    if column not in row:
        raise InputError(f"the column {column!r} is missing", source=_name(row))
    return row[column]


def problem_of(row: AnyRow) -> AllocationProblem:
    """The problem of a row, from its column `normalized`. Raises InputError for another text."""
    text = column_of(row, "normalized")
    if not isinstance(text, str):
        raise InputError("the column 'normalized' must hold a text", source=_name(row))
    return AllocationProblem.from_text(text, _name(row))


def _json_column(row: AnyRow, column: str) -> dict[str, Any] | None:
    """The JSON object of a column; None where that is null."""
    text = column_of(row, column)
    if text is None:
        return None
    document = parse_json(text, _name(row)) if isinstance(text, str) else text
    if not isinstance(document, dict):
        raise InputError(f"the column {column!r} must hold a JSON object", source=_name(row))
    return document


def _checked(answer: Any, row: AnyRow, column: str) -> dict[str, str]:
    if not isinstance(answer, dict) or not all(isinstance(v, str) for v in answer.values()):
        raise InputError(
            f'the column {column!r} must hold answers such as {{"%0": "v4"}}', source=_name(row)
        )
    return answer


def _name(row: AnyRow) -> str:
    """What messages call a row."""
    identifier = row.id if isinstance(row, Row) else row.get("id")
    return f"row {identifier}" if isinstance(identifier, str) else "row"
