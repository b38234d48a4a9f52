"""An integer program of counts: do tuples and single registers fit into blocks of a file?

Every register is cut into *pieces*: runs of lanes whose number is a power of
two, and which every legal base puts at a multiple of that number. A register
aligned to its width is one piece, a tuple of 16 at even bases is eight pairs.
Each piece lies within one *block*: an aligned run of as many units as the
widest piece has. Half a block holds the pieces of half the width, and so on.
Blocks whose units are free at the same cliques are interchangeable, and so are
halves. Pieces of one width with the same lanes in the same cliques are of one
*sort*. The program counts how many blocks of each sort hold which of the widest
pieces, which halves that leaves, how those are filled, and so on down to single
units. For single units it demands of every clique that the units that are free
there are enough.

Counting leaves no symmetry to search through; symmetry makes the usual models
of placement hopeless here. Three things are relaxed. Pieces of one register need
not be adjacent. A piece may lie in any file of the shape. Pieces of one lane,
whose cliques need not be consecutive, may fit by count and yet have to move.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.lower_bounds.records import Clique, Shape
from verilocc_bench.analysis.lower_bounds.solver import load_cp_model, new_solver
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import RegisterClass

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MOST_VARIABLES = 12_000
"""The most variables of a program: smaller windows of cliques are faster than one larger one."""

USABLE = 1
"""The bit that marks a unit as usable; each higher bit marks a clique at which it is free."""

Cells = tuple[int, ...]
"""For each unit of a block, or lane of a piece, a bit mask of cliques."""


@dataclass(frozen=True, slots=True)
class BlockResult:
    """The result of a program: whether it is proved infeasible, and the time and size it took."""

    infeasible: bool
    variables: int
    deterministic_time: float


def are_nested(problem: AllocationProblem, files: Sequence[str]) -> bool:
    """True for one file in which every register is one piece: aligned to its width, a power of two.

    There the program has never proved less than the residues of several cliques.
    """
    classes = [c for c in set(problem.function.virtual_registers) if set(c.files) & set(files)]
    return (
        len(files) == 1
        and bool(classes)
        and all(
            c.width & (c.width - 1) == 0 and not any(base % c.width for base in bases)
            for c in classes
            for bases in c.ranges
        )
    )


def solve_blocks(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], deterministic_time: float
) -> BlockResult:
    """Solves the program of some cliques within a shape.

    Raises MissingExtraError without the solver.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    pieces = _pieces(problem, cliques)
    program = _BlockProgram(cp_model.CpModel(), problem.placements.unit_count)
    width = max(pieces, default=1)
    supplies = _blocks(problem, shape, cliques, width)
    while width > 1:
        supplies = program.fill(supplies, width, pieces.get(width, Counter()))
        width //= 2
    program.fill_units(supplies, pieces.get(1, Counter()))
    if program.is_too_large:
        return BlockResult(False, program.variables, 0.0)
    solver = new_solver(deterministic_time)
    # There is nothing to simplify, and presolving took most of the time of small models.
    solver.parameters.cp_model_presolve = False
    # Solving is shorter than starting a thread for it, so Ctrl-C can wait.
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(program.model)
    spent = solver.response_proto.deterministic_time
    return BlockResult(status == cp_model.INFEASIBLE, program.variables, spent)


@lru_cache
def cut(register_class: RegisterClass) -> tuple[range, ...]:
    """The lanes of each piece of a class's registers, the widest possible first."""
    alignment = gcd(*(base for bases in register_class.ranges for base in bases))
    alignment = alignment & -alignment or register_class.width
    found, first = [], 0
    while first < register_class.width:
        left = 1 << (register_class.width - first).bit_length() - 1
        found.append(range(first, first + min(alignment, left)))
        first = found[-1].stop
    return tuple(found)


def _pieces(problem: AllocationProblem, cliques: Sequence[Clique]) -> dict[int, Counter[Cells]]:
    """By width: how many pieces have the same lanes in the same cliques, if any at all."""
    classes = problem.function.virtual_registers
    cells: dict[int, list[int]] = {}
    for number, clique in enumerate(cliques, 1):
        for register, lane in clique.lanes:
            own = cells.setdefault(register, [0] * classes[register].width)
            own[lane] |= 1 << number
    found: dict[int, Counter[Cells]] = defaultdict(Counter)
    for register, own in cells.items():
        for lanes in cut(classes[register]):
            piece = tuple(own[lanes.start : lanes.stop])
            if any(piece):
                found[len(lanes)][piece] += 1
    return found


@dataclass
class _Supply:
    """The number of blocks of one sort: a constant plus variables."""

    count: int = 0
    variables: list[cp_model.IntVar] = field(default_factory=list)

    @property
    def total(self) -> cp_model.LinearExprT:
        return sum(self.variables) + self.count


def _blocks(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], width: int
) -> dict[Cells, _Supply]:
    """The blocks within a shape by the cliques at which each unit is free."""
    reserved = problem.placements.reserved
    found: dict[Cells, _Supply] = defaultdict(_Supply)
    for file, limit in shape:
        first = problem.placements.first_unit[file]
        free = [0] * (-(-limit // width) * width)
        for unit in range(limit):
            if first + unit not in reserved:
                free[unit] = (2 << len(cliques)) - 1
        for number, clique in enumerate(cliques, 1):
            for name, unit in clique.fixed:
                if name == file and unit < limit:
                    free[unit] &= ~(1 << number)
        for start in range(0, len(free), width):
            found[tuple(free[start : start + width])].count += 1
    return found


class _BlockProgram:
    """The variables and constraints, width by width. No variable exceeds `most`."""

    def __init__(self, model: cp_model.CpModel, most: int) -> None:
        self.model, self.most = model, most
        self.variables = 0

    @property
    def is_too_large(self) -> bool:
        return self.variables > MOST_VARIABLES

    def fill(
        self, supplies: Mapping[Cells, _Supply], width: int, pieces: Mapping[Cells, int]
    ) -> dict[Cells, _Supply]:
        """Puts the pieces of a width into blocks of that width; returns the halves left free."""
        placed: dict[Cells, list[cp_model.LinearExprT]] = {cells: [] for cells in pieces}
        halves: dict[Cells, _Supply] = defaultdict(_Supply)
        for free, supply in supplies.items():
            fillings = _fillings(free, sorted(pieces), MOST_VARIABLES - self.variables)
            chosen = [self.new_variable() for _ in fillings]
            self.model.add(sum(chosen) == supply.total)
            for (held, left), variable in zip(fillings, chosen, strict=True):
                for cells in held:
                    placed[cells].append(variable)
                for half in (left[: width // 2], left[width // 2 :]):
                    if any(half):
                        halves[half].variables.append(variable)
            if self.is_too_large:
                break
        self.place_all(placed, pieces)
        return halves

    def fill_units(self, supplies: Mapping[Cells, _Supply], pieces: Mapping[Cells, int]) -> None:
        """Puts pieces of one lane into units that are free wherever they hold a value."""
        placed: dict[Cells, list[cp_model.LinearExprT]] = {cells: [] for cells in pieces}
        for (free,), supply in supplies.items():
            if self.is_too_large:
                break
            present: dict[int, list[cp_model.IntVar]] = defaultdict(list)
            for cells in pieces:
                if cells[0] & ~free == 0:
                    variable = self.new_variable()
                    placed[cells].append(variable)
                    for number in iterate_bits(cells[0]):
                        present[number].append(variable)
            for variables in present.values():
                self.model.add(sum(variables) <= supply.total)
        self.place_all(placed, pieces)

    def place_all(
        self, placed: Mapping[Cells, list[cp_model.LinearExprT]], pieces: Mapping[Cells, int]
    ) -> None:
        """Demands that every piece of each sort is somewhere."""
        for cells, count in pieces.items():
            self.model.add(sum(placed[cells]) == count)

    def new_variable(self) -> cp_model.IntVar:
        """A variable from 0 to `most`."""
        self.variables += 1
        return self.model.new_int_var(0, self.most, "")


def _fillings(
    free: Cells, pieces: Sequence[Cells], most: int
) -> list[tuple[tuple[Cells, ...], Cells]]:
    """The ways to put pieces into a block one after another, with the cells left free.

    Stops at `most` + 1 ways.
    """
    found: list[tuple[tuple[Cells, ...], Cells]] = []
    usable = all(unit & USABLE for unit in free)
    pending: list[tuple[tuple[Cells, ...], Cells, int]] = [((), free, 0)]
    while pending and len(found) <= most:
        held, left, first = pending.pop()
        found.append((held, left))
        for number in range(first, len(pieces)) if usable else ():
            cells = pieces[number]
            if all(lane & ~unit == 0 for lane, unit in zip(cells, left, strict=True)):
                rest = tuple(unit & ~lane for lane, unit in zip(cells, left, strict=True))
                pending.append(((*held, cells), rest, number + 1))
    return found
