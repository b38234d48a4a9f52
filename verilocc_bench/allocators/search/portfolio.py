"""`best`: orders, then tabu search, then proofs, then refinement, each from what was found before.

Files that are not scored only need a place. In the scored files the number of
registers comes down as far as search gets; where that stays above the lower
bound, CP-SAT says whether one register less can do. What is left of the
freedom goes into bank conflicts and copies, by the objective:

- `registers`: as few registers as are found, and at that number the least
  combined cost;
- `bank-conflicts`, `copies`, `combined`: at the occupancy of the fewest registers,
  with all the registers that it leaves, the least cost.

The combined cost is a sum over instructions, each weighted by ten to the power
of its loop depth (every loop is taken to run ten times): 2 for each register
that it reads from one bank beyond what the bank delivers at once, 2 for a copy
that remains, 1 for an encoding that another register would make shorter (AMD:
masks outside VCC).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocator_options import Objective
from verilocc_bench.allocators.exact.minimizing import minimize as minimize_exactly
from verilocc_bench.allocators.search.model import PlacementModel, placement_models
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.placing import Budget, Shapes, anneal_orders, minimize
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS, collect_items
from verilocc_bench.allocators.search.refining import refine
from verilocc_bench.allocators.search.shapes import (
    scalar_shapes,
    used_by_file,
    vector_shapes,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import LowerBound, lower_bound
from verilocc_bench.analysis.lower_bounds.shapes import fixed_ends
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

__all__ = ["Found", "Search"]

Integers = NDArray[np.int64]


MOST_NODES_EXACTLY = 120
"""Of more nodes than this CP-SAT neither finds nor refutes what tabu search has not found."""


@dataclass(frozen=True, slots=True)
class Found:
    """An assignment, its registers in the scored files, and what is proved of them.

    `bound`: no assignment uses fewer, with the proof. Where the two meet the
    assignment is optimal.
    """

    assignment: Assignment
    registers: int
    bound: LowerBound

    @property
    def is_optimal(self) -> bool:
        """Whether fewer registers are proved impossible."""
        return self.registers == self.bound.value


class Search:
    """A search that can be interrupted: `found` is the best so far, None before the first.

    `start` is a valid assignment that is known: the search finds none that is worse.

    `bound` is the lower bound on registers as far as it is known.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        options: SearchOptions,
        means: Means = Means.PORTFOLIO,
        start: Assignment | None = None,
    ) -> None:
        self.problem, self.options, self.means = problem, options, means
        self._start = start
        self.bound = lower_bound(problem, solver=False)
        self._models = placement_models(problem)
        self._placed: dict[tuple[str, ...], Integers] = {}

    @property
    def found(self) -> Found | None:
        """The best assignment so far; None where some virtual register has no place yet."""
        assignment: Assignment = {}
        for model in self._models:
            if model.files in self._placed:
                assignment |= model.assignment(self._placed[model.files])
        if len(assignment) < len(self.problem.function.virtual_registers):
            return None
        registers = self.problem.target.vector_use(self._used())
        return Found(dict(sorted(assignment.items())), registers, self.bound)

    def run(self) -> Found:
        """The best assignment. Raises AllocationFailed where none is found, or none exists."""
        # What the scored files take decides which other registers cost occupancy.
        for model in sorted(self._models, key=self._is_scored, reverse=True):
            self._place(model)
        if self.found is None:
            raise AllocationFailed("proved infeasible: a class of the function has no register")
        if self.means is Means.PORTFOLIO:
            for model in self._models:
                if self._is_scored(model):
                    self._prove(model)
        if self.means in (Means.TABU, Means.PORTFOLIO):
            for model in self._models:
                self._refine(model)
        found = self.found
        assert found is not None
        return found

    def _is_scored(self, model: PlacementModel) -> bool:
        return set(model.files) <= set(self.problem.target.vector_files)

    def _shapes(self, model: PlacementModel) -> Shapes:
        return vector_shapes(model) if self._is_scored(model) else scalar_shapes(model)

    def _used(self) -> dict[str, int]:
        """Highest index + 1 of each file, of what is placed and of what the function names."""
        used = fixed_ends(self.problem.function)
        for model in self._models:
            if model.files in self._placed:
                for name, count in used_by_file(model, self._placed[model.files]).items():
                    used[name] = max(used[name], count)
        return used

    def _place(self, model: PlacementModel) -> None:
        shapes = self._shapes(model)
        bound = self.bound.value
        if not self._is_scored(model):
            # Not pressure: what draws on several files counts there for the first.
            bound = lower_bound(self.problem, model.files[0], solver=False).value
        if bound > shapes.most:
            raise AllocationFailed(
                f"proved infeasible: {bound} registers of {'/'.join(model.files)} are needed, "
                f"{shapes.most} may be used"
            )
        if not model.domain.any(axis=1).all():
            raise AllocationFailed(
                f"proved infeasible: ties or the function's own registers leave a virtual register "
                f"no place in {'/'.join(model.files)}"
            )
        if not self._is_scored(model):
            bound = max(bound, self._most_without_loss(model, 0))
        if self._minimize(model, shapes, bound) is None:
            raise AllocationFailed(
                f"unknown: no placement in {'/'.join(model.files)} was found within the budget"
            )

    def _minimize(self, model: PlacementModel, shapes: Shapes, bound: int) -> Integers | None:
        options, report = self.options, self._reporter(model)
        if self.means is Means.ANNEALED_ORDERS:
            budget = Budget(options.order_steps, options.seed)
            return anneal_orders(model, shapes, bound, budget, report)
        steps = 0 if self.means is Means.ORDERS else options.tabu_steps(len(model.nodes))
        start = None if self._start is None else model.bases(self._start)
        order = options.order if self._is_scored(model) else None
        return minimize(model, shapes, bound, Budget(steps, options.seed, start, order), report)

    def _reporter(self, model: PlacementModel) -> Callable[[Integers], None]:
        def report(bases: Integers) -> None:
            self._placed[model.files] = bases

        return report

    def _prove(self, model: PlacementModel) -> None:
        """Raises the bound, or finds fewer registers, until they meet or the budget is spent."""
        registers = self._shapes(model).used(self._placed[model.files])
        if registers > self.bound.value:
            self.bound = lower_bound(self.problem, schedule=False, known=registers)
        if registers > self.bound.value and len(model.nodes) <= MOST_NODES_EXACTLY:
            best = model.assignment(self._placed[model.files])
            least = minimize_exactly(
                self.problem,
                deterministic_time=self.options.exact_time,
                best=best,
                seed=self.options.seed,
            )
            self.bound = least.bound
            assert least.assignment is not None
            self._placed[model.files] = model.bases(least.assignment)

    def _refine(self, model: PlacementModel) -> None:
        objective = self.options.objective
        shapes, bases = self._shapes(model), self._placed[model.files]
        registers = shapes.used(bases)
        if objective is not Objective.REGISTERS or not self._is_scored(model):
            registers = max(registers, self._most_without_loss(model, registers))
        refine(
            collect_items(model, OBJECTIVE_WEIGHTS[objective]),
            bases,
            model.within(shapes.limits(registers)),
            Budget(self.options.anneal_steps, self.options.seed),
            self._reporter(model),
        )

    def _most_without_loss(self, model: PlacementModel, registers: int) -> int:
        """The most registers of a model's files that cost no occupancy against `registers`."""
        shapes, occupancy = self._shapes(model), self.problem.occupancy
        used = self._used()

        def waves(count: int) -> int:
            return occupancy({**used, **shapes.limits(count)})

        least = waves(registers)
        while registers < shapes.most and waves(registers + 1) == least:
            registers += 1
        return registers
