"""What search is for, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from verilocc_bench.allocator_options import Objective

__all__ = ["SEARCH", "Means", "SearchOptions"]

SEARCH = "search"
"""The source of what first fit in several orders, tabu search and CP-SAT's proofs find."""


class Means(Enum):
    """How far a search goes; each does what those before it do, but for annealed orders.

    `ORDERS`: first fit in several orders. `ANNEALED_ORDERS`: annealing on
    these. `TABU`: tabu search, and refinement. `PORTFOLIO`: CP-SAT as well.
    """

    ORDERS = auto()
    ANNEALED_ORDERS = auto()
    TABU = auto()
    PORTFOLIO = auto()


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """An objective, and a budget: all steps below are taken `effort` times.

    Steps, not seconds: the same options give the same answer on every machine.
    `tabu_steps` is for each number of registers that is tried,
    `exact_time` in the solver's own deterministic seconds for each.
    """

    objective: Objective = Objective.REGISTERS
    effort: int = 1
    seed: int = 0

    def tabu_steps(self, nodes: int) -> int:
        """Steps of tabu search at one number of registers; more where they cost less."""
        return self.effort * min(max(40_000, 20_000_000 // max(nodes, 1)), 1_000 * nodes)

    @property
    def order_steps(self) -> int:
        """Orders tried by annealing."""
        return 2_000 * self.effort

    @property
    def anneal_steps(self) -> int:
        """Moves of refinement in one group of files."""
        return 20_000 * self.effort

    def ejection_limits(self, nodes: int) -> tuple[int, ...]:
        """Dead ends that ejection may make room at, one attempt after the other."""
        return self.effort * min(200, 10 * nodes), self.effort * min(2_000, 50 * nodes)

    @property
    def exact_time(self) -> float:
        """Deterministic seconds of CP-SAT at one number of registers."""
        return 0.02 * self.effort
