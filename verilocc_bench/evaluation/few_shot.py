"""Solved functions for the prompts of language models."""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.allocators import Example
from verilocc_bench.dataset import Row, is_local, load_rows, rows_hash
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.prepared import PreparedRow

TRAINING_SPLIT = "train"


class FewShot:
    """Chooses examples: the smallest functions of the same architecture and family.

    It never chooses the function itself, nor one of its sweep group: these may
    differ from it in little but their names.
    """

    def __init__(self, rows: Sequence[Row], count: int, source: str) -> None:
        self.count, self.source = count, source
        self.rows = sorted(
            (row for row in rows if row.label is not None),
            key=lambda row: (row.n_virtual_registers, row.id),
        )

    def __call__(self, prepared: PreparedRow) -> tuple[Example, ...]:
        """The examples for one function; there may be fewer than `count`."""
        return self.examples(prepared.row)

    @property
    def hash(self) -> str:
        """A hash of the rows to choose from."""
        return rows_hash(self.rows)

    def examples(self, row: Row) -> tuple[Example, ...]:
        """The examples for the function of a row."""
        found = [
            Example(other.normalized, other.label)
            for other in self.rows
            if other.label is not None
            and (other.arch, other.family) == (row.arch, row.family)
            and other.id != row.id
            and other.group != row.group
        ]
        return tuple(found[: self.count])


def load_few_shot(
    dataset: str, evaluated: Sequence[Row], count: int, revision: str | None
) -> FewShot:
    """Examples from the dataset's training split.

    A dataset on disk may have no such split, as mini has none. Then they come
    from `evaluated`: all rows of the splits that are evaluated.
    """
    try:
        rows = load_rows(dataset, split=TRAINING_SPLIT, revision=revision).rows
    except InputError:
        if not is_local(dataset):
            raise
        return FewShot(evaluated, count, "evaluated")
    return FewShot(rows, count, TRAINING_SPLIT)
