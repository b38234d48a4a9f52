"""Refutes shapes by the way in which tuples fill blocks of a file over a window of cliques.

Registers that fit at each point, and by residues at many points, may still not
fit together: a tuple keeps its units, and where it or some of its lanes end, the
units that it leaves must suit the registers that come next. Two to six cliques
show that, mostly around a point of high pressure. The search looks at windows of
cliques, the short ones first, and of one length the ones with the
most lanes first. Longer windows leave out cliques: they take the one with the
most lanes out of every two, four or eight. lower_bounds.block_program has the
program that is solved for each window.

Cost: 1 ms for a window of four cliques, 10 to 100 ms for one of 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verilocc_bench.analysis.lower_bounds.block_program import BlockResult, solve_blocks
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, Refutation, Shape
from verilocc_bench.analysis.lower_bounds.solver import solver_name
from verilocc_bench.analysis.problem import AllocationProblem

LEVELS = ((4, 1), (8, 1), (8, 2), (8, 4), (16, 1), (8, 8), (16, 2), (32, 1))
"""(the cliques of a window, one of how many each stands for), in the order of their cost."""

LEVEL_EFFORT = 5_000
"""The most variables of all programs of a level; each program counts for some more.

Later levels may use what earlier ones leave.
"""

MOST_WINDOWS = 12
"""The most windows of a level: those with fewer lanes hardly ever refute what others do not."""

PROGRAM_EFFORT = 20

PROGRAM_TIME = 0.1
"""Deterministic time for each program, in seconds; most take a thousandth of it."""


def refute_by_blocks(
    problem: AllocationProblem,
    shape: Shape,
    cliques: Sequence[Clique],
    likely: Sequence[Clique] = (),
) -> Refutation | None:
    """A few cliques whose registers the blocks within a shape cannot hold.

    `likely` are cliques to try before all windows. None if the search finds no
    cliques. Raises MissingExtraError without the solver.
    """
    effort = 0
    for level, window in _in_turn(cliques, likely):
        if effort > level * LEVEL_EFFORT:
            continue
        result = solve_blocks(problem, shape, window, PROGRAM_TIME)
        effort += result.variables + PROGRAM_EFFORT
        if result.infeasible:
            return _reduced(problem, shape, window, result)
    return None


def _in_turn(
    cliques: Sequence[Clique], likely: Sequence[Clique]
) -> Iterator[tuple[int, Sequence[Clique]]]:
    """All windows in the order in which they are tried, each with the number of its level."""
    if likely:
        yield 0, likely
    for number, (size, stride) in enumerate(_levels(len(cliques)), start=1):
        for window in windows(cliques, size, stride):
            yield number, window


def _levels(count: int) -> list[tuple[int, int]]:
    """The levels whose windows hold more of `count` cliques than smaller levels' windows."""
    first, *others = LEVELS
    longer = [(size, stride) for size, stride in others if count > size // 2 * stride]
    return [first, *longer] if count else []


def windows(cliques: Sequence[Clique], size: int, stride: int) -> list[list[Clique]]:
    """The windows of a level with the most lanes, these first; each overlaps the next by half."""
    crowded = [
        max(cliques[first : first + stride], key=_lanes) for first in range(0, len(cliques), stride)
    ]
    starts = range(0, max(len(crowded) - size // 2, 1), size // 2)
    found = [crowded[start : start + size] for start in starts]
    return sorted(found, key=lambda window: -max(map(_lanes, window)))[:MOST_WINDOWS]


def _lanes(clique: Clique) -> int:
    return len(clique.lanes) + len(clique.fixed)


def _reduced(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], result: BlockResult
) -> Refutation:
    """Drops cliques while the rest stays infeasible: halves of the window, then single ones."""
    kept, size = list(cliques), max(len(cliques) // 2, 1)
    while size:
        place = 0
        while place < len(kept):
            without = kept[:place] + kept[place + size :]
            shorter = solve_blocks(problem, shape, without, PROGRAM_TIME)
            if shorter.infeasible:
                kept, result = without, shorter
            else:
                place += size
        size //= 2
    spent = result.deterministic_time
    return Refutation(BoundKind.BLOCKS, shape, tuple(kept), solver_name(), spent)
