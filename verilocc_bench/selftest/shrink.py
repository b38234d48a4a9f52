"""Shrinks a case while a property of it stays true (delta debugging).

After Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"
(TSE 2002): it drops chunks of instructions, halves first, then blocks, edges,
operands, marks and edits, until nothing more can go. It numbers every candidate
anew and reads it back from its text, so the result is an ordinary function.
Cost: one evaluation for each candidate, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Edits, RegisterSpan
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function, parse_function, print_function
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.reduce import (
    with_joined_blocks,
    without_block,
    without_destroyed,
    without_destruction,
    without_edge,
    without_insertion,
    without_instructions,
    without_marks,
    without_operand,
    without_replacement,
    without_transfer,
)
from verilocc_bench.selftest.renumber import renumber

EVALUATIONS = 3000

_T = TypeVar("_T")


def shrink(case: Case, holds: Callable[[Case], bool], evaluations: int = EVALUATIONS) -> Case:
    """The smallest case found for which `holds` is true. It must be true of `case`."""
    shrinker = _Shrinker(holds, evaluations)
    best = case
    if (first := canonical(case)) is not None and shrinker.accepts(first):
        best = first
    size = 0
    while size != (size := _size(best)):
        best = shrinker.drop_chunks(best)
        best = shrinker.drop_parts(best)
    return best


def canonical(case: Case) -> Case | None:
    """The case with canonical numbers, or None if it is not an allocation problem."""
    function, numbers = renumber(case.function)
    old, new = len(case.function.virtual_registers), len(function.virtual_registers)
    added = {} if case.edits is None else case.edits.new
    for position, number in enumerate(sorted(n for n in added if n >= old)):
        numbers[number] = new + position
    assignment = {
        renamed: register
        for name, register in case.assignment.items()
        if (renamed := _renamed(name, numbers, old)) is not None
    }
    edits = case.edits
    if edits is not None:
        renumbered = _edits(edits, numbers)
        if renumbered is None:
            return None
        edits = renumbered
    if not _is_problem(function):
        return None
    return Case(function, assignment, edits)


def _renamed(name: str, numbers: dict[int, int], old: int) -> str | None:
    """The new name of a virtual register, or None if it vanished."""
    digits = name.removeprefix("%")
    if not digits.isdecimal() or str(int(digits)) != digits:
        return name
    number = int(digits)
    if number in numbers:
        return f"%{numbers[number]}"
    return None if number < old else name


def _edits(edits: Edits, numbers: dict[int, int]) -> Edits | None:
    """The edits with new numbers, or None if an edit names a register that vanished."""

    def span(each: _T) -> _T:
        if not isinstance(each, RegisterSpan):
            return each
        return replace(each, register=numbers[each.register])

    try:
        return Edits(
            {numbers.get(number, number): name for number, name in edits.new.items()},
            tuple(
                replace(
                    insertion,
                    transfers=tuple(
                        replace(t, destination=span(t.destination), source=span(t.source))
                        for t in insertion.transfers
                    ),
                )
                for insertion in edits.insertions
            ),
            tuple(
                replace(each, span=replace(each.span, register=numbers[each.span.register]))
                for each in edits.replacements
            ),
        )
    except KeyError:
        return None


def _is_problem(function: Function) -> bool:
    try:
        AllocationProblem(function)
        return parse_function(print_function(function)) == function
    except InputError:
        return False


def _size(case: Case) -> int:
    return len(str(case))


class _Shrinker:
    def __init__(self, holds: Callable[[Case], bool], evaluations: int) -> None:
        self.holds, self.left = holds, evaluations

    def accepts(self, case: Case) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        try:
            return self.holds(case)
        except InputError:
            return False

    def try_one(self, best: Case, candidate: Case | None) -> Case | None:
        """The candidate in canonical form, if it is smaller and still holds."""
        if candidate is None or (found := canonical(candidate)) is None:
            return None
        return found if _size(found) < _size(best) and self.accepts(found) else None

    def drop_chunks(self, best: Case) -> Case:
        """Drops instructions by halves, quarters and so on."""
        chunk = best.function.instruction_count
        while chunk >= 1:
            at = 0
            while True:
                places = [(b, i) for b, i, _ in best.function.instructions()]
                if at >= len(places):
                    break
                smaller = without_instructions(best, frozenset(places[at : at + chunk]))
                if (found := self.try_one(best, smaller)) is not None:
                    best = found
                else:
                    at += chunk
            chunk //= 2
        return best

    def drop_parts(self, best: Case) -> Case:
        """Drops everything else one by one, and after each success goes on at the same place."""
        for parts in (_blocks, _edits_of, _operands, _header):
            at = 0
            while True:
                candidate = next(islice(parts(best), at, None), None)
                if candidate is None:
                    break
                found = self.try_one(best, candidate())
                if found is not None:
                    best = found
                else:
                    at += 1
        return best


Parts = Iterator[Callable[[], Case | None]]


def _blocks(case: Case) -> Parts:
    for block, each in enumerate(case.function.blocks):
        yield lambda b=block: without_block(case, b, bypass=False)  # type: ignore[misc]
        yield lambda b=block: without_block(case, b, bypass=True)  # type: ignore[misc]
        yield lambda b=block: with_joined_blocks(case, b)  # type: ignore[misc]
        for successor in each.successors:
            yield lambda b=block, s=successor: without_edge(case, b, s)  # type: ignore[misc]


def _edits_of(case: Case) -> Parts:
    if case.edits is None:
        return
    for number, insertion in enumerate(case.edits.insertions):
        yield lambda n=number: without_insertion(case, n)  # type: ignore[misc]
        for index in range(len(insertion.transfers)):
            yield lambda n=number, i=index: without_transfer(case, n, i)  # type: ignore[misc]
    for number in range(len(case.edits.replacements)):
        yield lambda n=number: without_replacement(case, n)  # type: ignore[misc]
    for register in case.edits.new:
        yield lambda r=register: _without_new(case, r)  # type: ignore[misc]


def _operands(case: Case) -> Parts:
    for block, index, each in case.function.instructions():
        yield lambda b=block, i=index: without_destruction(case, b, i)  # type: ignore[misc]
        for operand in range(-1, len(each.definitions + each.uses)):
            at = block, index, operand
            yield lambda a=at: without_operand(case, *a)  # type: ignore[misc]
            yield lambda a=at: without_marks(case, *a)  # type: ignore[misc]


def _header(case: Case) -> Parts:
    function = case.function
    for units in function.live_ins:
        left = tuple(each for each in function.live_ins if each != units)
        yield lambda n=left: replace(case, function=replace(function, live_ins=n))  # type: ignore[misc]
    for units in function.reserved:
        left = tuple(each for each in function.reserved if each != units)
        yield lambda n=left: replace(case, function=replace(function, reserved=n))  # type: ignore[misc]
    for mask in function.masks():
        for number in range(len(mask)):
            yield lambda m=mask, n=number: without_destroyed(case, m, n)  # type: ignore[misc]


def _without_new(case: Case, register: int) -> Case:
    assert case.edits is not None
    new = {n: name for n, name in case.edits.new.items() if n != register}
    assignment = {n: r for n, r in case.assignment.items() if n != f"%{register}"}
    return replace(case, assignment=assignment, edits=replace(case.edits, new=new))
