"""Which counts of machine code are worse than another's."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis.code_cost import CodeCost


@pytest.mark.parametrize(
    ("counts", "cycles", "other_cycles", "worse"),
    [
        ((10, 20), 100.0, 100.0, 0),
        ((9, 19), 50.0, 100.0, 0),
        ((11, 20), 100.0, 100.0, 1),
        ((11, 21), 100.0, 100.0, 2),
        ((11, 0), 0.0, 100.0, 1),  # what is saved elsewhere makes up for nothing
        ((10, 20), 100.4, 100.0, 0),  # estimates this close are equal
        ((10, 20), 100.6, 100.0, 1),
        ((10, 20), 0.0, 0.0, 0),
        ((10, 21), 100.6, 100.0, 2),
        ((10, 20), None, 100.0, 1),  # what is not known may be worse
        ((10, 21), None, 100.0, 2),
        ((10, 20), None, None, 0),
        ((10, 20), 999.0, None, 0),
        ((11, 20), 1.0, None, 1),
    ],
)
def test_worse_counts(
    counts: tuple[int, ...], cycles: float | None, other_cycles: float | None, worse: int
) -> None:
    own = CodeCost(8, 1, counts, cycles)
    assert own.worse_counts(CodeCost(8, 50, (10, 20), other_cycles)) == worse


def test_counts_of_two_compilers_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        CodeCost(8, 1, (1, 2)).worse_counts(CodeCost(8, 1, (1,)))
