"""Search for machine code by the compiler itself: compiles answers and keeps the best.

First come placements of different kinds, each refined: the one with the fewest false
dependences, and tight ones, whose false dependences keep the instructions nearly in
the order of the text. Then come placements near the best so far. Each is compiled once.

If the compiler's own assignment is known, it comes before all, and instead of tight
placements one near it that keeps the order of its instructions. Then an answer is only
taken if no count of its code is worse than the compiler's own, unless it gives
more waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from verilocc_bench.allocators.search.code_loop import CodeCosts
from verilocc_bench.allocators.search.code_refining import (
    collect_costs,
    costs_beside,
    descend,
    shuffled,
)
from verilocc_bench.allocators.search.fallbacks import place_by_orders
from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel, Space
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
"""One node of this number moves from one compiled answer to the next, in turn."""

_SHARES_BESIDE = (16, 64, 4)
"""The same near the compiler's own assignment, where few moves do better than many."""

_ATTEMPTS = 9
"""The most neighbours that are made to find one that was not compiled yet."""


@dataclass(frozen=True, slots=True)
class CompiledAnswers:
    """How many answers to compile, and the cost of an answer's machine code.

    `own` is the compiler's own assignment, if it is known. It does not count among them.
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


@dataclass
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
    _seen: set[tuple[bytes, ...]] = field(default_factory=set)

    def run(self, first: Placement, others: Iterator[Placement], budget: SearchBudget) -> None:
        """Compiles `first`, then `others`, then neighbours of the best.

        If the compiler's own assignment is known, it comes before `first`, and one near it
        after it. `others` are then left out: nearly all of them are worse in some count.
        """
        given: Iterator[tuple[Placement, bool]]
        given = ((placement, False) for placement in chain([first], others))
        if self.compiled.own is not None:
            own = {model.files: model.bases(self.compiled.own) for model in self.models}
            self._own_cost = self.compiled.cost(self.compiled.own)
            self._take(own, self._own_cost, from_own=True)
            near = self._descended(own, budget)
            is_new = self._key(near) not in self._seen
            given = iter([(first, False), *([(near, True)] if is_new else [])])
        for turn in range(self.compiled.count):
            placement, from_own = next(given, None) or self._new_neighbour(turn, budget.seed)
            if self._key(placement) not in self._seen:
                assignment: Assignment = {}
                for model in self.models:
                    assignment |= model.assignment(placement[model.files])
                self._take(placement, self.compiled.cost(assignment), from_own=from_own)

    @cached_property
    def _costs(self) -> tuple[dict[tuple[str, ...], CodeCosts], ...]:
        """The costs with those false dependences alone that need wait states, and with all."""
        stalls = [each for each in self.dependences if each.stalls]
        both = stalls, self.dependences
        return tuple({model.files: collect_costs(model, d) for model in self.models} for d in both)

    def _new_neighbour(self, turn: int, seed: int) -> tuple[Placement, bool]:
        """A neighbour of the best, and True if the best came from the compiler's own assignment.

        It was not compiled yet, unless all attempts give one that was.
        """
        best = self._best
        assert best is not None
        for attempt in range(_ATTEMPTS):
            own_seed = seed * 100_000 + attempt * 10_000 + turn
            found = self._neighbour(best, turn + attempt, own_seed)
            if self._key(found) not in self._seen:
                break
        return found, best.from_own

    def _neighbour(self, best: CompiledPlacement, turn: int, seed: int) -> Placement:
        """A placement near the best one.

        Near the compiler's own assignment few nodes move, so that the order of instructions
        stays nearly the same, and every second neighbour adds no false dependence.
        Elsewhere every second one may add false dependences that need no wait states.
        """
        placement = best.placement
        if not best.from_own:
            share = _SHARES[turn % len(_SHARES)]
            return self._shuffled(placement, self._costs[turn % 2], share, seed)
        share = _SHARES_BESIDE[turn // 2 % len(_SHARES_BESIDE)]
        if turn % 2:
            return self._descended(placement, SearchBudget(0, seed), share)
        return self._shuffled(placement, self._costs[1], share, seed)

    def _shuffled(
        self, best: Placement, costs: Mapping[tuple[str, ...], CodeCosts], share: int, seed: int
    ) -> Placement:
        return {
            files: shuffled(costs[files], bases, self.spaces[files], share, seed)
            for files, bases in best.items()
        }

    def _descended(self, best: Placement, budget: SearchBudget, share: int = 0) -> Placement:
        """A placement with lower costs that avoids false dependences which `best` has not.

        The descent takes the steps of the budget, or one step for `share` nodes.
        """
        found = {}
        for files, bases in best.items():
            steps = max(len(bases) // share, 1) if share else budget.steps
            costs = costs_beside(self._costs[1][files], bases)
            of_these = SearchBudget(steps, budget.seed)
            found[files] = descend(costs, bases, self.spaces[files], of_these)
        return found

    def _take(self, placement: Placement, cost: CodeCost, *, from_own: bool) -> None:
        self._seen.add(self._key(placement))
        worse = 0 if self._own_cost is None else cost.worse_counts(self._own_cost)
        rank = (-cost.waves, worse, int(cost.cycles is None), cost.total)
        found = CompiledPlacement(placement, rank, from_own)
        if self._best is None or found.rank < self._best.rank:
            self._best = found
            self.report(found)

    def _key(self, placement: Placement) -> tuple[bytes, ...]:
        return tuple(placement[model.files].tobytes() for model in self.models)
