"""Whether tuples and single registers fit into blocks of a file, as a program of counts.

Where every register is aligned to its width, a power of two, each lies within
one *block*: as many units, aligned, as the widest has. Halves of a block hold
what is half as wide, and so on. Blocks whose units are free at the same cliques
are interchangeable, and so are halves; registers of one width with the same
lanes in the same cliques are *alike*. The program counts: how many blocks of
each sort are filled with which of the widest registers, what that leaves of
their halves, how those are filled, down to single units. There it counts how
many registers that hold a value in certain cliques are in units free at least
at those, and no clique may find more of them than there are such units.

That leaves no symmetry to search through, which is what makes a solver's
ordinary models of placement hopeless here. Only the last step leaves something
out: single registers, whose cliques need not be consecutive, may fit by count
and yet not without moving.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.records import Clique, Shape
from verilocc_bench.analysis.lower_bounds.solver import load_cp_model, new_solver
from verilocc_bench.analysis.problem import AllocationProblem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["BlockResult", "are_nested", "solve_blocks"]

MOST_VARIABLES = 12_000
"""Programs of more are not built: they take longer than smaller windows of cliques."""

USABLE = 1
"""The bit of a unit that registers may have at all; those above are free cliques."""

Cells = tuple[int, ...]
"""For each unit of a block, or lane of a register, a bit mask of cliques."""


@dataclass(frozen=True, slots=True)
class BlockResult:
    """What came of it: infeasible, or perhaps not, and what it took."""

    infeasible: bool
    variables: int
    deterministic_time: float


def are_nested(problem: AllocationProblem, files: Sequence[str]) -> bool:
    """Whether it is one file, in which every class is aligned to its width, a power of two."""
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
    """Whether the program of some cliques within a shape of one file is infeasible.

    `are_nested` must hold of the file. Raises MissingExtraError without the
    solver.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    registers = _registers(problem, cliques)
    program = _BlockProgram(cp_model.CpModel(), problem.placements.unit_count)
    width = max(registers, default=1)
    supplies = _blocks(problem, shape, cliques, width)
    while width > 1:
        supplies = program.fill(supplies, width, registers.get(width, Counter()))
        width //= 2
    program.fill_units(supplies, registers.get(1, Counter()))
    if program.is_too_large:
        return BlockResult(False, program.variables, 0.0)
    solver = new_solver(deterministic_time)
    # There is nothing to simplify, and of many small models most of the time went into it.
    solver.parameters.cp_model_presolve = False
    # Soon over: Ctrl-C waits until then, which is sooner than a thread of its own would start.
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(program.model)
    spent = solver.response_proto.deterministic_time
    return BlockResult(status == cp_model.INFEASIBLE, program.variables, spent)


def _registers(problem: AllocationProblem, cliques: Sequence[Clique]) -> dict[int, Counter[Cells]]:
    """By width: the cliques that each lane is in, and how many registers are so."""
    classes = problem.function.virtual_registers
    cells: dict[int, list[int]] = {}
    for number, clique in enumerate(cliques, 1):
        for register, lane in clique.lanes:
            own = cells.setdefault(register, [0] * classes[register].width)
            own[lane] |= 1 << number
    found: dict[int, Counter[Cells]] = defaultdict(Counter)
    for own in cells.values():
        found[len(own)][tuple(own)] += 1
    return found


@dataclass
class _Supply:
    """How many blocks there are of one sort: a constant and variables."""

    count: int = 0
    variables: list[cp_model.IntVar] = field(default_factory=list)

    @property
    def total(self) -> cp_model.LinearExprT:
        return sum(self.variables) + self.count


def _blocks(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], width: int
) -> dict[Cells, _Supply]:
    """The blocks within a shape: at which cliques each unit is free."""
    ((file, limit),) = shape
    first = problem.placements.first_unit[file]
    reserved = problem.placements.reserved
    free = [0] * (-(-limit // width) * width)
    for unit in range(limit):
        if first + unit not in reserved:
            free[unit] = (2 << len(cliques)) - 1
    for number, clique in enumerate(cliques, 1):
        for name, unit in clique.fixed:
            if name == file and unit < limit:
                free[unit] &= ~(1 << number)
    found: dict[Cells, _Supply] = defaultdict(_Supply)
    for start in range(0, len(free), width):
        found[tuple(free[start : start + width])].count += 1
    return found


class _BlockProgram:
    """The variables and constraints, width by width; there are at most `most` of anything."""

    def __init__(self, model: cp_model.CpModel, most: int) -> None:
        self.model, self.most = model, most
        self.variables = 0

    @property
    def is_too_large(self) -> bool:
        return self.variables > MOST_VARIABLES

    def fill(
        self, supplies: Mapping[Cells, _Supply], width: int, registers: Mapping[Cells, int]
    ) -> dict[Cells, _Supply]:
        """Puts the registers of a width into blocks of that width; the halves that they leave."""
        placed: dict[Cells, list[cp_model.LinearExprT]] = {cells: [] for cells in registers}
        halves: dict[Cells, _Supply] = defaultdict(_Supply)
        for free, supply in supplies.items():
            fillings = _fillings(free, sorted(registers), MOST_VARIABLES - self.variables)
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
        self.place_all(placed, registers)
        return halves

    def fill_units(self, supplies: Mapping[Cells, _Supply], registers: Mapping[Cells, int]) -> None:
        """Puts single registers into units that are free wherever they hold a value."""
        placed: dict[Cells, list[cp_model.LinearExprT]] = {cells: [] for cells in registers}
        for (free,), supply in supplies.items():
            if self.is_too_large:
                break
            present: dict[int, list[cp_model.IntVar]] = defaultdict(list)
            for cells in registers:
                if cells[0] & ~free == 0:
                    variable = self.new_variable()
                    placed[cells].append(variable)
                    for number in _bits(cells[0]):
                        present[number].append(variable)
            for variables in present.values():
                self.model.add(sum(variables) <= supply.total)
        self.place_all(placed, registers)

    def place_all(
        self, placed: Mapping[Cells, list[cp_model.LinearExprT]], registers: Mapping[Cells, int]
    ) -> None:
        """All registers of each sort are somewhere."""
        for cells, count in registers.items():
            self.model.add(sum(placed[cells]) == count)

    def new_variable(self) -> cp_model.IntVar:
        """How many of something."""
        self.variables += 1
        return self.model.new_int_var(0, self.most, "")


def _fillings(
    free: Cells, registers: Sequence[Cells], most: int
) -> list[tuple[tuple[Cells, ...], Cells]]:
    """The registers that may be in a block one after another, and what that leaves free.

    Where there are more than `most`, only one more of them.
    """
    found: list[tuple[tuple[Cells, ...], Cells]] = []
    usable = all(unit & USABLE for unit in free)
    pending: list[tuple[tuple[Cells, ...], Cells, int]] = [((), free, 0)]
    while pending and len(found) <= most:
        held, left, first = pending.pop()
        found.append((held, left))
        for number in range(first, len(registers)) if usable else ():
            cells = registers[number]
            if all(lane & ~unit == 0 for lane, unit in zip(cells, left, strict=True)):
                rest = tuple(unit & ~lane for lane, unit in zip(cells, left, strict=True))
                pending.append(((*held, cells), rest, number + 1))
    return found


def _bits(mask: int) -> Iterable[int]:
    return (number for number in range(mask.bit_length()) if mask >> number & 1)
