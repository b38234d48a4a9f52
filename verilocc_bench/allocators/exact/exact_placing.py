"""Places the nodes of a model within limits, or proves that they do not fit.

Every node has one integer variable, its base, among the legal ones. At each
point whose lanes no other point contains, `NoOverlap` keeps apart the lanes that
surely hold values together. Its intervals have a fixed size, one for adjacent
lanes of a node, and are shared between points; reserved and fixed units are
intervals, too. Some exclusions are between other lanes: if an answer violates
any, they are added and the solver is asked again. So an infeasible model stays
infeasible with the missing exclusions, and a feasible answer has no conflict.

The formulation is the usual one of scheduling. As a search it is far slower than
compiled local search; it is useful where local search gives up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.placement_model import PlacementModel
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.records import Clique
from verilocc_bench.analysis.lower_bounds.solver import (
    load_cp_model,
    new_solver,
    solve_interruptibly,
)

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Bases = NDArray[np.int64]


class ExactStatus(StrEnum):
    """The result of the solver; `unknown` if it used up its budget."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ExactResult:
    """The status, with the base of every node if feasible."""

    status: ExactStatus
    bases: Bases | None
    deterministic_time: float


def solve(
    model: PlacementModel,
    limits: Mapping[str, int],
    *,
    deterministic_time: float,
    hint: Bases | None = None,
    seed: int = 0,
) -> ExactResult:
    """Places all nodes within the first `limits[file]` units of each file that is named.

    `hint` are bases to begin with, -1 for none. The same input gives the same
    result. A unit of deterministic time takes up to a minute on these models. A
    KeyboardInterrupt ends the search at once. Raises MissingExtraError without
    the solver.
    """
    load_cp_model()
    return _Placing(model, limits, hint).run(deterministic_time, seed)


class _Placing:
    def __init__(
        self, model: PlacementModel, limits: Mapping[str, int], hint: Bases | None
    ) -> None:
        from ortools.sat.python import cp_model

        self.model = model
        self.allowed = model.within(limits).allowed
        self.program = cp_model.CpModel()
        self.variables: list[cp_model.IntVar] = []
        for number in range(len(model.nodes)):
            domain = cp_model.Domain.from_values(np.flatnonzero(self.allowed[number]).tolist())
            self.variables.append(self.program.new_int_var_from_domain(domain, ""))
            if hint is not None and hint[number] >= 0 and self.allowed[number, hint[number]]:
                self.program.add_hint(self.variables[number], int(hint[number]))
        self.intervals: dict[tuple[int, int, int], cp_model.IntervalVar] = {}
        for clique in maximal_cliques(model.problem, model.files):
            self.program.add_no_overlap(
                [self.interval(node, first, count) for node, first, count in self.runs(clique)]
            )

    def interval(self, node: int, first: int, count: int) -> cp_model.IntervalVar:
        """The interval of adjacent lanes of a node; of fixed units for node -1."""
        key = node, first, count
        if key not in self.intervals:
            start = first if node < 0 else self.variables[node] + first
            self.intervals[key] = self.program.new_fixed_size_interval_var(start, count, "")
        return self.intervals[key]

    def runs(self, clique: Clique) -> Sequence[tuple[int, int, int]]:
        """The runs of a clique's lanes: (node or -1 for fixed, first unit less its base, count)."""
        placements, first_unit = self.model.problem.placements, self.model.first_unit
        units = {placements.first_unit[file] + index for file, index in clique.fixed}
        held = [(-1, unit - first_unit) for unit in units | placements.reserved]
        held = [(node, unit) for node, unit in held if 0 <= unit < self.model.unit_count]
        for register, lane in clique.lanes:
            node, offset = self.model.node_of[register]
            held.append((node, offset + lane))
        runs: list[tuple[int, int, int]] = []
        for node, unit in sorted(held):
            if runs and runs[-1][0] == node and runs[-1][1] + runs[-1][2] == unit:
                runs[-1] = node, runs[-1][1], runs[-1][2] + 1
            else:
                runs.append((node, unit, 1))
        return runs

    def run(self, budget: float, seed: int) -> ExactResult:
        from ortools.sat.python import cp_model

        spent = 0.0
        if not self.allowed.any(axis=1).all():
            return ExactResult(ExactStatus.INFEASIBLE, None, spent)
        while spent < budget:
            solver = new_solver(budget - spent, seed)
            # The linear relaxation hardly helps here. Probing takes most of the time, and the
            # solver's own clock does not count it.
            solver.parameters.linearization_level = 0
            solver.parameters.cp_model_probing_level = 0
            status = solve_interruptibly(solver, self.program)
            spent += solver.response_proto.deterministic_time
            if status == cp_model.INFEASIBLE:
                return ExactResult(ExactStatus.INFEASIBLE, None, spent)
            if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
                break
            bases = np.array([solver.value(variable) for variable in self.variables], np.int64)
            if not self.forbid_violated(bases):
                assert self.model.is_valid(bases)
                return ExactResult(ExactStatus.FEASIBLE, bases, spent)
        return ExactResult(ExactStatus.UNKNOWN, None, spent)

    def forbid_violated(self, bases: Bases) -> bool:
        """Adds the exclusions of the pairs that collide. True if there are any."""
        from ortools.sat.python import cp_model

        model, owner = self.model, self._owner
        collides = bases[owner] - bases[model.other] == model.distance
        pairs = {(int(owner[k]), int(model.other[k])) for k in np.flatnonzero(collides)}
        for a, b in sorted(pair for pair in pairs if pair[0] < pair[1]):
            apart = cp_model.Domain.from_values(self._distances[a, b]).complement()
            difference = self.variables[a] - self.variables[b]
            self.program.add_linear_expression_in_domain(difference, apart)
        return bool(pairs)

    @cached_property
    def _owner(self) -> Bases:
        return np.repeat(np.arange(len(self.model.nodes)), np.diff(self.model.start))

    @cached_property
    def _distances(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        columns = self._owner.tolist(), self.model.other.tolist(), self.model.distance.tolist()
        for a, b, distance in zip(*columns, strict=True):
            found[a, b].append(distance)
        return found
