"""Counts again how blocks of units can be filled, from the cliques of a refutation alone.

Registers are cut into pieces whose lengths are powers of two. The *kind* of a
piece is its length and the files of its class. A *place* is a run of units whose
length is a power of two. Two facts describe it: which kinds of pieces may start
at which of its units, by the legal bases of the classes that have such pieces,
and which (unit, clique) are taken. Equal places are counted together. The
longest places are filled first, with pieces of their own length; the places that
are left are cut in half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verilocc_bench.analysis.lower_bounds.records import Refutation
from verilocc_bench.analysis.lower_bounds.solver import load_cp_model, new_solver
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

DETERMINISTIC_TIME = 60.0

TOO_MANY = "there are too many ways to fill blocks: expected fewer cliques"
MOST_FILLINGS = 100_000

Cell = tuple[int, int]
"""(unit of a place, or lane of a piece; clique)."""


class PieceKind(NamedTuple):
    """The length of a piece, and the files of its class."""

    length: int
    files: tuple[str, ...]


Cut = tuple[tuple[int, int], ...]
"""(first lane, length) of each piece of a register."""

Sort = tuple[PieceKind, frozenset[Cell]]
"""A kind, and the cliques that contain each lane of its pieces."""


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Units, the (kind, unit) at which pieces may start, and the cells that are taken."""

    size: int
    starts: frozenset[tuple[PieceKind, int]]
    taken: frozenset[Cell]

    def halves(self) -> Iterator[BlockPlace]:
        """The lower units and the upper ones, each numbered from 0."""
        middle = self.size // 2
        for low in (0, middle):
            inside = range(low, low + middle)
            starts = frozenset((k, unit - low) for k, unit in self.starts if unit in inside)
            taken = frozenset((unit - low, q) for unit, q in self.taken if unit in inside)
            yield BlockPlace(middle, starts, taken)

    def fillings(self, sorts: list[Sort]) -> Iterator[tuple[tuple[Sort, ...], BlockPlace]]:
        """Pieces as long as the place that fit in it together, and the place with them in it."""
        yield (), self
        for number, (kind, cells) in enumerate(sorts):
            if (kind, 0) in self.starts and cells.isdisjoint(self.taken):
                place = BlockPlace(self.size, self.starts, self.taken | cells)
                for others, full in place.fillings(sorts[number + 1 :]):
                    yield ((kind, cells), *others), full


def no_filling_exists(problem: AllocationProblem, refutation: Refutation) -> bool:
    """True if no way to fill the places has room for all pieces of the cliques.

    Raises InputError if there are too many ways to fill them, and
    MissingExtraError without the solver.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    classes = problem.function.virtual_registers
    held = {classes[register] for clique in refutation.cliques for register, _ in clique.lanes}
    cuts = {c: _cut(problem, c) for c in held}
    pieces = _pieces(problem, refutation, cuts)
    model = cp_model.CpModel()
    size = max((kind.length for kind, _ in pieces), default=1)
    counts: dict[BlockPlace, cp_model.LinearExprT] = dict(_places(problem, refutation, size, cuts))
    while size > 1:
        try:
            counts = _fill(model, counts, _of_length(pieces, size), problem)
        except RecursionError:  # each piece that fits beside others is a call
            raise InputError(TOO_MANY) from None
        size //= 2
    _fill_units(model, counts, _of_length(pieces, 1))
    solver = new_solver(DETERMINISTIC_TIME, seed=1)
    solver.parameters.cp_model_presolve = False
    solver.parameters.catch_sigint_signal = False
    return bool(solver.solve(model) == cp_model.INFEASIBLE)


def _cut(problem: AllocationProblem, register_class: RegisterClass) -> Cut:
    """(first lane, length) of pieces that every legal base puts at a multiple of their length."""
    bases = [problem.placements.register(b).index for b in problem.placements.legal[register_class]]
    found: list[tuple[int, int]] = []
    lane = 0
    while lane < register_class.width:
        length = 1
        while lane + 2 * length <= register_class.width and not any(
            (base + lane) % (2 * length) for base in bases
        ):
            length *= 2
        found.append((lane, length))
        lane += length
    return tuple(found)


def _pieces(
    problem: AllocationProblem, refutation: Refutation, cuts: Mapping[RegisterClass, Cut]
) -> Counter[Sort]:
    """How many pieces of each sort the cliques hold; those without a lane in any are left out."""
    cells: dict[tuple[int, int, int], set[Cell]] = defaultdict(set)
    classes = problem.function.virtual_registers
    for number, clique in enumerate(refutation.cliques):
        for register, lane in clique.lanes:
            for first, length in cuts[classes[register]]:
                if first <= lane < first + length:
                    cells[register, first, length].add((lane - first, number))
    return Counter(
        (PieceKind(length, classes[register].files), frozenset(own))
        for (register, _, length), own in cells.items()
    )


def _of_length(pieces: Counter[Sort], length: int) -> dict[Sort, int]:
    return {sort: count for sort, count in pieces.items() if sort[0].length == length}


def _places(
    problem: AllocationProblem,
    refutation: Refutation,
    size: int,
    cuts: Mapping[RegisterClass, Cut],
) -> Counter[BlockPlace]:
    """The places that make up the files within their limits."""
    limits = dict(refutation.shape)
    starts: dict[tuple[str, int], set[tuple[PieceKind, int]]] = defaultdict(set)
    for register_class, pieces in cuts.items():
        for unit in problem.placements.legal[register_class]:
            base = problem.placements.register(unit)
            if base.index + register_class.width > limits.get(base.file, 0):
                continue
            for first, length in pieces:
                place, start = divmod(base.index + first, size)
                kind = PieceKind(length, register_class.files)
                starts[base.file, place].add((kind, start))
    taken: dict[tuple[str, int], set[Cell]] = defaultdict(set)
    for number, clique in enumerate(refutation.cliques):
        for file, unit in clique.fixed:
            taken[file, unit // size].add((unit % size, number))
    return Counter(
        BlockPlace(size, frozenset(starts[n]), frozenset(taken[n])) for n in sorted(starts)
    )


def _fill(
    model: cp_model.CpModel,
    counts: dict[BlockPlace, cp_model.LinearExprT],
    pieces: dict[Sort, int],
    problem: AllocationProblem,
) -> dict[BlockPlace, cp_model.LinearExprT]:
    """The places of half the size that are left once pieces fill the places of full size."""
    most = problem.placements.unit_count
    inside: dict[Sort, list[cp_model.IntVar]] = {sort: [] for sort in pieces}
    left: dict[BlockPlace, list[cp_model.IntVar]] = defaultdict(list)
    fillings = 0
    for place, count in counts.items():
        ways: list[cp_model.IntVar] = []
        for held, full in place.fillings(list(pieces)):
            fillings += 1
            if fillings > MOST_FILLINGS:
                raise InputError(TOO_MANY)
            ways.append(model.new_int_var(0, most, ""))
            for sort in held:
                inside[sort].append(ways[-1])
            for half in full.halves():
                left[half].append(ways[-1])
        model.add(sum(ways) == count)
    for sort, variables in inside.items():
        model.add(sum(variables) == pieces[sort])
    return {place: sum(variables) for place, variables in left.items()}


def _fill_units(
    model: cp_model.CpModel,
    counts: dict[BlockPlace, cp_model.LinearExprT],
    pieces: dict[Sort, int],
) -> None:
    """Puts pieces of one lane into free units; in no clique may they outnumber these units."""
    inside: dict[Sort, list[cp_model.IntVar]] = {sort: [] for sort in pieces}
    for place, count in counts.items():
        crowd: dict[Cell, list[cp_model.IntVar]] = defaultdict(list)
        for sort, number in pieces.items():
            kind, cells = sort
            if (kind, 0) in place.starts and cells.isdisjoint(place.taken):
                variable = model.new_int_var(0, number, "")
                inside[sort].append(variable)
                for cell in cells:
                    crowd[cell].append(variable)
        for variables in crowd.values():
            model.add(sum(variables) <= count)
    for sort, variables in inside.items():
        model.add(sum(variables) == pieces[sort])
