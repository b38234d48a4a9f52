"""Counts again how blocks of units can be filled, from the cliques of a refutation alone.

A *place* is a run of units whose length is a power of two. Two facts describe
it: which classes may start at which of its units, by their legal bases, and
which (unit, clique) are taken. Equal places are counted together. The longest
places are filled first, with registers of their own length; the places that are
left are cut in half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.records import Refutation
from verilocc_bench.analysis.lower_bounds.solver import load_cp_model, new_solver
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterClass

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

DETERMINISTIC_TIME = 60.0

MOST_FILLINGS = 100_000

Cell = tuple[int, int]
"""(unit of a place, or lane of a register; clique)."""

Sort = tuple[RegisterClass, frozenset[Cell]]
"""A class, and the cliques that contain each lane of its registers."""


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Units, the (class, unit) at which registers may start, and the cells that are taken."""

    size: int
    starts: frozenset[tuple[RegisterClass, int]]
    taken: frozenset[Cell]

    def halves(self) -> Iterator[BlockPlace]:
        """The lower units and the upper ones, each numbered from 0."""
        middle = self.size // 2
        for low in (0, middle):
            inside = range(low, low + middle)
            starts = frozenset((c, unit - low) for c, unit in self.starts if unit in inside)
            taken = frozenset((unit - low, q) for unit, q in self.taken if unit in inside)
            yield BlockPlace(middle, starts, taken)

    def fillings(self, sorts: list[Sort]) -> Iterator[tuple[tuple[Sort, ...], BlockPlace]]:
        """Registers as long as the place that fit in it together, and the place with them in it."""
        yield (), self
        for number, (register_class, cells) in enumerate(sorts):
            if (register_class, 0) in self.starts and cells.isdisjoint(self.taken):
                place = BlockPlace(self.size, self.starts, self.taken | cells)
                for others, full in place.fillings(sorts[number + 1 :]):
                    yield ((register_class, cells), *others), full


def no_filling_exists(problem: AllocationProblem, refutation: Refutation) -> bool:
    """True if no way to fill the places has room for all registers of the cliques.

    Raises InputError if there are too many ways to fill them, and
    MissingExtraError without the solver.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    if len(refutation.shape) != 1:
        return False
    registers = _registers(problem, refutation)
    if not all(_is_aligned(problem, register_class) for register_class, _ in registers):
        return False
    model = cp_model.CpModel()
    size = max((register_class.width for register_class, _ in registers), default=1)
    counts: dict[BlockPlace, cp_model.LinearExprT] = dict(
        _places(problem, refutation, size, registers)
    )
    while size > 1:
        counts = _fill(model, counts, _of_width(registers, size), problem)
        size //= 2
    _fill_units(model, counts, _of_width(registers, 1))
    solver = new_solver(DETERMINISTIC_TIME, seed=1)
    solver.parameters.cp_model_presolve = False
    solver.parameters.catch_sigint_signal = False
    return bool(solver.solve(model) == cp_model.INFEASIBLE)


def _registers(problem: AllocationProblem, refutation: Refutation) -> Counter[Sort]:
    cells: dict[int, set[Cell]] = defaultdict(set)
    for number, clique in enumerate(refutation.cliques):
        for register, lane in clique.lanes:
            cells[register].add((lane, number))
    classes = problem.function.virtual_registers
    return Counter((classes[register], frozenset(own)) for register, own in cells.items())


def _is_aligned(problem: AllocationProblem, register_class: RegisterClass) -> bool:
    """True if every register of a class lies within one place of its own length."""
    width = register_class.width
    bases = [problem.placements.register(b).index for b in problem.placements.legal[register_class]]
    return width.bit_count() == 1 and all(base % width == 0 for base in bases)


def _of_width(registers: Counter[Sort], width: int) -> dict[Sort, int]:
    return {sort: count for sort, count in registers.items() if sort[0].width == width}


def _places(
    problem: AllocationProblem, refutation: Refutation, size: int, registers: Counter[Sort]
) -> Counter[BlockPlace]:
    """The places that make up a file within its limit."""
    ((file, limit),) = refutation.shape
    first = problem.placements.first_unit[file]
    starts: dict[int, set[tuple[RegisterClass, int]]] = defaultdict(set)
    for register_class in {register_class for register_class, _ in registers}:
        for unit in problem.placements.legal[register_class]:
            base = unit - first
            if 0 <= base <= limit - register_class.width:
                starts[base // size].add((register_class, base % size))
    taken: dict[int, set[Cell]] = defaultdict(set)
    for number, clique in enumerate(refutation.cliques):
        for name, unit in clique.fixed:
            if name == file:
                taken[unit // size].add((unit % size, number))
    return Counter(
        BlockPlace(size, frozenset(starts[n]), frozenset(taken[n])) for n in sorted(starts)
    )


def _fill(
    model: cp_model.CpModel,
    counts: dict[BlockPlace, cp_model.LinearExprT],
    registers: dict[Sort, int],
    problem: AllocationProblem,
) -> dict[BlockPlace, cp_model.LinearExprT]:
    """The places of half the size that are left once registers fill the places of full size."""
    most = problem.placements.unit_count
    inside: dict[Sort, list[cp_model.IntVar]] = {sort: [] for sort in registers}
    left: dict[BlockPlace, list[cp_model.IntVar]] = defaultdict(list)
    fillings = 0
    for place, count in counts.items():
        ways: list[cp_model.IntVar] = []
        for held, full in place.fillings(list(registers)):
            fillings += 1
            if fillings > MOST_FILLINGS:
                raise InputError("there are too many ways to fill blocks: expected fewer cliques")
            ways.append(model.new_int_var(0, most, ""))
            for sort in held:
                inside[sort].append(ways[-1])
            for half in full.halves():
                left[half].append(ways[-1])
        model.add(sum(ways) == count)
    for sort, variables in inside.items():
        model.add(sum(variables) == registers[sort])
    return {place: sum(variables) for place, variables in left.items()}


def _fill_units(
    model: cp_model.CpModel,
    counts: dict[BlockPlace, cp_model.LinearExprT],
    registers: dict[Sort, int],
) -> None:
    """Puts single registers into free units; in no clique may they outnumber these units."""
    inside: dict[Sort, list[cp_model.IntVar]] = {sort: [] for sort in registers}
    for place, count in counts.items():
        crowd: dict[Cell, list[cp_model.IntVar]] = defaultdict(list)
        for sort, number in registers.items():
            register_class, cells = sort
            if (register_class, 0) in place.starts and cells.isdisjoint(place.taken):
                variable = model.new_int_var(0, number, "")
                inside[sort].append(variable)
                for cell in cells:
                    crowd[cell].append(variable)
        for variables in crowd.values():
            model.add(sum(variables) <= count)
    for sort, variables in inside.items():
        model.add(sum(variables) == registers[sort])
