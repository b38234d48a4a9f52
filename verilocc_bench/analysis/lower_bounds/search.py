"""The best lower bound that the relaxations give, from pressure up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.block_program import are_nested
from verilocc_bench.analysis.lower_bounds.blocks import refute_by_blocks
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.lower_bounds.residue_schedule import refute_by_schedule
from verilocc_bench.analysis.lower_bounds.shapes import file_group, most_registers, shapes_of_value
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem

if TYPE_CHECKING:
    from verilocc_bench.analysis.lower_bounds.demands import Demands

SCHEDULE_TIME = 2.0
"""Deterministic seconds for each question to the solver; most take 0.1."""


def lower_bound(
    problem: AllocationProblem,
    group: str = VECTOR,
    *,
    solver: bool = True,
    schedule: bool = True,
    known: int | None = None,
) -> LowerBound:
    """A proved lower bound on the registers that any valid assignment uses.

    `group` is `vector`, the scored files, or the name of another file. Without
    `solver` the bound is of kind `pressure` or `residues`, takes some
    milliseconds, and needs no package beyond the core's. Without `schedule` the
    slowest kind is left out. `known` is the number of registers of some valid
    assignment; the search ends when the bound meets it. Raises MissingExtraError
    if `solver` is true and the solver is not installed.
    """
    return BoundSearch(problem, group, solver=solver, schedule=schedule).bound(known)


class BoundSearch:
    """The search for a bound of one group of files, shape by shape."""

    def __init__(
        self,
        problem: AllocationProblem,
        group: str = VECTOR,
        *,
        solver: bool,
        schedule: bool,
    ) -> None:
        self.problem, self.group, self.solver = problem, group, solver
        self.schedule = schedule
        self.files = file_group(problem.function, problem.target, group)
        self._by_blocks: dict[Shape, Refutation | None] = {}
        self._likely: tuple[Clique, ...] = ()

    @cached_property
    def demands(self) -> Demands:
        """The demands of the group's files."""
        # numpy takes longer to import than all of the package.
        from verilocc_bench.analysis.lower_bounds.demands import Demands

        return Demands.of(self.problem, self.files)

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques of the group's points."""
        return maximal_cliques(self.problem, self.files)

    def shapes(self, value: int) -> tuple[Shape, ...]:
        """The shapes of a value."""
        return shapes_of_value(self.problem, self.group, value)

    def refute(self, shape: Shape) -> Refutation | None:
        """A refutation of a shape by the first kind that gives one, the cheap ones first."""
        refutation = self._refute_by_residues(shape)
        if refutation is not None or not self.solver:
            return refutation
        refutation = self._refute_by_blocks(shape)
        if refutation is not None or not self.schedule or are_nested(self.problem, self.files):
            # Where registers are nested, the schedule has never proved more than the blocks.
            return refutation
        return refute_by_schedule(self.problem, shape, self.cliques, SCHEDULE_TIME)

    def _refute_by_residues(self, shape: Shape) -> Refutation | None:
        from verilocc_bench.analysis.lower_bounds.residues import refute_by_residues

        return refute_by_residues(self.demands, shape)

    def _refute_by_blocks(self, shape: Shape) -> Refutation | None:
        """Calls refute_by_blocks, once for each shape; the cliques of the last one come first."""
        if shape not in self._by_blocks:
            found = refute_by_blocks(self.problem, shape, self.cliques, self._likely)
            self._by_blocks[shape] = found
            if found is not None:
                self._likely = found.cliques
        return self._by_blocks[shape]

    def raised(self, bound: LowerBound) -> LowerBound | None:
        """The bound that is larger by one, or None if residues and blocks do not prove it.

        Raises MissingExtraError without the solver.
        """
        found = self._refutations(
            bound.value, lambda s: self._refute_by_residues(s) or self._refute_by_blocks(s)
        )
        return None if found is None else self.made(bound.value + 1, found)

    def bound(self, known: int | None = None) -> LowerBound:
        """The largest value such that every shape of one register less is refuted.

        If nothing fits at all, the value is one more than any assignment could
        use (see `most_registers`): a proof that no valid assignment exists.
        The search does not try values from `known` on.
        """
        value = self._least()
        while (refutations := self._refutations(value - 1, self.refute)) is None:
            # Pressure counts a class of several files for the first. No class here has others.
            value -= 1
        last = most_registers(self.problem, self.group) if known is None else known - 1
        ways = [self._refute_by_residues, *([self.refute] if self.solver else [])]
        for refute in ways:
            if known is not None and value <= last and refute == self.refute:
                # Lanes that do not fit into more units do not fit into fewer, so one step is
                # mostly enough.
                found = self._refutations(last, self._refute_by_blocks)
                if found is not None:
                    return self.made(known, found)
            while value <= last:
                found = self._refutations(value, refute)
                if found is None:
                    break
                refutations = found
                value += 1
        return self.made(value, refutations)

    def _refutations(
        self, value: int, refute: Callable[[Shape], Refutation | None]
    ) -> tuple[Refutation, ...] | None:
        """Refutations of all shapes of a value; None if one of them may have room."""
        found: list[Refutation] = []
        for shape in self.shapes(value):
            refutation = refute(shape)
            if refutation is None:
                return None
            found.append(refutation)
        return tuple(found)

    def made(self, value: int, refutations: tuple[Refutation, ...]) -> LowerBound:
        """A bound from the refutations of all shapes of `value` - 1."""
        kinds = [refutation.kind for refutation in refutations]
        order = list(BoundKind)
        strongest = max(kinds, key=order.index, default=BoundKind.PRESSURE)
        return LowerBound(self.group, value, strongest, refutations)

    def _least(self) -> int:
        """The larger of the pressure and the use of the function's own physical registers."""
        ends, pressure = self.problem.fixed_ends, self.problem.pressure.maximum
        if self.group != VECTOR:
            # A single one of the scored files has no pressure of its own.
            return max(ends[self.group], pressure.get(self.group, 0))
        fixed = {file: ends[file] for file in self.problem.target.vector_files}
        return max(self.problem.target.vector_use(fixed), pressure[VECTOR])
