"""The tokenized view of a `datasets.Dataset` or `IterableDataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.views.tokenized import OUTCOMES, TokenizedView
from verilocc_bench.views.view_report import ExampleOutcome, ViewReport

BATCH_ROWS = 8
"""Rows of a batch. A large kernel gives thousands of examples; packed blocks end with a batch."""


def tokenize_dataset(
    dataset: Any,
    view: TokenizedView,
    *,
    batch_rows: int = BATCH_ROWS,
    processes: int | None = None,
) -> tuple[Any, ViewReport]:
    """The examples of a dataset, as a dataset of the same kind, and the report on them.

    For a `datasets.Dataset`, `processes` make all examples at once (or its cache has
    them), and the report is complete, with a warning about losses. For a stream,
    examples are made as it is read, and the report is the view's own and grows.
    Examples do not depend on `batch_rows`, but packed blocks do: each batch is packed
    alone. Raises InputError for a missing column.
    """
    import datasets

    if not isinstance(dataset, datasets.Dataset | datasets.IterableDataset):
        kind = type(dataset).__name__
        raise InputError(f"expected one split, a Dataset or an IterableDataset, not a {kind}")
    known = dataset.column_names
    needed = [name for name in ("id", *view.columns) if known is None or name in known]
    for name in view.columns:
        if name not in needed:
            raise InputError(f"the column {name!r} is missing; there are {', '.join(known)}")
    rows = dataset.select_columns(needed)
    how: dict[str, Any] = {
        "batched": True,
        "batch_size": batch_rows,
        "remove_columns": needed,
        "features": _features(view),
    }
    if isinstance(dataset, datasets.IterableDataset):
        found = rows.map(view, **how).filter(_has_tokens, batched=True)
        return found.remove_columns([OUTCOMES]), view.report
    found = rows.map(view, num_proc=processes, desc="Tokenizing", **how)
    report = _summed(found)
    if report.losses:
        report.warn()
    return found.filter(_has_tokens, batched=True).remove_columns([OUTCOMES]), report


def _has_tokens(batch: Mapping[str, Sequence[Any]]) -> list[bool]:
    return [bool(tokens) for tokens in batch["input_ids"]]


def _features(view: TokenizedView) -> Any:
    from datasets import Features, List, Value

    types = {"attention_mask": "int8", "labels": "int64"}
    columns = {name: List(Value(types.get(name, "int32"))) for name in view.output_columns}
    return Features({**columns, OUTCOMES: List(Value("int64"))})


def _summed(found: Any) -> ViewReport:
    """The sum of the reports of all batches."""
    report = ViewReport()
    column = found.select_columns([OUTCOMES]).with_format("arrow")[:][OUTCOMES]
    for counts in column.to_pylist():
        if counts:
            report.add(dict(zip(ExampleOutcome, counts, strict=True)))
    return report
