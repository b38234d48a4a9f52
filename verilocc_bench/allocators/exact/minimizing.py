"""The fewest registers: one question for each shape, from the lower bound up.

The search tries values from the bound upwards until one is feasible. If the
solver finds a shape infeasible, it is asked once more about a few points, so
that the bound rises with a refutation that can be checked (kind `placement`). A
shape that is undecided, or infeasible only as a whole, does not raise the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.allocators.exact.exact_placing import ExactStatus, solve
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.allocators.search.search_shapes import used_by_file
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds.cliques import other_pairs
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.lower_bounds.search import BoundSearch
from verilocc_bench.analysis.lower_bounds.shapes import most_registers
from verilocc_bench.analysis.lower_bounds.solve_again import no_placement_exists
from verilocc_bench.analysis.lower_bounds.solver import solver_name
from verilocc_bench.ir import Assignment

CORE_SIZES = (1, 2, 4, 8, 16, 32)
"""The numbers of points, around the one with the most lanes, to try for a refutation."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """The best known assignment of the vector files' registers, and the proved bound.

    `assignment` holds these registers alone. `assignment` and `registers` are
    None if none was found. `undecided` are the values below it that the solver
    did not decide within its budget. `uncertified` are the values that it found
    infeasible, but not by cliques alone (because of ties).
    """

    assignment: Assignment | None
    registers: int | None
    bound: LowerBound
    undecided: tuple[int, ...]
    uncertified: tuple[int, ...]
    deterministic_time: float

    @property
    def is_optimal(self) -> bool:
        """True if no valid assignment uses fewer registers."""
        return self.registers is not None and self.registers == self.bound.value


def minimize(
    problem: AllocationProblem,
    *,
    deterministic_time: float,
    best: Assignment | None = None,
    most: int | None = None,
    seed: int = 0,
) -> Minimum:
    """Looks for the fewest registers of the vector files.

    `deterministic_time` is the budget of each question, `best` a known valid
    assignment to beat, and `most` the largest value to try. A KeyboardInterrupt
    is not caught. Raises MissingExtraError without the solver.
    """
    return _Minimizing(problem, deterministic_time, seed).run(best, most)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome for a value: an assignment, refutations of all its shapes, or undecided."""

    assignment: Assignment | None
    refutations: tuple[Refutation, ...] | None
    undecided: bool


class _Minimizing:
    def __init__(self, problem: AllocationProblem, budget: float, seed: int) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self.search = BoundSearch(problem, VECTOR, solver=True, schedule=True)
        files = set(self.search.files)
        self.models = [m for m in placement_models(problem) if not files.isdisjoint(m.files)]
        self.spent = 0.0

    def run(self, best: Assignment | None, most: int | None) -> Minimum:
        known = None if best is None else self.registers(best)
        bound = self.search.bound(known)
        if known is not None:
            check_against_answer(self.problem, bound.value, known, "the assignment to be beaten")
        largest = most_registers(self.problem, VECTOR)
        last = largest if known is None else known - 1
        undecided: list[int] = []
        uncertified: list[int] = []
        for value in range(bound.value, min(last, largest if most is None else most) + 1):
            outcome = self.try_value(value, best)
            if outcome.assignment is not None:
                best, known = outcome.assignment, self.registers(outcome.assignment)
                break
            if outcome.undecided:
                undecided.append(value)
            elif outcome.refutations is None or undecided or uncertified:
                uncertified.append(value)
            else:
                bound = self.search.made(value + 1, outcome.refutations)
        if best is not None:
            own = {register for model in self.models for register in model.node_of}
            best = {register: base for register, base in best.items() if register in own}
        return Minimum(best, known, bound, tuple(undecided), tuple(uncertified), self.spent)

    def registers(self, assignment: Assignment) -> int:
        """The registers of the vector files that an assignment and the function itself use."""
        used = dict(self.problem.fixed_ends)
        for model in self.models:
            for file, end in used_by_file(model, model.bases(assignment)).items():
                used[file] = max(used[file], end)
        return self.problem.target.vector_use(used)

    def try_value(self, value: int, hint: Assignment | None) -> _Outcome:
        """The outcome for one value."""
        refutations: list[Refutation] = []
        undecided, certified = False, True
        for shape in self.search.shapes(value):
            refutation = self.search.refute(shape)
            if refutation is None:
                found, infeasible = self.place(shape, hint)
                if found is not None:
                    return _Outcome(found, None, False)
                refutation = self.core(shape) if infeasible else None
                undecided |= not infeasible
            if refutation is None:
                certified = False
            else:
                refutations.append(refutation)
        return _Outcome(None, tuple(refutations) if certified else None, undecided)

    def place(self, shape: Shape, hint: Assignment | None) -> tuple[Assignment | None, bool]:
        """An assignment within a shape, or None; and True if none exists."""
        assignment: Assignment = {}
        for model in self.models:
            bases = None if hint is None else model.bases(hint)
            limits = {file: limit for file, limit in shape if file in model.files}
            result = solve(
                model, limits, deterministic_time=self.budget, hint=bases, seed=self.seed
            )
            self.spent += result.deterministic_time
            if result.bases is None:
                return None, result.status is ExactStatus.INFEASIBLE
            assignment |= model.assignment(result.bases)
        return assignment, False

    def core(self, shape: Shape) -> Refutation | None:
        """A refutation by a few points, if they are infeasible by themselves."""
        for cliques in self._windows():
            refutation = Refutation(BoundKind.PLACEMENT, shape, cliques, solver_name())
            if no_placement_exists(self.problem, refutation, self.budget):
                return refutation
        return None

    def _windows(self) -> Iterator[tuple[Clique, ...]]:
        cliques = self.search.cliques
        hottest = max(range(len(cliques)), key=lambda n: len(cliques[n].lanes), default=0)
        for size in (size for size in CORE_SIZES if size < len(cliques)):
            first = max(hottest - size // 2, 0)
            yield cliques[first : first + size]
        yield cliques + other_pairs(self.problem, self.search.files)
