"""The objective and the budget of a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from verilocc_bench.settings.search import Objective

MOST_EXCLUSIONS = 100_000
"""The most of a model for which a brief search is as long as any."""

SEARCH = "search"
"""The source of assignments from first-fit orders, tabu search and CP-SAT's proofs."""

COMPILER = "compiler"
"""The source of an assignment that is, or began with, the compiler's label."""


class Means(Enum):
    """How far a search goes.

    `ORDERS`: first fit in several orders. `ANNEALED_ORDERS`: annealing on these
    orders. `TABU`: first-fit orders, tabu search and refinement. `PORTFOLIO`: the
    same and CP-SAT.
    """

    ORDERS = auto()
    ANNEALED_ORDERS = auto()
    TABU = auto()
    PORTFOLIO = auto()


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """An objective and a budget; `effort` multiplies all steps below.

    Budgets are steps and deterministic seconds of the solver, so the same options
    give the same answer on every machine. `tabu_steps` and `exact_time` are
    budgets for each number of registers that the search tries. `brief`: models with
    more exclusions than `MOST_EXCLUSIONS` get one chunk of steps at each, within the
    most promising limits alone, and no fresh starts.
    """

    objective: Objective = Objective.REGISTERS
    effort: int = 1
    seed: int = 0
    brief: bool = False

    def tabu_steps(self, nodes: int) -> int:
        """Steps of tabu search at one number of registers; more if each step costs less."""
        return self.effort * min(max(40_000, 20_000_000 // max(nodes, 1)), 1_000 * nodes)

    @property
    def order_steps(self) -> int:
        """Orders that annealing tries."""
        return 2_000 * self.effort

    @property
    def anneal_steps(self) -> int:
        """Moves of refinement in one group of files."""
        return 20_000 * self.effort

    @property
    def code_steps(self) -> int:
        """Moves of refinement for machine code in one group of files; each costs more."""
        return 6_000 * self.effort

    def ejection_limits(self, nodes: int) -> tuple[int, ...]:
        """The most dead ends of ejection, for each attempt in turn."""
        return self.effort * min(200, 10 * nodes), self.effort * min(2_000, 50 * nodes)

    @property
    def exact_time(self) -> float:
        """Deterministic seconds of CP-SAT at one number of registers."""
        return 0.02 * self.effort
