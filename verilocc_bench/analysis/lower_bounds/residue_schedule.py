"""Refutes shapes by the residues of registers at many points together.

A register keeps its base, so the residue of each lane modulo the alignment of
tuples is the same wherever it is live. The *type* of a unit is its file and its
residue. The legal bases of a register give its lanes one of a few *patterns* of
types. At each point the lanes of one type must not outnumber its units. The
exact units are left out. Alignment makes the relaxation strong: at one point
pairs with a dead upper half may leave odd units to single lanes, which at
another point must all lie elsewhere.

CP-SAT decides a 0-1 program with one variable for each pattern and one count
for each type and point in milliseconds. Points are added once they are violated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, Refutation, Shape
from verilocc_bench.analysis.lower_bounds.solver import (
    load_cp_model,
    new_solver,
    solve_interruptibly,
    solver_name,
)
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import RegisterClass

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

FIRST_CLIQUES = 24
ADDED_CLIQUES = 12

Pattern = tuple[int, ...]
"""The type of each lane of a register."""


@dataclass(frozen=True)
class UnitTypes:
    """The types of the units within a shape.

    `of[unit]` is the type of a unit, as numbered by `placements`.
    `capacity[type]` is the number of its units that registers may use.
    """

    problem: AllocationProblem
    shape: Shape
    of: dict[int, int]
    capacity: tuple[int, ...]

    @classmethod
    def within(cls, problem: AllocationProblem, shape: Shape) -> UnitTypes:
        """The types for the classes of a problem's virtual registers."""
        steps = [r.step for c in set(problem.function.virtual_registers) for r in c.ranges]
        modulus = max(steps, default=1)
        numbers: dict[tuple[str, int], int] = {}
        of: dict[int, int] = {}
        for file, limit in shape:
            first = problem.placements.first_unit[file]
            for index in range(limit):
                key = file, index % modulus
                of[first + index] = numbers.setdefault(key, len(numbers))
        free = Counter(t for u, t in of.items() if u not in problem.placements.reserved)
        return cls(problem, shape, of, tuple(free[number] for number in range(len(numbers))))

    def patterns(self, register_class: RegisterClass) -> tuple[Pattern, ...]:
        """The patterns of a class's legal bases within the shape, each once."""
        found: dict[Pattern, None] = {}
        for base in self.problem.placements.legal[register_class]:
            types = [self.of.get(unit) for unit in range(base, base + register_class.width)]
            if None not in types:
                found[tuple(t for t in types if t is not None)] = None
        return tuple(found)


@dataclass(frozen=True)
class ScheduleResult:
    """`feasible` is True, with the pattern of each register, False, or None if undecided."""

    feasible: bool | None
    patterns: dict[int, Pattern]
    deterministic_time: float


def solve_schedule(
    types: UnitTypes, cliques: Sequence[Clique], deterministic_time: float
) -> ScheduleResult:
    """Looks for a choice of patterns that gives every clique enough units of each type.

    Raises MissingExtraError without the solver.
    """
    load_cp_model()
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = _pattern_variables(model, types, cliques)
    for clique in cliques:
        wanted: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for register, lane in clique.lanes:
            for pattern, variable in chosen[register].items():
                wanted[pattern[lane]].append(variable)
        taken = _taken(types, clique)
        for number, variables in wanted.items():
            room = types.capacity[number] - taken[number]
            if len(variables) > room:
                model.add(sum(variables) <= room)
    solver = new_solver(deterministic_time)
    status = solve_interruptibly(solver, model)
    spent = solver.response_proto.deterministic_time
    if status == cp_model.INFEASIBLE:
        return ScheduleResult(False, {}, spent)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return ScheduleResult(None, {}, spent)
    patterns = {
        register: next(p for p, variable in variables.items() if solver.boolean_value(variable))
        for register, variables in chosen.items()
    }
    return ScheduleResult(True, patterns, spent)


def _pattern_variables(
    model: cp_model.CpModel, types: UnitTypes, cliques: Sequence[Clique]
) -> dict[int, dict[Pattern, cp_model.IntVar]]:
    classes = types.problem.function.virtual_registers
    patterns_of = cache(types.patterns)
    chosen: dict[int, dict[Pattern, cp_model.IntVar]] = {}
    for register in sorted({register for clique in cliques for register, _ in clique.lanes}):
        variables = {p: model.new_bool_var("") for p in patterns_of(classes[register])}
        model.add_exactly_one(variables.values())
        chosen[register] = variables
    return chosen


def _taken(types: UnitTypes, clique: Clique) -> Counter[int]:
    """The number of units of each type that the function's own registers hold in a clique."""
    first_unit = types.problem.placements.first_unit
    units = {first_unit[file] + index for file, index in clique.fixed}
    units -= types.problem.placements.reserved
    return Counter(types.of[unit] for unit in units if unit in types.of)


def refute_by_schedule(
    problem: AllocationProblem, shape: Shape, cliques: Sequence[Clique], deterministic_time: float
) -> Refutation | None:
    """A few of the cliques for which no choice of residues fits within a shape, if there are any.

    `deterministic_time` limits each call of the solver, in its own seconds.
    Raises MissingExtraError without the solver.
    """
    types = UnitTypes.within(problem, shape)
    pool = sorted(cliques, key=lambda c: -len(c.lanes) - len(c.fixed))
    chosen, rest = pool[:FIRST_CLIQUES], pool[FIRST_CLIQUES:]
    while True:
        result = solve_schedule(types, chosen, deterministic_time)
        if result.feasible is None:
            return None
        if not result.feasible:
            return _reduced(types, chosen, deterministic_time)
        ranked = sorted(
            (*_shortage(types, clique, result.patterns), number)
            for number, clique in enumerate(rest)
        )
        violated = [number for excess, unknown, number in ranked if excess or unknown]
        if not violated:
            return None
        added = set(violated[: max(ADDED_CLIQUES, len(chosen))])
        chosen += [rest[number] for number in sorted(added)]
        rest = [clique for number, clique in enumerate(rest) if number not in added]


def _shortage(types: UnitTypes, clique: Clique, patterns: dict[int, Pattern]) -> tuple[int, int]:
    """Minus the units that a clique lacks, minus its lanes that have no pattern yet."""
    wanted = _taken(types, clique)
    known = [(register, lane) for register, lane in clique.lanes if register in patterns]
    wanted.update(patterns[register][lane] for register, lane in known)
    missing = sum(max(count - types.capacity[t], 0) for t, count in wanted.items())
    return -missing, len(known) - len(clique.lanes)


def _reduced(types: UnitTypes, cliques: list[Clique], deterministic_time: float) -> Refutation:
    """Drops cliques while the rest stays infeasible: halves of the list, then single ones."""
    size = max(len(cliques) // 2, 1)
    while True:
        place = 0
        while place < len(cliques):
            without = cliques[:place] + cliques[place + size :]
            if without and solve_schedule(types, without, deterministic_time).feasible is False:
                cliques = without
            else:
                place += size
        if size == 1:
            break
        size = max(size // 2, 1)
    spent = solve_schedule(types, cliques, deterministic_time).deterministic_time
    return Refutation(BoundKind.RESIDUE_SCHEDULE, types.shape, tuple(cliques), solver_name(), spent)
