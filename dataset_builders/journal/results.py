"""The result of compiling a sweep point, and its form in a build's journal.

A document is `{"timings", "row", "raw"}` or `{"timings", "rejection"}`. `row`
lacks the columns that only the whole dataset can give. Journals of an earlier
version have no `timings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import RejectedKernel


@dataclass(frozen=True, slots=True)
class PointResult:
    """A row with its raw code (machine IR or a cubin), or the kind and the reason of a rejection.

    `timings` is None if nothing was measured.
    """

    row: Row | None
    raw: RawRow | None
    rejection: tuple[str, str] | None
    timings: Timings | None = None


def result_document(result: BuiltKernel | RejectedKernel) -> dict[str, Any]:
    """The journal's document of a result."""
    if isinstance(result, RejectedKernel):
        return {"timings": None, "rejection": [result.kind, result.reason]}
    columns = asdict(result.row)
    for name in RELEASE_COLUMNS:
        del columns[name]
    return {"timings": astuple(result.timings), "row": columns, "raw": asdict(result.raw)}


def result_from_document(document: Mapping[str, Any]) -> PointResult:
    """The result of a document. Raises KeyError, TypeError or ValueError for other documents."""
    measured = document.get("timings")
    timings = None if measured is None else Timings(*measured)
    if "rejection" in document:
        kind, reason = document["rejection"]
        return PointResult(None, None, (str(kind), str(reason)), timings)
    row = Row(**{**RELEASE_COLUMNS, **document["row"]})
    return PointResult(row, RawRow(**document["raw"]), None, timings)
