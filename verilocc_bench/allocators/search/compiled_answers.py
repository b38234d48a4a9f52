"""Search for machine code by the compiler itself: compiles answers and keeps the best.

First come placements of different kinds, each refined: the one with the fewest false
dependences, and tight ones, whose false dependences keep the instructions nearly in
the order of the text. Then come placements near the best so far. Each is compiled once.

If the compiler's own assignment is known, it comes before them, and one near it that
keeps the order of its instructions. Then an answer is only taken if none of the counts of
its code is worse than the compiler's own, unless it gives more waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verilocc_bench.allocators.search.code_loop import CodeCosts
from verilocc_bench.allocators.search.code_refining import (
    collect_costs,
    costs_beside,
    descend,
    shuffled,
)
from verilocc_bench.allocators.search.fallbacks import place_by_orders
from verilocc_bench.allocators.search.model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.placing import SearchBudget, Shapes
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS, collect_items
from verilocc_bench.allocators.search.refining import refine
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.analysis.false_dependences import FalseDependence
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.search import Objective

Placement = dict[tuple[str, ...], Integers]
"""The node bases of each model, by its files."""

_SHARES = (1, 4, 16)
"""Of so many nodes one moves from one compiled answer to the next, in turn."""

_SHARES_BESIDE = (16, 64, 4)
"""The same near the compiler's own assignment, where few moves are more often for the better."""


@dataclass(frozen=True, slots=True)
class CompiledAnswers:
    """How many answers to compile, and the cost of an answer's machine code.

    `own` is the compiler's own assignment, if it is known. It is compiled besides.
    """

    count: int
    cost: Callable[[Assignment], CodeCost]
    own: Assignment | None = None


def tight_placements(
    models: Sequence[tuple[PlacementModel, Shapes]],
    found: Placement,
    refined: Placement,
    budget: SearchBudget,
) -> Iterator[Placement]:
    """Placements of some models in few registers; the other models keep `refined`.

    `found` is a placement before refinement. The orders of linear scan and of graph
    colouring give two more. Each is refined within its own registers.
    """
    by_name: dict[str, Placement] = {"found": found}
    for model, _ in models:
        for name, bases in place_by_orders(model):
            by_name.setdefault(name, {})[model.files] = bases
    seen = set[tuple[bytes, ...]]()
    for starts in by_name.values():
        placement = dict(refined)
        for model, shapes in models:
            if model.files in starts:
                bases = starts[model.files]
                space = model.within(shapes.around(bases, shapes.used(bases)))
                items = collect_items(model, OBJECTIVE_WEIGHTS[Objective.MACHINE_CODE])
                placement[model.files] = refine(items, bases, space, budget, lambda _: None)
        key = tuple(placement[model.files].tobytes() for model, _ in models)
        if key not in seen:
            seen.add(key)
            yield placement


@dataclass(frozen=True, slots=True)
class CompiledPlacement:
    """A placement whose code is known. Of two the one with the lesser `rank` is better.

    `from_own` is True for the compiler's own assignment and what was found near it.
    """

    placement: Placement
    rank: tuple[int, ...]
    from_own: bool


@dataclass(slots=True)
class Climb:
    """A climb from placements to others nearby whose machine code is better.

    `spaces` has the bases that each model may use. `report` gets each placement that is
    better than those before.
    """

    models: Sequence[PlacementModel]
    spaces: Mapping[tuple[str, ...], Space]
    dependences: Sequence[FalseDependence]
    compiled: CompiledAnswers
    report: Callable[[CompiledPlacement], None]
    _best: CompiledPlacement | None = None
    _own_cost: CodeCost | None = None

    def run(self, first: Placement, others: Iterator[Placement], budget: SearchBudget) -> None:
        """Compiles `first`, then `others`, then neighbours of the best.

        The compiler's own assignment, if it is known, comes before them.
        """
        stalls = [each for each in self.dependences if each.stalls]
        # Every second neighbour may add false dependences, if they need no wait states.
        costs = [
            {model.files: collect_costs(model, dependences) for model in self.models}
            for dependences in (stalls, self.dependences)
        ]
        given = iter([(first, False)])
        if self.compiled.own is not None:
            own = {model.files: model.bases(self.compiled.own) for model in self.models}
            self._own_cost = self.compiled.cost(self.compiled.own)
            self._take(own, self._own_cost, from_own=True)
            near = {
                files: descend(
                    costs_beside(costs[1][files], bases), bases, self.spaces[files], budget
                )
                for files, bases in own.items()
            }
            given = iter([(first, False), (near, True)])
        for turn in range(self.compiled.count):
            following = next(given, None)
            if following is None and (other := next(others, None)) is not None:
                following = other, False
            if following is None:
                following = self._neighbour(costs, turn, budget.seed * 100_000 + turn)
            placement, from_own = following
            self._take(placement, self._cost(placement), from_own=from_own)

    def _neighbour(
        self, costs: Sequence[Mapping[tuple[str, ...], CodeCosts]], turn: int, seed: int
    ) -> tuple[Placement, bool]:
        """A placement near the best one, and True if that came from the compiler's own."""
        best = self._best
        assert best is not None
        if best.from_own:
            return self._near_own(best.placement, costs[1], turn, seed), True
        share = _SHARES[turn % len(_SHARES)]
        return {
            files: shuffled(costs[turn % 2][files], bases, self.spaces[files], share, seed)
            for files, bases in best.placement.items()
        }, False

    def _near_own(
        self, best: Placement, costs: Mapping[tuple[str, ...], CodeCosts], turn: int, seed: int
    ) -> Placement:
        """A placement that differs little from the best, so that the order stays nearly the same.

        Every second one adds no false dependence, and costs less in some other way.
        """
        share = _SHARES_BESIDE[turn // 2 % len(_SHARES_BESIDE)]
        found = {}
        for files, bases in best.items():
            space = self.spaces[files]
            if turn % 2:
                budget = SearchBudget(max(len(bases) // share, 1), seed)
                found[files] = descend(costs_beside(costs[files], bases), bases, space, budget)
            else:
                found[files] = shuffled(costs[files], bases, space, share, seed)
        return found

    def _take(self, placement: Placement, cost: CodeCost, *, from_own: bool) -> None:
        worse = 0 if self._own_cost is None else cost.worse_counts(self._own_cost)
        found = CompiledPlacement(placement, (-cost.waves, worse, cost.total), from_own)
        if self._best is None or found.rank < self._best.rank:
            self._best = found
            self.report(found)

    def _cost(self, placement: Placement) -> CodeCost:
        assignment: Assignment = {}
        for model in self.models:
            assignment |= model.assignment(placement[model.files])
        return self.compiled.cost(assignment)
