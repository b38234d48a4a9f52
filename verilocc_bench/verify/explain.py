"""What is wrong with an answer: every finding, in the order of the program.

Slower than the fast check, which calls it only when something may be wrong;
the two agree by construction on what a collision is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.findings import Finding, FindingKind
from verilocc_bench.ir import FixedUnits, Operand, PhysicalRegister, RegisterClass

__all__ = ["Tie", "explain", "operand_unit"]

Tie = tuple[int, int, Operand, Operand]
"""(block, instruction, definition, use) of a tied operand pair."""

_VIRTUAL = re.compile(r"%(0|[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True)
class _Occupant:
    """A lane in a unit: of virtual register `register`, or fixed (`register` is -1)."""

    lane: int
    register: int
    name: str


def explain(
    problem: AllocationProblem, answer: Mapping[str, str], ties: list[Tie]
) -> tuple[tuple[Finding, ...], bytearray | None]:
    """All findings, and the units that the answer touches (None where a place is illegal)."""
    count = len(problem.function.virtual_registers)
    findings = [
        Finding(
            FindingKind.UNKNOWN_VIRTUAL_REGISTER,
            f"{key[:40]} is no virtual register of the function, which has {count} of them",
            registers=(key[:40],),
        )
        for key in answer
        if not (match := _VIRTUAL.fullmatch(key)) or int(match[1]) >= count
    ]
    units: dict[int, int] = {}
    misplaced = False
    for number, register_class in enumerate(problem.function.virtual_registers):
        name = answer.get(f"%{number}")
        unit = None if name is None else problem.placements.by_name[register_class].get(name)
        if unit is None:
            finding, unit = _misplacement(problem, number, register_class, name)
            findings.append(finding)
            misplaced = True
        if unit is not None:
            units[number] = unit
    findings += _tie_findings(problem, ties, units)
    findings += _collisions(problem, units)
    touched = None
    if not misplaced:
        touched = bytearray(problem.placements.unit_count)
        for number, unit in units.items():
            touched[unit + problem.function.virtual_registers[number].width - 1] = 1
    return tuple(sorted(findings, key=Finding.sort_key)), touched


def operand_unit(
    problem: AllocationProblem, operand: Operand, units: Mapping[int, int]
) -> int | None:
    """The number of the first unit of an operand, given the units of virtual registers."""
    location = operand.location
    if isinstance(location, FixedUnits):
        return problem.placements.first_unit[location.file] + location.first
    base = units.get(location.register)
    return None if base is None else base + location.first


def _misplacement(
    problem: AllocationProblem, number: int, register_class: RegisterClass, name: str | None
) -> tuple[Finding, int | None]:
    """Why a base is not legal, and the unit it starts at where the register exists."""
    key = f"%{number}"
    if name is None:
        return Finding(FindingKind.MISSING, f"{key} has no register", registers=(key,)), None
    base = parse_register_name(problem.target, name)
    if base is None:
        message = f"{key}: {problem.target.name} has no register {name[:40]!r}"
        kind = FindingKind.UNKNOWN_PHYSICAL_REGISTER
        return Finding(kind, message, registers=(key, name[:40])), None
    file = problem.target.file(base.file)
    if file.unit_names and name == file.name and register_class.width != file.count:
        kind = FindingKind.WRONG_CLASS
        reason = f"{name} is {file.count} registers; one is {' or '.join(file.unit_names)}"
    else:
        kind, reason = _illegal(problem, register_class, base)
    message = f"{key} of class {register_class.name} cannot be in {name}: {reason}"
    exists = base.index + register_class.width <= file.count
    unit = problem.placements.unit(base) if exists else None
    return Finding(kind, message, registers=(key, name), unit=name), unit


def _illegal(
    problem: AllocationProblem, register_class: RegisterClass, base: PhysicalRegister
) -> tuple[FindingKind, str]:
    width = register_class.width
    budget = problem.function.file(base.file).count
    if base.file not in register_class.files and budget > 0:
        allowed = " or ".join(register_class.files) or "no file at all"
        return FindingKind.WRONG_CLASS, f"the class allows {allowed}"
    if base.index + width > budget:
        name = problem.function.file(base.file).unit_name(base.index)
        needed = f"{width} registers from {name}" if width > 1 else name
        return FindingKind.OVER_BUDGET, f"it needs {needed}, the budget is {budget}"
    first = problem.placements.unit(base)
    held = [u for u in range(first, first + width) if u in problem.placements.reserved]
    if held:
        names = ", ".join(problem.placements.unit_name(unit) for unit in held)
        return FindingKind.RESERVED, f"{names} is reserved"
    ranges = [r for r in register_class.ranges if r.file == base.file]
    if all((base.index - r.first) % r.step for r in ranges):
        starts = ", ".join(f"{r.file}{r.first + n * r.step}" for r in ranges[:1] for n in range(3))
        return FindingKind.MISALIGNED, f"it must start at {starts}, …"
    file = problem.function.file(base.file)
    allowed = ", ".join(f"{file.unit_name(r.first)} to {file.unit_name(r.last)}" for r in ranges)
    return FindingKind.WRONG_CLASS, f"the class allows {allowed}"


def _tie_findings(
    problem: AllocationProblem, ties: list[Tie], units: Mapping[int, int]
) -> Iterator[Finding]:
    for block, index, definition, use in ties:
        left, right = operand_unit(problem, definition, units), operand_unit(problem, use, units)
        if left is None or right is None or left == right:
            continue
        names = problem.placements.unit_name(left), problem.placements.unit_name(right)
        yield Finding(
            FindingKind.TIED_MISMATCH,
            f"bb{block} instruction {index}: a definition in {names[0]} is tied to "
            f"a use in {names[1]}: they must be in one register",
            block,
            index,
            (*_names(definition), *_names(use)),
            names[0],
        )


def _names(operand: Operand) -> tuple[str, ...]:
    location = operand.location
    return () if isinstance(location, FixedUnits) else (f"%{location.register}",)


def _collisions(problem: AllocationProblem, units: Mapping[int, int]) -> list[Finding]:
    """One finding for each pair of registers that collide, at the first point where they do."""
    liveness = problem.liveness
    seen: dict[tuple[str, str], tuple[int, int, _Occupant, _Occupant]] = {}
    for unit, occupants in sorted(_occupants(problem, units).items()):
        for a, b in _overlapping(liveness.live, occupants):
            if a.register == b.register:
                continue
            clash = (
                liveness.defined[a.lane] & liveness.live[b.lane]
                | liveness.live[a.lane] & liveness.defined[b.lane]
            )
            if clash:
                point = (clash & -clash).bit_length() - 1
                key = (a.name, b.name)
                if key not in seen or point < seen[key][0]:
                    seen[key] = (point, unit, a, b)
    return [_collision(problem, *found) for found in seen.values()]


def _occupants(problem: AllocationProblem, units: Mapping[int, int]) -> dict[int, list[_Occupant]]:
    liveness, placements = problem.liveness, problem.placements
    occupants: dict[int, list[_Occupant]] = {}
    for number, unit in units.items():
        offset = liveness.lane_offsets[number]
        width = problem.function.virtual_registers[number].width
        for lane in range(width):
            occupant = _Occupant(offset + lane, number, f"%{number}")
            occupants.setdefault(unit + lane, []).append(occupant)
    for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        unit = placements.first_unit[file] + index
        occupant = _Occupant(lane, -1, placements.unit_name(unit))
        occupants.setdefault(unit, []).append(occupant)
    return occupants


def _overlapping(
    live: tuple[int, ...], occupants: list[_Occupant]
) -> Iterator[tuple[_Occupant, _Occupant]]:
    """Pairs of occupants that are live at some common point."""
    held = 0
    for index, later in enumerate(occupants):
        mask = live[later.lane]
        if held & mask:
            for earlier in occupants[:index]:
                if live[earlier.lane] & mask:
                    yield earlier, later
        held |= mask


def _collision(
    problem: AllocationProblem, point: int, unit: int, a: _Occupant, b: _Occupant
) -> Finding:
    liveness = problem.liveness
    block, index = liveness.points[point]
    # The one defined here destroys the other; when both are, the order does not matter.
    killer, victim = (a, b) if liveness.defined[a.lane] >> point & 1 else (b, a)
    name = problem.placements.unit_name(unit)
    place = f"bb{block} instruction {index}" if index >= 0 else "the entry"
    kind = FindingKind.OVERLAP
    if a.register < 0 or b.register < 0:
        kind = FindingKind.FIXED_REGISTER_CLOBBERED
    elif _is_early(problem, point) and not liveness.live[victim.lane] >> (point + 1) & 1:
        kind = FindingKind.EARLY_CLOBBER
    message = (
        f"{place} writes {_lane_name(problem, killer)} to {name}, "
        f"which holds {_lane_name(problem, victim)}"
    )
    if kind is FindingKind.EARLY_CLOBBER:
        message += ", still to be read by the same instruction"
    return Finding(kind, message, block, index, (killer.name, victim.name), name)


def _is_early(problem: AllocationProblem, point: int) -> bool:
    points = problem.liveness.points
    return point + 1 < len(points) and points[point] == points[point + 1]


def _lane_name(problem: AllocationProblem, occupant: _Occupant) -> str:
    if occupant.register < 0:
        return occupant.name
    lane = occupant.lane - problem.liveness.lane_offsets[occupant.register]
    wide = problem.function.virtual_registers[occupant.register].width > 1
    return f"{occupant.name}.{lane}" if wide else occupant.name
