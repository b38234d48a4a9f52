"""Spill units: lanes of a virtual register that are always accessed together.

A tuple is one unit if every instruction reads or writes the whole tuple. A tuple
that is read lane by lane has a unit for each lane, so a part of it can be put
away while the rest stays.

Cost: linear in the operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.ir import Function, Instruction, VirtualLanes
from verilocc_bench.targets import Target


@dataclass(frozen=True, slots=True)
class Access:
    """An instruction that names a unit's lanes.

    `writes` is True if it defines them, `certain` if it also has no guard.
    """

    block: int
    index: int
    writes: bool
    certain: bool


@dataclass(frozen=True, slots=True)
class SpillUnit:
    """Lanes of one virtual register, ascending, and their accesses in the order of the text."""

    register: int
    lanes: tuple[int, ...]
    accesses: tuple[Access, ...]


def operand_lanes(instruction: Instruction) -> Iterator[tuple[int, VirtualLanes]]:
    """(operand, lanes) of every virtual operand; the guard's number is -1."""
    for number, operand in enumerate(instruction.definitions + instruction.uses):
        if isinstance(operand.location, VirtualLanes):
            yield number, operand.location
    if instruction.guard is not None and isinstance(instruction.guard.location, VirtualLanes):
        yield -1, instruction.guard.location


def spill_units(function: Function, target: Target) -> list[SpillUnit]:
    """The units of all registers that can be split, by register and lane."""
    able = [
        bool(c.files) and target.spill_files.issuperset(c.files) for c in function.virtual_registers
    ]
    found: dict[tuple[int, int], list[Access]] = {}
    for block, index, instruction in function.instructions():
        written: dict[tuple[int, int], bool] = {}
        for number, location in operand_lanes(instruction):
            if not able[location.register]:
                continue
            if not _is_aligned(function, target, location):
                able[location.register] = False
                continue
            writes = 0 <= number < len(instruction.definitions)
            for lane in range(location.first, location.first + location.count):
                key = location.register, lane
                written[key] = written.get(key, False) or writes
        for key, writes in written.items():
            access = Access(block, index, writes, writes and instruction.guard is None)
            found.setdefault(key, []).append(access)
    groups: dict[tuple[int, tuple[Access, ...]], list[int]] = {}
    for (register, lane), accesses in sorted(found.items()):
        if able[register]:
            groups.setdefault((register, tuple(accesses)), []).append(lane)
    return [SpillUnit(register, tuple(g), accesses) for (register, accesses), g in groups.items()]


def _is_aligned(function: Function, target: Target, lanes: VirtualLanes) -> bool:
    """True if an operand could be replaced by other lanes (docs/split-track.md)."""
    register_class = function.virtual_registers[lanes.register]
    if lanes.count == register_class.width:
        return True
    return all(
        lanes.first % target.file(file).usual_step(lanes.count) == 0
        for file in register_class.files
    )
