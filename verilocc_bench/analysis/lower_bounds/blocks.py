"""Blocks of a file, as tuples fill them over a window of cliques.

What fits at each point, and by residues at many, may still not fit together:
a tuple keeps the four units that it got, and where it ends, or some of its
lanes do, what it leaves must suit what comes next. A few cliques on end show
that, mostly around a point of high pressure; so windows of the cliques are
looked at, the short ones first, and of one length those with most lanes first.
See lower_bounds.block_program for the program that is solved for each.

Cost: a millisecond for a window of four cliques, ten to a hundred for sixteen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verilocc_bench.analysis.lower_bounds.block_program import (
    BlockResult,
    are_nested,
    solve_blocks,
)
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, Refutation, Shape
from verilocc_bench.analysis.lower_bounds.solver import solver_name
from verilocc_bench.analysis.problem import AllocationProblem

__all__ = ["refute_by_blocks"]

WINDOW_SIZES = (4, 8, 16)

MOST_EFFORT = 40_000
"""Variables of all programs together, each program counting for some more."""

PROGRAM_EFFORT = 20

PROGRAM_TIME = 0.1
"""Deterministic time for each program; most take a thousandth of that."""


def refute_by_blocks(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique]
) -> Refutation | None:
    """A few cliques, near each other, whose registers the blocks within a shape cannot hold.

    None where none was found, and where the shape has several files, or
    classes that are not aligned to their width. Raises MissingExtraError
    without the solver.
    """
    if not cliques or not are_nested(problem, [file for file, _ in shape]):
        return None
    effort = 0
    for window in _windows(cliques):
        if effort > MOST_EFFORT:
            return None
        result = solve_blocks(problem, shape, window, PROGRAM_TIME)
        effort += result.variables + PROGRAM_EFFORT
        if result.infeasible:
            return _reduced(problem, shape, window, result)
    return None


def _windows(cliques: Sequence[Clique]) -> Iterator[Sequence[Clique]]:
    """Neighbouring cliques, each window half over the next."""
    lanes = [len(clique.lanes) + len(clique.fixed) for clique in cliques]
    for size in WINDOW_SIZES:
        starts = range(0, max(len(cliques) - size // 2, 1), size // 2)
        for start in sorted(starts, key=lambda start: (-max(lanes[start : start + size]), start)):
            yield cliques[start : start + size]
        if size >= len(cliques):
            return


def _reduced(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], result: BlockResult
) -> Refutation:
    """Drops cliques as long as the others are infeasible."""
    kept = list(cliques)
    for clique in cliques:
        without = [other for other in kept if other is not clique]
        shorter = solve_blocks(problem, shape, without, PROGRAM_TIME)
        if shorter.infeasible:
            kept, result = without, shorter
    spent = result.deterministic_time
    return Refutation(BoundKind.BLOCKS, shape, tuple(kept), solver_name(), spent)
