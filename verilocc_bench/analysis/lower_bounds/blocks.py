"""Refutes shapes by the way in which tuples fill blocks of a file over a window of cliques.

Registers that fit at each point, and by residues at many points, may still not
fit together: a tuple keeps its four units, and where it or some of its lanes
end, the units that it leaves must suit the registers that come next. A few
consecutive cliques show that, mostly around a point of high pressure. The
search looks at windows of cliques, the short ones first, and among those of one
length the ones with the most lanes first. lower_bounds.block_program has the
program that is solved for each window.

Cost: 1 ms for a window of four cliques, 10 to 100 ms for one of sixteen.
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

WINDOW_SIZES = (4, 8, 16)

MOST_EFFORT = 40_000
"""The most variables of all programs together; each program counts for some more."""

PROGRAM_EFFORT = 20

PROGRAM_TIME = 0.1
"""Deterministic time for each program, in seconds; most take a thousandth of it."""


def refute_by_blocks(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique]
) -> Refutation | None:
    """A few neighbouring cliques whose registers the blocks within a shape cannot hold.

    None if the search finds no such cliques, if the shape has several files, or
    if a class is not aligned to its width. Raises MissingExtraError without the
    solver.
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
    """Windows of neighbouring cliques; each overlaps the next by half."""
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
    """Drops cliques as long as the rest stays infeasible."""
    kept = list(cliques)
    for clique in cliques:
        without = [other for other in kept if other is not clique]
        shorter = solve_blocks(problem, shape, without, PROGRAM_TIME)
        if shorter.infeasible:
            kept, result = without, shorter
    spent = result.deterministic_time
    return Refutation(BoundKind.BLOCKS, shape, tuple(kept), solver_name(), spent)
