"""The best lower bound that the relaxations give, from pressure up."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.lower_bounds.residue_schedule import refute_by_schedule
from verilocc_bench.analysis.lower_bounds.shapes import file_group, fixed_ends, shapes_of_value
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem

if TYPE_CHECKING:
    from verilocc_bench.analysis.lower_bounds.demands import Demands

__all__ = ["SCHEDULE_TIME", "BoundSearch", "lower_bound"]

SCHEDULE_TIME = 2.0
"""Deterministic time for each question to the solver; most take 0.1."""


def lower_bound(
    problem: AllocationProblem,
    group: str = VECTOR,
    *,
    solver: bool = True,
    known: int | None = None,
) -> LowerBound:
    """A proved lower bound on the registers that any valid assignment uses.

    `group` is `vector`, for what is scored, or the name of another file.
    Without `solver` the bound is of kind `pressure` or `residues`, takes some
    milliseconds, and needs no package beyond the core's. `known`: what some
    valid assignment uses; the search ends where the bound meets it. Raises
    MissingExtraError where the solver is asked for and is not installed.
    """
    return BoundSearch(problem, group, solver=solver).bound(known)


class BoundSearch:
    """The search for a bound of one group of files, shape by shape."""

    def __init__(self, problem: AllocationProblem, group: str = VECTOR, *, solver: bool) -> None:
        self.problem, self.group, self.solver = problem, group, solver
        self.files = file_group(problem.function, problem.target, group)

    @cached_property
    def demands(self) -> Demands:
        """What points want of each kind of unit."""
        # numpy takes longer to import than all of the package.
        from verilocc_bench.analysis.lower_bounds.demands import Demands

        return Demands.of(self.problem, self.files)

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques of the group's points."""
        return maximal_cliques(self.problem, self.files)

    def shapes(self, value: int) -> tuple[Shape, ...]:
        """The shapes of a value."""
        return shapes_of_value(self.problem.function, self.problem.target, self.group, value)

    def refute(self, shape: Shape) -> Refutation | None:
        """A refutation of a shape by the weakest kind that gives one, if some kind does."""
        from verilocc_bench.analysis.lower_bounds.residues import refute_by_residues

        refutation = refute_by_residues(self.demands, shape)
        if refutation is None and self.solver:
            refutation = refute_by_schedule(self.problem, shape, self.cliques, SCHEDULE_TIME)
        return refutation

    def bound(self, known: int | None = None) -> LowerBound:
        """The largest value of which every shape of one less is refuted.

        Where nothing fits at all, it is one more than everything. Values from
        `known` on are not tried.
        """
        value = self._least()
        while (refutations := self._refutations(value - 1)) is None:
            # Pressure counts classes of several files for the first; none here is in others.
            value -= 1
        last = self._most() if known is None else known - 1
        while value <= last:
            found = self._refutations(value)
            if found is None:
                break
            refutations = found
            value += 1
        return self.made(value, refutations)

    def _refutations(self, value: int) -> tuple[Refutation, ...] | None:
        """Refutations of all shapes of a value; None where one of them may have room."""
        found: list[Refutation] = []
        for shape in self.shapes(value):
            refutation = self.refute(shape)
            if refutation is None:
                return None
            found.append(refutation)
        return tuple(found)

    def made(self, value: int, refutations: tuple[Refutation, ...]) -> LowerBound:
        """A bound from the refutations of all shapes of one less."""
        kinds = [refutation.kind for refutation in refutations]
        order = list(BoundKind)
        strongest = max(kinds, key=order.index, default=BoundKind.PRESSURE)
        return LowerBound(self.group, value, strongest, refutations)

    def _least(self) -> int:
        """What the function's own physical registers come to, or what pressure says if more."""
        ends = fixed_ends(self.problem.function)
        if self.group != VECTOR:
            return ends[self.group]
        fixed = {file: ends[file] for file in self.problem.target.vector_files}
        least = self.problem.target.vector_use(fixed)
        return max(least, self.problem.pressure.maximum[VECTOR])

    def _most(self) -> int:
        files = self.problem.target.files
        if self.group != VECTOR:
            return next(file.count for file in files if file.name == self.group)
        return self.problem.target.vector_use({file.name: file.count for file in files})
