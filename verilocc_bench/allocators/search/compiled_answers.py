"""Search for machine code by the compiler itself: compiles answers and keeps the best.

First come placements of different kinds, each refined: the one with the fewest false
dependences, and tight ones, whose false dependences keep the instructions nearly in
the order of the text. Then come placements near the best so far. Each is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verilocc_bench.allocators.search.code_refining import collect_costs, shuffled
from verilocc_bench.allocators.search.fallbacks import place_by_orders
from verilocc_bench.allocators.search.model import Integers, PlacementModel, Space
from verilocc_bench.allocators.search.placing import SearchBudget, Shapes
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS, collect_items
from verilocc_bench.allocators.search.refining import refine
from verilocc_bench.analysis.false_dependences import FalseDependence
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.search import Objective

Placement = dict[tuple[str, ...], Integers]
"""The node bases of each model, by its files."""

_SHARES = (1, 4, 16)
"""Of so many nodes one moves from one compiled answer to the next, in turn."""


@dataclass(frozen=True, slots=True)
class CompiledAnswers:
    """How many answers to compile, and the cost of an answer's machine code; less is better."""

    count: int
    cost: Callable[[Assignment], tuple[int, ...]]


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
class Climb:
    """A climb from placements to others nearby whose machine code is better.

    `spaces` has the bases that each model may use.
    """

    models: Sequence[PlacementModel]
    spaces: Mapping[tuple[str, ...], Space]
    dependences: Sequence[FalseDependence]
    compiled: CompiledAnswers

    def run(
        self,
        first: Placement,
        others: Iterator[Placement],
        seed: int,
        report: Callable[[Placement], None],
    ) -> None:
        """Compiles `first`, then `others`, then neighbours of the best; reports what is better."""
        best, least = first, self._cost(first)
        stalls = [each for each in self.dependences if each.stalls]
        # Every second neighbour may add false dependences, if they need no wait states.
        costs = [
            {model.files: collect_costs(model, dependences) for model in self.models}
            for dependences in (stalls, self.dependences)
        ]
        for turn in range(1, self.compiled.count):
            placement = next(others, None)
            if placement is None:
                share, own = _SHARES[turn % len(_SHARES)], seed * 100_000 + turn
                placement = {
                    files: shuffled(costs[turn % 2][files], bases, self.spaces[files], share, own)
                    for files, bases in best.items()
                }
            cost = self._cost(placement)
            if cost < least:
                best, least = placement, cost
                report(best)

    def _cost(self, placement: Placement) -> tuple[int, ...]:
        assignment: Assignment = {}
        for model in self.models:
            assignment |= model.assignment(placement[model.files])
        return self.compiled.cost(assignment)
