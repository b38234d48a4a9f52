"""The questions: which allocators, for which objectives, at which budgets."""

from __future__ import annotations

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset.tight_budgets import BudgetChoice
from verilocc_bench.settings.search import Objective

QUICK = ("linear-scan", "graph-coloring", "first-fit-orders", "annealed-orders", "tabu-search")
"""Allocators without a solver; they are also asked at tight budgets."""

BEST = {
    "best": Objective.REGISTERS,
    "best bank-conflicts": Objective.BANK_CONFLICTS,
    "best copies": Objective.COPIES,
}
"""`best` by its objective."""

TIGHT = (BudgetChoice.BOUND, BudgetChoice.BOUND_PLUS_ONE, BudgetChoice.OCCUPANCY)

QUICK_WHERE_COSTLY = ("linear-scan", "graph-coloring", "first-fit-orders")
"""The allocators that are asked, besides `best`, if others could take minutes."""

MOST_SCALARS = 90
MOST_VIRTUAL_REGISTERS = 2000


def is_costly(problem: AllocationProblem) -> bool:
    """True if annealing or tabu search could take minutes.

    This holds if more than 90 of the 102 scalar registers of an AMD target are
    live at once, or with more than 2,000 virtual registers.
    """
    crowded = problem.pressure.maximum.get("s", 0) > MOST_SCALARS
    return crowded or len(problem.function.virtual_registers) > MOST_VIRTUAL_REGISTERS


def is_asked_tightly(identifier: str) -> bool:
    """True if a kernel is asked at tight budgets: one of three, chosen by its id."""
    return int(identifier, 16) % 3 == 0
