"""Counts the outcomes of a view, so nothing is left out or cut silently."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

_LOG = logging.getLogger("verilocc_bench.views")


class ExampleOutcome(StrEnum):
    """The outcome of an example.

    `whole`: it is included. `cut`: it is included, but was too long. `too_long`: it is
    left out for its length. `no_label`: the row has no answer of the requested kind.
    """

    WHOLE = "whole"
    CUT = "cut"
    TOO_LONG = "too_long"
    NO_LABEL = "no_label"


LOSSES = (ExampleOutcome.CUT, ExampleOutcome.TOO_LONG, ExampleOutcome.NO_LABEL)
"""The outcomes that lead to a warning."""


class ViewReport:
    """The number of examples with each outcome.

    The logger `verilocc_bench.views` warns at the first loss, and whenever there are ten
    times as many.
    """

    def __init__(self) -> None:
        self._counts: Counter[ExampleOutcome] = Counter()
        self._next_warning = 1

    def add(self, counts: Mapping[ExampleOutcome, int]) -> None:
        """Adds the counts of another report, without a warning."""
        self._counts.update(counts)

    @property
    def counts(self) -> Mapping[ExampleOutcome, int]:
        """The count of every outcome, 0 included."""
        return {outcome: self._counts[outcome] for outcome in ExampleOutcome}

    @property
    def losses(self) -> int:
        """The examples that are cut or left out for their length, and the rows without a label."""
        return sum(self._counts[outcome] for outcome in LOSSES)

    def count(self, outcome: ExampleOutcome, times: int = 1) -> None:
        """Counts an outcome, and warns if losses have grown tenfold."""
        self._counts[outcome] += times
        if outcome in LOSSES and self.losses >= self._next_warning:
            self.warn()
            while self._next_warning <= self.losses:
                self._next_warning *= 10

    def warn(self) -> None:
        """Logs the counts as a warning."""
        _LOG.warning("examples so far: %s", self)

    def __str__(self) -> str:
        return ", ".join(
            f"{count:,} {outcome.value}" for outcome, count in self.counts.items() if count
        )
