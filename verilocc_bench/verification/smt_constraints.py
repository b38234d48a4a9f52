"""From a function to the constraints of its SMT check, as SMT-LIB formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.analysis.ties import Tie, tied_operands
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, Operand, RegisterClass


@dataclass(frozen=True, slots=True)
class SmtConstraint:
    """One tracked constraint: its formula and the virtual registers in it.

    With `unit`, a register must be apart from that unit of the function's own.
    With `tie`, the operands are tied. With neither, two registers must be apart,
    or a single one must be legal.
    """

    formula: str
    registers: tuple[int, ...]
    unit: int | None = None
    tie: Tie | None = None


def all_constraints(problem: AllocationProblem, maximum_pairs: int) -> Iterator[SmtConstraint]:
    """All constraints of a function, in the same order every time."""
    pairs, fixed = _colliding_distances(problem, maximum_pairs)
    domains = {
        register_class: _legal_formula(problem, register_class)
        for register_class in set(problem.function.virtual_registers)
    }
    for number, register_class in enumerate(problem.function.virtual_registers):
        yield SmtConstraint(domains[register_class].replace("BASE", f"b{number}"), (number,))
    for (first, second), distances in pairs.items():
        yield SmtConstraint(_not_among(f"(- b{first} b{second})", distances), (first, second))
    for (number, unit), bases in fixed.items():
        yield SmtConstraint(_not_among(f"b{number}", bases), (number,), unit)
    for tie in tied_operands(problem.function):
        yield _tie(problem, tie)


def _colliding_distances(
    problem: AllocationProblem, maximum_pairs: int
) -> tuple[dict[tuple[int, int], set[int]], dict[tuple[int, int], set[int]]]:
    """The places at which colliding lanes would share a unit.

    Returns the forbidden distances from the second base to the first for pairs
    of virtual registers, and the forbidden bases for a virtual register and a
    unit of the function's own. Raises InputError beyond `maximum_pairs` pairs.
    """
    placements, classes = problem.placements, problem.function.virtual_registers
    owners = [(number, lane) for number, c in enumerate(classes) for lane in range(c.width)]
    # A unit of the function's own is a lane at a known place.
    owners += [(-1, placements.first_unit[f] + index) for f, index in problem.liveness.fixed_lanes]
    files = {register_class: set(register_class.files) for register_class in set(classes)}
    meet = {(a, b) for a in files for b in files if not files[a].isdisjoint(files[b])}
    pairs: dict[tuple[int, int], set[int]] = {}
    fixed: dict[tuple[int, int], set[int]] = {}
    for lane, others in enumerate(_colliding_lanes(problem)):
        a, x = owners[lane]
        for other in iterate_bits(others):
            b, y = owners[other]
            if a == b:
                continue
            if a < 0:
                fixed.setdefault((b, x), set()).add(x - y)
            elif b < 0:
                fixed.setdefault((a, y), set()).add(y - x)
            elif (classes[a], classes[b]) in meet:
                pair, distance = ((a, b), y - x) if a < b else ((b, a), x - y)
                pairs.setdefault(pair, set()).add(distance)
        if len(pairs) > maximum_pairs:
            raise InputError(
                f"function {problem.id} is too large for the SMT check: more than "
                f"{maximum_pairs} pairs of virtual registers may collide"
            )
    return pairs, fixed


def _colliding_lanes(problem: AllocationProblem) -> list[int]:
    """For each lane the lanes that are live where it is defined, as a bit mask."""
    liveness = problem.liveness
    changes = [0] * (len(liveness.points) + 1)
    for lane, first, last, _ in liveness.segments:
        changes[first] ^= 1 << lane
        changes[last + 1] ^= 1 << lane
    definitions: list[list[int]] = [[] for _ in liveness.points]
    for lane, mask in enumerate(liveness.defined):
        for point in iterate_bits(mask):
            definitions[point].append(lane)
    colliding = [0] * len(liveness.live)
    live = 0
    for change, defined in zip(changes, definitions, strict=False):
        live ^= change
        for lane in defined:
            colliding[lane] |= live
    return colliding


def _legal_formula(problem: AllocationProblem, register_class: RegisterClass) -> str:
    """The legal bases of a class, as a formula over BASE."""
    ranges = []
    for bases in register_class.ranges:
        start = problem.placements.first_unit[bases.file]
        first, last = start + bases.first, start + bases.last
        aligned = f"(= (mod (- BASE {first}) {bases.step}) 0)" if bases.step > 1 else "true"
        ranges.append(f"(and (<= {first} BASE) (<= BASE {last}) {aligned})")
    reserved = {
        unit - lane for unit in problem.placements.reserved for lane in range(register_class.width)
    }
    return f"(and (or false {' '.join(ranges)}) {_not_among('BASE', reserved)})"


def _not_among(term: str, values: set[int]) -> str:
    """A formula that excludes these values of a term: one clause for each run of them."""
    ordered = sorted(values)
    starts = (value for value in ordered if value - 1 not in values)
    ends = (value for value in ordered if value + 1 not in values)
    clauses = [
        f"(or (< {term} {_number(start)}) (> {term} {_number(end)}))"
        for start, end in zip(starts, ends, strict=True)
    ]
    return f"(and true {' '.join(clauses)})"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _tie(problem: AllocationProblem, tie: Tie) -> SmtConstraint:
    terms: list[str] = []
    registers: list[int] = []
    for operand in (tie.definition, tie.use):
        added = [f"b{register}" for register in named_registers(operand)]
        terms.append(f"(+ {' '.join([str(first_unit(problem, operand)), *added])})")
        registers += named_registers(operand)
    return SmtConstraint(f"(= {terms[0]} {terms[1]})", tuple(registers), tie=tie)


def first_unit(problem: AllocationProblem, operand: Operand) -> int:
    """The first unit of an operand; for a virtual register, its distance from the base."""
    location = operand.location
    if isinstance(location, FixedUnits):
        return problem.placements.first_unit[location.file] + location.first
    return location.first


def named_registers(operand: Operand) -> tuple[int, ...]:
    """The virtual register of an operand, if it has one."""
    location = operand.location
    return () if isinstance(location, FixedUnits) else (location.register,)
