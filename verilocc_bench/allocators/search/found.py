"""What a search found: an assignment with its bound and its source."""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.allocators.search.options import SEARCH
from verilocc_bench.analysis.lower_bounds import LowerBound
from verilocc_bench.ir import Assignment


@dataclass(frozen=True, slots=True)
class Found:
    """An assignment, its registers in the scored files, and the proved bound on them.

    The assignment is optimal if it meets `bound`. `source` names the method that
    found the first placement.
    """

    assignment: Assignment
    registers: int
    bound: LowerBound
    source: str = SEARCH

    @property
    def is_optimal(self) -> bool:
        """True if fewer registers are proved impossible."""
        return self.registers == self.bound.value
