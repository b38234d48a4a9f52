"""Tight budgets: a benchmark of the same rows with fewer registers.

A kernel at the lower bound of its registers is the hardest question about it that
may have an answer. One register more makes it a little easier. A compiler engineer
would ask for the most registers that give one more wave (or warp) than the
compiler's label.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import lower_bound
from verilocc_bench.analysis.lower_bounds.search import BoundSearch
from verilocc_bench.analysis.lower_bounds.shapes import shapes_of_value
from verilocc_bench.analysis.problem import with_budgets
from verilocc_bench.dataset.rows import BEST_COLUMNS, Row
from verilocc_bench.errors import InputError

_NO_BEST: dict[str, Any] = dict.fromkeys(BEST_COLUMNS)


class BudgetChoice(StrEnum):
    """The number of vector registers that a row of the assign track may use.

    `full` is its own budget. `bound` and `bound+1` are the best known lower bound
    and one more. `occupancy` is the most that give a higher occupancy than the
    compiler's label.
    """

    FULL = "full"
    BOUND = "bound"
    BOUND_PLUS_ONE = "bound+1"
    OCCUPANCY = "occupancy"


def tighten(row: Row, choice: BudgetChoice) -> Row | None:
    """The row at another budget; None if a higher occupancy is proved impossible.

    The row keeps its label if the label fits the budget. Raises InputError for
    a row of the split track.
    """
    if choice is BudgetChoice.FULL:
        return row
    if row.assignment is None or row.registers_used is None or row.occupancy is None:
        raise InputError("tight budgets are for the assign track", source=f"row {row.id}")
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    used = json.loads(row.registers_used)
    bound = max(lower_bound(problem, solver=False).value, row.best_lower_bound or 0)
    if choice is BudgetChoice.OCCUPANCY:
        registers = _most_for_more(problem, used, row.occupancy)
        if registers < bound:
            return None
    else:
        registers = bound + (choice is BudgetChoice.BOUND_PLUS_ONE)
    tight = with_budgets(problem, _limits(problem, registers, used))
    fits = used[VECTOR] <= registers
    return replace(
        row,
        id=tight.id,
        normalized=tight.normalized,
        assignment=row.assignment if fits else None,
        registers_used=row.registers_used if fits else None,
        occupancy=row.occupancy if fits else None,
        alternatives="{}",
        bank_conflicts=row.bank_conflicts if fits else None,
        **{**_NO_BEST, "best_lower_bound": bound},
    )


def _limits(
    problem: AllocationProblem, registers: int, used: Mapping[str, int]
) -> Mapping[str, int]:
    """Limits of the vector files that come to no more than `registers`.

    `used` says how many registers of each file a known assignment takes. If
    that assignment needs no more than `registers`, the limits leave room for
    it. Otherwise the limits are the first division of `registers` among the files
    that is not proved to be too narrow.
    """
    ways = _ways(problem, registers)
    kept = (way for way in ways if all(used.get(name, 0) <= way[name] for name in way))
    if used[VECTOR] <= registers and (found := next(kept, None)) is not None:
        return found
    search = BoundSearch(problem, solver=False, schedule=False)
    for shape, way in zip(search.shapes(registers), ways, strict=True):
        if search.refute(shape) is None:
            return way
    return ways[0] if ways else dict.fromkeys(problem.target.vector_files, 0)


def _ways(problem: AllocationProblem, registers: int) -> list[dict[str, int]]:
    """The divisions of registers among the vector files, most of the first file first."""
    shapes = map(dict, shapes_of_value(problem, VECTOR, registers))
    files = problem.target.vector_files
    return [{name: shape.get(name, 0) for name in files} for shape in shapes]


def _most_for_more(problem: AllocationProblem, used: Mapping[str, int], occupancy: int) -> int:
    """The most registers with an occupancy above `occupancy`; 0 if no number has one.

    The registers of all other files stay as `used` says.
    """
    for registers in range(used[VECTOR], 0, -1):
        ways = _ways(problem, registers)
        if problem.occupancy({**used, **(ways[0] if ways else {})}) > occupancy:
            return registers
    return 0
