"""Explains why a register is not a legal base of a virtual register."""

from __future__ import annotations

from itertools import chain, islice

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import PhysicalRegister, RegisterClass

STARTS_TOLD = 3
"""The most aligned bases that a message names."""


def misplacement(
    problem: AllocationProblem, number: int, register_class: RegisterClass, name: str | None
) -> tuple[Finding, int | None]:
    """Why a base is not legal, and its first unit; None for a register that does not exist."""
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
    file = problem.function.file(base.file)
    budget = file.count
    if base.file not in register_class.files and budget > 0:
        allowed = " or ".join(register_class.files) or "no file at all"
        return FindingKind.WRONG_CLASS, f"the class allows {allowed}"
    if base.index + width > budget:
        name = file.unit_name(base.index)
        needed = f"{width} registers from {name}" if width > 1 else name
        return FindingKind.OVER_BUDGET, f"it needs {needed}, the budget is {budget}"
    first = problem.placements.unit(base)
    held = [u for u in range(first, first + width) if u in problem.placements.reserved]
    if held:
        names = ", ".join(problem.placements.unit_name(unit) for unit in held)
        return FindingKind.RESERVED, f"{names} is reserved"
    ranges = [r for r in register_class.ranges if r.file == base.file]
    if all((base.index - r.first) % r.step for r in ranges):
        first_starts = islice(chain.from_iterable(ranges), STARTS_TOLD + 1)
        starts = [file.unit_name(start) for start in first_starts]
        if len(starts) > STARTS_TOLD:
            starts[STARTS_TOLD:] = "…"
        return FindingKind.MISALIGNED, f"it must start at {', '.join(starts)}"
    allowed = ", ".join(f"{file.unit_name(r.first)} to {file.unit_name(r.last)}" for r in ranges)
    return FindingKind.WRONG_CLASS, f"the class allows {allowed}"
