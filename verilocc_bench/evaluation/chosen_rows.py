"""Which functions a run is about."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from verilocc_bench.dataset import (
    BudgetChoice,
    Row,
    check_row,
    load_rows,
    no_rows,
    rows_hash,
    tighten,
)
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.evaluation.prepared import PreparedRow


@dataclass(frozen=True, slots=True)
class SplitRow:
    """A row, and the split that it comes from."""

    row: Row
    split: str


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """The rows of a run, at its budget.

    `every` are all rows of its splits, and `hash` is theirs. `dropped` counts
    those that have no tighter budget: they cannot gain occupancy.
    """

    rows: tuple[SplitRow, ...]
    every: tuple[Row, ...]
    hash: str
    dropped: int


def choose_rows(configuration: RunConfiguration) -> ChosenRows:
    """The rows that a configuration names. Raises InputError without any."""
    found: list[SplitRow] = []
    for split in configuration.splits:
        dataset = load_rows(
            configuration.dataset,
            split=split,
            track=configuration.track,
            revision=configuration.revision,
            check_texts=False,
        )
        found += [SplitRow(row, split) for row in dataset.rows]
    every = tuple(each.row for each in found)
    twice = [row_id for row_id, count in Counter(row.id for row in every).items() if count > 1]
    if twice:
        source = configuration.dataset
        raise InputError(f"row {twice[0]} stands in several of the splits", source=source)
    chosen = _selected(found, configuration)
    for each in chosen:
        check_row(vars(each.row), configuration.dataset)
    kept = _tightened(chosen, configuration.budget)
    return ChosenRows(kept, every, rows_hash(every), len(chosen) - len(kept))


def known_ids(configuration: RunConfiguration, rows: Sequence[SplitRow]) -> set[str]:
    """The ids of both tracks and all splits: one file of answers may serve them together."""
    known = {each.row.id for each in rows}
    for track in ("assign", "split"):
        for split in dict.fromkeys([*configuration.splits, "train", "validation", "test"]):
            with contextlib.suppress(InputError):  # a dataset may have one track alone
                found = load_rows(
                    configuration.dataset,
                    split=split,
                    track=track,
                    revision=configuration.revision,
                    check_texts=False,
                )
                known |= {row.id for row in found.rows}
    return known


def _selected(rows: Sequence[SplitRow], configuration: RunConfiguration) -> tuple[SplitRow, ...]:
    """The rows of the architectures and families, at most `limit` of each pair of these."""
    archs, wanted = configuration.archs, configuration.families
    families = {each.row.family for each in rows}
    for family in wanted or ():
        if family not in families:
            known = ", ".join(sorted(families))
            raise InputError(f"unknown family {family!r}; the dataset has {known}")
    chosen: list[SplitRow] = []
    taken: Counter[tuple[str, str]] = Counter()
    for each in rows:
        row = each.row
        if archs is not None and row.arch not in archs:
            continue
        if wanted is not None and row.family not in wanted:
            continue
        if configuration.limit is not None and taken[row.arch, row.family] >= configuration.limit:
            continue
        taken[row.arch, row.family] += 1
        chosen.append(each)
    if not chosen:
        raise no_rows(configuration.dataset, archs)
    return tuple(chosen)


def _tightened(rows: tuple[SplitRow, ...], budget: BudgetChoice) -> tuple[SplitRow, ...]:
    """The rows at another budget, without those that have none such."""
    if budget is not BudgetChoice.FULL:
        for each in rows:
            PreparedRow(each.row)  # raises if the figures that budgets follow from are wrong
    found = [(tighten(each.row, budget), each.split) for each in rows]
    kept = tuple(SplitRow(row, split) for row, split in found if row is not None)
    if not kept:
        raise InputError("no function of these can gain occupancy")
    return kept
