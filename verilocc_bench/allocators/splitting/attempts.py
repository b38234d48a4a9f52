"""Attempts at splitting: plans that are carried out, with the places that search finds.

`carry_out` rewrites the function by a plan and looks for places. It begins with
the places of an earlier attempt for the same accesses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.allocators.spill_code import natural_class
from verilocc_bench.allocators.splitting.candidates import SplitPlan
from verilocc_bench.allocators.splitting.crowding import ACCUMULATORS, VGPRS, Crowding
from verilocc_bench.allocators.splitting.rewrite import Homes, Rewritten, rewrite
from verilocc_bench.allocators.splitting.split_placement import Placed, place_nodes
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import Assignment, PhysicalRegister, RegisterClass

Hints = Mapping[tuple[int, int, int], tuple[str, int]]
"""The place of lane 0 of a register, by register, block and instruction."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan that is carried out, with the places found."""

    plan: SplitPlan
    rewritten: Rewritten
    problem: AllocationProblem
    placed: tuple[Placed, ...]

    @property
    def left(self) -> int:
        """The number of registers without a place."""
        return sum(len(each.unplaced) for each in self.placed)

    def homeless(self) -> set[int]:
        """The units whose homes have no place."""
        homes = self.rewritten.home_unit
        registers = [
            each.model.nodes[node].members[0][0] for each in self.placed for node in each.unplaced
        ]
        return {homes[register] for register in registers if register in homes}

    def hints(self) -> Hints:
        """The place of each access."""
        places: Assignment = {}
        for each in self.placed:
            every = each.model.assignment(np.maximum(each.bases, 0))
            for node, base in zip(each.model.nodes, each.bases, strict=True):
                if base >= 0:
                    places |= {register: every[register] for register, _ in node.members}
        return {
            key: (places[web.name].file, places[web.name].index - web.first)
            for key, web in self.rewritten.webs.at.items()
            if web.name in places
        }


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """The effort of the search for places: steps of tabu search for each seed."""

    steps: int
    seeds: range = range(1)


def carry_out(
    crowding: Crowding,
    plan: SplitPlan,
    homeless: Collection[int],
    effort: SearchEffort,
    earlier: Attempt | None,
) -> Attempt:
    """Carries out a plan; the units `homeless` get spill slots as homes."""
    registers: dict[int, RegisterClass] = {}
    function = crowding.problem.function
    budgets = {file.name: file.count for file in function.files}
    if budgets.get(ACCUMULATORS):
        home = natural_class(crowding.problem.target, budgets, (ACCUMULATORS,), 1)
        for unit in {unit for unit, _ in plan.away}:
            if crowding.unit_files(unit) == (VGPRS,) and unit not in homeless:
                registers[unit] = home
    homes = Homes(registers, crowding.constants)
    rewritten = rewrite(crowding.problem, crowding.finder, plan, homes)
    problem = AllocationProblem(rewritten.function)
    hints = earlier.hints() if earlier is not None else {}
    placed = tuple(
        place_nodes(model, effort.steps, effort.seeds, _hint(model, rewritten, hints))
        for model in placement_models(problem)
        if crowding.files.issuperset(model.files)
    )
    return Attempt(plan, rewritten, problem, placed)


def _hint(model: PlacementModel, rewritten: Rewritten, hints: Hints) -> NDArray[np.int64] | None:
    """The bases of the nodes' accesses in an earlier placement."""
    if not hints:
        return None
    found: Assignment = {}
    for key, web in rewritten.webs.at.items():
        if key in hints and web.name not in found and web.name in model.node_of:
            file, index = hints[key]
            if index + web.first >= 0:
                found[web.name] = PhysicalRegister(file, index + web.first)
    return model.bases(found)
