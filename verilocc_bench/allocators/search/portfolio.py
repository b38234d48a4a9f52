"""`best`: first-fit orders, tabu search, proofs and refinement, each from the result before.

Registers of files that are not scored only need a place. In the scored files
search lowers the number of registers as far as it can. If that stays above the
lower bound, CP-SAT decides if one register less is enough. If search finds no
placement at all, `best` tries all fallbacks (search.fallbacks). Refinement then
uses the remaining freedom for bank conflicts and copies, by the objective:

- `registers`: the fewest registers found, and at that number the least combined
  cost;
- `bank-conflicts`, `copies`, `combined`: the least cost at the occupancy of the
  fewest registers, with all the registers that this occupancy allows;
- `machine-code`: the same, with the cost of search.code_refining. Search for fewer
  registers ends where fewer would give no higher occupancy.

The combined cost is a sum over instructions, each weighted by ten to the power
of its loop depth (every loop is taken to run ten times): 2 for each register
that it reads from one bank beyond what the bank delivers at once, 2 for a copy
that remains, 1 for an encoding that another register would shorten (AMD: masks
outside VCC).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cached_property
from typing import NoReturn

from verilocc_bench.allocators.exact.minimizing import minimize as minimize_exactly
from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.search import placing
from verilocc_bench.allocators.search.code_refining import collect_costs, refine_code
from verilocc_bench.allocators.search.compiled_answers import (
    Climb,
    CompiledAnswers,
    CompiledPlacement,
    Placement,
    tight_placements,
)
from verilocc_bench.allocators.search.fallbacks import place_by_orders, place_otherwise
from verilocc_bench.allocators.search.found import Found
from verilocc_bench.allocators.search.options import (
    COMPILER,
    MOST_EXCLUSIONS,
    SEARCH,
    Means,
    SearchOptions,
)
from verilocc_bench.allocators.search.placement_model import (
    Integers,
    PlacementModel,
    Space,
    placement_models,
)
from verilocc_bench.allocators.search.placing import SearchBudget, Shapes, anneal_orders, minimize
from verilocc_bench.allocators.search.refinement_items import OBJECTIVE_WEIGHTS, collect_items
from verilocc_bench.allocators.search.refining import refine
from verilocc_bench.allocators.search.search_shapes import (
    least_ends,
    scalar_shapes,
    used_by_file,
    vector_shapes,
)
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.false_dependences import FalseDependence, false_dependences
from verilocc_bench.analysis.lower_bounds import (
    LowerBound,
    check_certificate,
    lower_bound,
    proves_infeasible,
    why_infeasible,
)
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.analysis.lower_bounds.search import BoundSearch
from verilocc_bench.analysis.lower_bounds.shapes import most_registers
from verilocc_bench.errors import AllocationFailed, ContradictionError
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.search import Objective

RESTARTS = 30
"""The factor on the steps for fresh starts of tabu search where the bound is not met."""

MOST_NODES_EXACTLY = 120
"""The most nodes for CP-SAT: with more it neither finds nor refutes what tabu search misses."""


class Search:
    """A search that can be interrupted; `found` is the best assignment so far.

    `start` is a known valid assignment: the result is never worse. `bound` is the
    lower bound on registers that is known so far.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        options: SearchOptions,
        means: Means = Means.PORTFOLIO,
        start: Assignment | None = None,
        compiled: CompiledAnswers | None = None,
    ) -> None:
        self.problem, self.options, self.means = problem, options, means
        self._start, self._compiled = start, compiled
        self._bounds = BoundSearch(problem, solver=False, schedule=False)
        self.bound = self._bounds.bound()
        self._unrefuted = most_registers(problem, VECTOR)
        self._models = placement_models(problem)
        self._scored = [model for model in self._models if self._is_scored(model)]
        self._placed: dict[tuple[str, ...], Integers] = {}
        self._sources: dict[tuple[str, ...], str] = {}
        self._file_bounds: dict[str, LowerBound] = {}

    @property
    def found(self) -> Found | None:
        """The best assignment so far; None while some virtual register has no place."""
        assignment: Assignment = {}
        for model in self._models:
            if model.files in self._placed:
                assignment |= model.assignment(self._placed[model.files])
        if len(assignment) < len(self.problem.function.virtual_registers):
            return None
        registers = self.problem.target.vector_use(self._used())
        sources = dict.fromkeys(self._sources.values())
        source = "+".join(sources) or SEARCH
        return Found(dict(sorted(assignment.items())), registers, self.bound, source)

    def run(self) -> Found:
        """Returns the best assignment found.

        Raises AllocationFailed if the search finds none or if none exists.
        Raises ContradictionError if an assignment contradicts a proof.
        """
        self._refuse_infeasible()
        # The registers of the scored files decide which other registers cost occupancy.
        for model in sorted(self._models, key=self._is_scored, reverse=True):
            self._place(model)
        if self.means is Means.PORTFOLIO and self._fewer_are_worth_more():
            self._prove()
        placed = dict(self._placed)
        if self.means in (Means.TABU, Means.PORTFOLIO):
            for model in self._models:
                self._refine(model)
        if self._compiled is not None:
            self._compare_compiled(self._compiled, placed)
        found = self.found
        assert found is not None
        check_against_answer(self.problem, found.bound.value, found.registers, found.source)
        return found

    def _fewer_are_worth_more(self) -> bool:
        """True if the objective pays for fewer registers than the placement has."""
        if self.options.objective is not Objective.MACHINE_CODE:
            return True
        used, occupancy = self._used(), self.problem.occupancy
        first, *others = self.problem.target.vector_files
        fewest = {**used, **dict.fromkeys(others, 0), first: self.bound.value}
        return occupancy(fewest) > occupancy(used)

    def _is_scored(self, model: PlacementModel) -> bool:
        return set(model.files) <= set(self.problem.target.vector_files)

    def _shapes(self, model: PlacementModel) -> Shapes:
        if not self._is_scored(model):
            return scalar_shapes(model)
        refute = self._bounds.refute
        return vector_shapes(model, self._beside(model), lambda shape: refute(shape) is not None)

    def _beside(self, model: PlacementModel) -> dict[str, int]:
        """The units of the other scored files that are taken, or that must be."""
        files = [file for file in self.problem.target.vector_files if file not in model.files]
        fixed = self.problem.fixed_ends
        beside = {file: fixed[file] for file in files}
        for other in self._models:
            if set(other.files) <= set(files):
                bases = self._placed.get(other.files)
                taken = self._needed(other) if bases is None else used_by_file(other, bases)
                for file, count in taken.items():
                    beside[file] = max(beside[file], count)
        return beside

    def _needed(self, model: PlacementModel) -> dict[str, int]:
        """The least units of each file that any placement of a model takes."""
        needed = least_ends(model)
        if len(model.files) == 1:
            (file,) = model.files
            needed[file] = max(needed[file], self._file_bound(file).value)
        return needed

    def _file_bound(self, file: str) -> LowerBound:
        """The lower bound on one file's registers without a solver."""
        if file not in self._file_bounds:
            self._file_bounds[file] = lower_bound(self.problem, file, solver=False)
        return self._file_bounds[file]

    def _used(self) -> dict[str, int]:
        """Highest index + 1 of each file, of the placed and the function's own registers."""
        used = dict(self.problem.fixed_ends)
        for model in self._models:
            if model.files in self._placed:
                for name, count in used_by_file(model, self._placed[model.files]).items():
                    used[name] = max(used[name], count)
        return used

    def _refuse_infeasible(self) -> None:
        """Raises AllocationFailed if a bound proves that no assignment is valid."""
        unscored = [m.files[0] for m in self._models if not self._is_scored(m)]
        # Pressure does not help here: it counts a class of several files for the first.
        for bound in (self.bound, *map(self._file_bound, unscored)):
            if proves_infeasible(self.problem, bound):
                check_certificate(self.problem, bound)
                self._fail(f"proved infeasible: {why_infeasible(self.problem, bound)}")
        for model in self._models:
            if not model.domain.any(axis=1).all():
                self._fail(
                    f"proved infeasible: ties or the function's own registers leave a virtual "
                    f"register no place in {'/'.join(model.files)}"
                )
        if any(not each.files for each in self.problem.function.virtual_registers):
            self._fail("proved infeasible: a class of the function has no register")

    def _fail(self, reason: str) -> NoReturn:
        """Raises AllocationFailed, or ContradictionError if a valid assignment is known."""
        if reason.startswith("proved"):
            self._check_against_known(reason)
        raise AllocationFailed(f"{reason}; live-range-splitting answers with edits")

    def _check_against_known(self, reason: str) -> None:
        """Raises ContradictionError if a known valid assignment contradicts a proof."""
        known = [("the compiler", self._start)] if self._start else []
        for name, allocator in (("linear-scan", linear_scan), ("graph-coloring", graph_coloring)):
            with contextlib.suppress(AllocationFailed):
                known.append((name, allocator(self.problem)))
        for name, assignment in known:
            if all(model.is_valid(model.bases(assignment)) for model in self._models):
                place = f"function {self.problem.id}"
                raise ContradictionError(f"{place}: {reason}; yet {name} has a valid answer")

    def _place(self, model: PlacementModel) -> None:
        """Places a model. Raises AllocationFailed if no method finds a placement."""
        shapes = self._shapes(model)
        if self._is_scored(model):
            bound = self.bound.value
            if len(self._scored) > 1:
                least = {**self._beside(model), **self._needed(model)}
                bound = self.problem.target.vector_use(least)
            if self.options.objective is Objective.MACHINE_CODE:
                bound = max(bound, self._most_without_loss(model, bound))
        else:
            bound = self._file_bound(model.files[0]).value
            bound = max(bound, self._most_without_loss(model, 0))
        known = None if self._start is None else model.bases(self._start)
        if self._minimize(model, shapes, bound, known) is not None:
            return
        files = "/".join(model.files)
        if self.means is Means.PORTFOLIO:
            try:
                other = place_otherwise(model, self.options)
            except AllocationFailed as error:
                self._fail(error.message)
            if other is not None:
                self._sources[model.files], bases = other
                self._minimize(model, shapes, bound, bases)
                return
        self._fail(f"unknown: no placement in {files} was found within the budget")

    def _minimize(
        self, model: PlacementModel, shapes: Shapes, bound: int, start: Integers | None
    ) -> Integers | None:
        options, report = self.options, self._reporter(model)
        if self.means is Means.ANNEALED_ORDERS:
            budget = SearchBudget(options.order_steps, options.seed)
            return anneal_orders(model, shapes, bound, budget, report)
        steps = 0 if self.means is Means.ORDERS else options.tabu_steps(len(model.nodes))
        budget = SearchBudget(steps, options.seed, start)
        if self.means is not Means.PORTFOLIO or not self._is_scored(model):
            return minimize(model, shapes, bound, budget, report)
        if options.brief and len(model.other) > MOST_EXCLUSIONS:
            shapes, budget = placing.brief(shapes, budget)
        else:
            budget = budget._replace(restarts=RESTARTS)
        return minimize(model, shapes, bound, budget, report, is_impossible=self._is_impossible)

    def _is_impossible(self, registers: int) -> bool:
        """True if a proof, known or found now, rules out so few registers of the scored files."""
        while self.bound.value <= registers < self._unrefuted:
            raised = self._bounds.raised(self.bound)
            if raised is None:
                self._unrefuted = self.bound.value
            else:
                self.bound = raised
        return registers < self.bound.value

    def _reporter(self, model: PlacementModel) -> Callable[[Integers], None]:
        def report(bases: Integers) -> None:
            self._placed[model.files] = bases

        return report

    def _prove(self) -> None:
        """Raises the bound or lowers the registers until they meet or the budget is spent."""
        registers = self._registers()
        self._is_impossible(registers - 1)
        nodes = sum(len(model.nodes) for model in self._scored)
        if registers > self.bound.value and nodes <= MOST_NODES_EXACTLY:
            best: Assignment = {}
            for model in self._scored:
                best |= model.assignment(self._placed[model.files])
            least = minimize_exactly(
                self.problem,
                deterministic_time=self.options.exact_time,
                best=best,
                seed=self.options.seed,
            )
            self.bound = least.bound
            assert least.assignment is not None
            for model in self._scored:
                self._placed[model.files] = model.bases(least.assignment)
        if self._registers() > self.bound.value:
            self._compare_with_orders()

    def _registers(self) -> int:
        return self.problem.target.vector_use(self._used())

    def _compare_with_orders(self) -> None:
        """Takes the placement of linear scan or graph colouring if it uses fewer registers."""
        for model in self._scored:
            for name, bases in place_by_orders(model):
                shapes = self._shapes(model)
                if shapes.used(bases) < shapes.used(self._placed[model.files]):
                    self._sources[model.files] = name
                    self._minimize(model, shapes, self.bound.value, bases)

    def _refine(self, model: PlacementModel) -> None:
        objective = self.options.objective
        space, bases = self._space(model), self._placed[model.files]
        report = self._reporter(model)
        if objective is Objective.MACHINE_CODE:
            budget = SearchBudget(self.options.code_steps, self.options.seed)
            refine_code(collect_costs(model, self._dependences), bases, space, budget, report)
            return
        budget = SearchBudget(self.options.anneal_steps, self.options.seed)
        refine(collect_items(model, OBJECTIVE_WEIGHTS[objective]), bases, space, budget, report)

    def _space(self, model: PlacementModel) -> Space:
        """The bases that refinement may choose from, by the objective."""
        shapes, bases = self._shapes(model), self._placed[model.files]
        registers = shapes.used(bases)
        if self.options.objective is not Objective.REGISTERS or not self._is_scored(model):
            registers = max(registers, self._most_without_loss(model, registers))
        return model.within(shapes.around(bases, registers))

    def _compare_compiled(self, compiled: CompiledAnswers, found: Placement) -> None:
        """Replaces the placement by others whose machine code is better; `found` is a tight one."""
        scored = [(model, self._shapes(model)) for model in self._scored]
        spaces = {model.files: self._space(model) for model in self._models}
        budget = SearchBudget(self.options.anneal_steps // 4, self.options.seed)
        first = dict(self._placed)
        others = tight_placements(scored, found, first, budget)
        sources = self._sources

        def take(better: CompiledPlacement) -> None:
            self._placed.update(better.placement)
            from_own = dict.fromkeys(better.placement, COMPILER)
            self._sources = from_own if better.from_own else sources

        climb = Climb(self._models, spaces, self._dependences, compiled, take)
        climb.run(first, others, budget)

    @cached_property
    def _dependences(self) -> list[FalseDependence]:
        return false_dependences(self.problem)

    def _most_without_loss(self, model: PlacementModel, registers: int) -> int:
        """The most registers of a model's files with the same occupancy as `registers`."""
        shapes, occupancy = self._shapes(model), self.problem.occupancy
        used, bases = self._used(), self._placed.get(model.files)

        def waves(count: int) -> int:
            return occupancy({**used, **shapes.around(bases, count)})

        least = waves(registers)
        while registers < shapes.most and waves(registers + 1) == least:
            registers += 1
        return registers
