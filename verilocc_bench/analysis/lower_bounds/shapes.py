"""The shapes of a value: the limits on files that an allocation of that many registers keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import partial
from itertools import product

from verilocc_bench.analysis.lower_bounds.records import Shape
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import Function
from verilocc_bench.targets import Target


def file_group(function: Function, target: Target, group: str) -> tuple[str, ...]:
    """The files of a group and the files in which its virtual registers may lie instead.

    `group` is `vector` or the name of a file. Two files belong together if some
    class draws on both, directly or through further files.
    """
    found = set(target.vector_files) if group == VECTOR else {target.file(group).name}
    classes = [set(c.files) for c in set(function.virtual_registers)]
    grown = True
    while grown:
        grown = False
        for files in classes:
            if not files.isdisjoint(found) and not files <= found:
                found |= files
                grown = True
    return tuple(file.name for file in target.files if file.name in found)


def _largest_ends(problem: AllocationProblem) -> dict[str, int]:
    """For each file the end of the units that an assignment or the function itself can name."""
    most = dict(problem.fixed_ends)
    for register_class in set(problem.function.virtual_registers):
        for bases in register_class.ranges:
            most[bases.file] = max(most[bases.file], bases.last + register_class.width)
    return most


def most_registers(problem: AllocationProblem, group: str) -> int:
    """The registers of a group that no assignment exceeds, valid or not.

    A lower bound above this number proves that no valid assignment exists. The
    number may exceed the budget: the units that the function itself names count
    wherever they lie.
    """
    most, target = _largest_ends(problem), problem.target
    if group != VECTOR:
        return most[group]
    return target.vector_use({file: most[file] for file in target.vector_files})


def shapes_of_value(problem: AllocationProblem, group: str, value: int) -> tuple[Shape, ...]:
    """The widest limits of the group's files under which at most `value` registers are used.

    An assignment uses at most `value` registers exactly when it fits one of the
    shapes. No limit exceeds the units that legal bases and fixed units reach.
    The result is empty if the function's own physical registers alone exceed
    `value`.
    """
    files = file_group(problem.function, problem.target, group)
    ends, most = problem.fixed_ends, _largest_ends(problem)
    if group != VECTOR:
        limits = {file: most[file] for file in files}
        limits[group] = min(value, most[group])
        return (tuple(limits.items()),) if value >= ends[group] else ()
    return _vector_shapes(problem.target, files, ends, most, value)


def _vector_shapes(
    target: Target,
    files: tuple[str, ...],
    ends: Mapping[str, int],
    most: Mapping[str, int],
    value: int,
) -> tuple[Shape, ...]:
    scored = [file for file in files if file in target.vector_files]
    *leading, last = scored
    found: list[tuple[int, ...]] = []
    for limits in product(*(range(most[file], ends[file] - 1, -1) for file in leading)):
        ranges = range(ends[last], most[last] + 1)
        fitting = bisect_right(ranges, value, key=partial(_count, target, scored, limits))
        candidate = (*limits, ends[last] + fitting - 1)
        if fitting and not any(_within(candidate, other) for other in found):
            found.append(candidate)
    others = tuple((file, most[file]) for file in files if file not in scored)
    return tuple((*zip(scored, limits, strict=True), *others) for limits in found)


def _count(target: Target, scored: list[str], leading: tuple[int, ...], last: int) -> int:
    return target.vector_use(dict(zip(scored, (*leading, last), strict=True)))


def _within(limits: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return all(own <= other for own, other in zip(limits, others, strict=True))


def fits(shape: Shape, used: dict[str, int]) -> bool:
    """True if an allocation with these counts (highest index + 1 by file) fits a shape."""
    return all(used.get(file, 0) <= limit for file, limit in shape)
