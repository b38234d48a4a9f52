"""Checks the refutations of a solver: solves them again, from the cliques alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.records import Clique, Refutation
from verilocc_bench.analysis.lower_bounds.solver import (
    load_cp_model,
    new_solver,
    solve_interruptibly,
)
from verilocc_bench.analysis.problem import AllocationProblem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

DETERMINISTIC_TIME = 60.0
"""The most deterministic seconds for solving a refutation again; the search's take far less."""

Slots = tuple[tuple[str, int], ...]
"""(file, residue) of each lane of a register."""


def no_schedule_exists(problem: AllocationProblem, refutation: Refutation) -> bool:
    """True if no choice of residues gives all cliques enough units of each residue.

    Registers of one class with the same lanes in the same cliques are
    interchangeable. The variables count how many of them take each residue.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    steps = [r.step for c in set(problem.function.virtual_registers) for r in c.ranges]
    modulus = max(steps, default=1)
    model = cp_model.CpModel()
    wanted: dict[tuple[int, str, int], list[cp_model.IntVar]] = defaultdict(list)
    for (register_class, lanes), count in _alike(problem, refutation).items():
        choices = _slots(problem, refutation, register_class, modulus)
        variables = [model.new_int_var(0, count, "") for _ in choices]
        model.add(sum(variables) == count)
        for slots, variable in zip(choices, variables, strict=True):
            for clique, lane in lanes:
                wanted[clique, *slots[lane]].append(variable)
    for (number, file, residue), variables in wanted.items():
        free = _free(problem, refutation, file, refutation.cliques[number])
        model.add(sum(variables) <= sum(unit % modulus == residue for unit in free))
    return bool(solve_interruptibly(new_solver(DETERMINISTIC_TIME), model) == cp_model.INFEASIBLE)


def _alike(
    problem: AllocationProblem, refutation: Refutation
) -> Counter[tuple[int, tuple[tuple[int, int], ...]]]:
    """The number of registers for each (first register of their class, their (clique, lane))."""
    lanes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, clique in enumerate(refutation.cliques):
        for register, lane in clique.lanes:
            lanes[register].append((number, lane))
    classes = problem.function.virtual_registers
    first = {c: register for register, c in reversed(list(enumerate(classes)))}
    return Counter((first[classes[r]], tuple(held)) for r, held in sorted(lanes.items()))


def _slots(
    problem: AllocationProblem, refutation: Refutation, register: int, modulus: int
) -> list[Slots]:
    register_class = problem.function.virtual_registers[register]
    limits = dict(refutation.shape)
    found: dict[Slots, None] = {}
    for unit in problem.placements.legal[register_class]:
        base = problem.placements.register(unit)
        units = range(base.index, base.index + register_class.width)
        if units.stop <= limits.get(base.file, 0):
            found[tuple((base.file, index % modulus) for index in units)] = None
    return list(found)


def _free(
    problem: AllocationProblem, refutation: Refutation, file: str, clique: Clique
) -> set[int]:
    """The units of a file that virtual registers may use in a clique."""
    first = problem.placements.first_unit[file]
    reserved = {unit - first for unit in problem.placements.reserved}
    fixed = {index for name, index in clique.fixed if name == file}
    return set(range(dict(refutation.shape)[file])) - reserved - fixed


def no_placement_exists(
    problem: AllocationProblem,
    refutation: Refutation,
    deterministic_time: float = DETERMINISTIC_TIME,
) -> bool:
    """True if no choice of bases keeps the lanes of every clique apart.

    Each lane has an interval of its own; the search has one for adjacent lanes.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    placements, classes = problem.placements, problem.function.virtual_registers
    ends = [(placements.first_unit[f], placements.first_unit[f] + n) for f, n in refutation.shape]
    bases: dict[int, cp_model.IntVar] = {}
    for register in sorted({r for c in refutation.cliques for r, _ in c.lanes}):
        width = classes[register].width
        legal = placements.legal[classes[register]]
        fitting = [b for b in legal if any(s <= b and b + width <= e for s, e in ends)]
        if not fitting:
            return True  # the solver refuses a variable without values
        domain = cp_model.Domain.from_values(fitting)
        bases[register] = model.new_int_var_from_domain(domain, "")
    for clique in refutation.cliques:
        fixed = {placements.first_unit[file] + index for file, index in clique.fixed}
        intervals = [
            model.new_fixed_size_interval_var(unit, 1, "")
            for unit in sorted(fixed | placements.reserved)
        ]
        for register, lane in clique.lanes:
            place = bases[register] + lane
            intervals.append(model.new_fixed_size_interval_var(place, 1, ""))
        model.add_no_overlap(intervals)
    return bool(solve_interruptibly(new_solver(deterministic_time), model) == cp_model.INFEASIBLE)
