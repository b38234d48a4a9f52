"""What the machine code of an answer costs, as a compiler made it of the answer."""

from __future__ import annotations

from typing import NamedTuple

EQUAL_CYCLES = 0.005
"""Estimates of cycles that differ by no more than this share count as equal."""


class CodeCost(NamedTuple):
    """What one answer's machine code costs.

    `waves` fit on an execution unit: more are better, and count before all else.
    `total` weighs everything that costs; less is better. `counts` are its parts in
    a fixed order, and `cycles` are those that llvm-mca estimates, or None.
    """

    waves: int
    total: int
    counts: tuple[int, ...] = ()
    cycles: float | None = None

    def worse_counts(self, other: CodeCost) -> int:
        """How many of the counts, the cycles among them, are worse than another's.

        Cycles that are not known are worse than any that are.
        """
        worse = sum(own > others for own, others in zip(self.counts, other.counts, strict=True))
        if other.cycles is None:
            return worse
        return worse + (self.cycles is None or self.cycles > other.cycles * (1 + EQUAL_CYCLES))
