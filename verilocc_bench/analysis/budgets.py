"""The same function under other budgets: another problem, with another id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import BaseRange, FixedUnits, RegisterClass


def with_budgets(problem: AllocationProblem, budgets: Mapping[str, int]) -> AllocationProblem:
    """The problem with at most `budgets[file]` units of each file that is named there.

    Classes lose the bases beyond the budget. If a class loses all of them, the
    problem has no answer. The new problem does not list reserved units beyond
    the budget.
    """
    function, target = problem.function, problem.target
    files = tuple(
        replace(file, count=min(file.count, budgets.get(file.name, file.count)))
        for file in function.files
    )
    counts = {file.name: file.count for file in files}
    made: dict[RegisterClass, RegisterClass] = {}
    for register_class in set(function.virtual_registers):
        bases: dict[str, tuple[BaseRange, ...]] = {}
        for one in register_class.ranges:
            bases[one.file] = (*bases.get(one.file, ()), one)
        made[register_class] = target.make_class(register_class.width, bases, counts)
    reserved = [
        FixedUnits(units.file, units.first, min(units.count, counts[units.file] - units.first))
        for units in function.reserved
        if units.first < counts[units.file]
    ]
    return AllocationProblem(
        replace(
            function,
            files=files,
            reserved=tuple(reserved),
            virtual_registers=tuple(made[c] for c in function.virtual_registers),
        )
    )
