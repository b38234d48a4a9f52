"""What is asked: which allocators, for which objectives, at which budgets."""

from __future__ import annotations

from verilocc_bench.allocator_options import Objective
from verilocc_bench.dataset.tight_budgets import BudgetChoice

__all__ = ["BEST", "QUICK", "TIGHT"]

QUICK = ("linear-scan", "graph-coloring", "first-fit-orders", "annealed-orders", "tabu-search")
"""Allocators that take no solver; they are asked at tight budgets too."""

BEST = {
    "best": Objective.REGISTERS,
    "best bank-conflicts": Objective.BANK_CONFLICTS,
    "best copies": Objective.COPIES,
}
"""`best` by its objective."""

TIGHT = (BudgetChoice.BOUND, BudgetChoice.BOUND_PLUS_ONE, BudgetChoice.OCCUPANCY)
