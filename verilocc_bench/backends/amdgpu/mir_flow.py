"""Liveness of physical registers in machine code, by 32-bit units.

LLVM's later passes need to know which registers hold values at each place. A unit
is live into a block if some path from there reads it before writing it, and some
path to there has written it (instructions may read a whole tuple of which some
lanes were never written). Cost: linear in the code, times the few rounds that
loops take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineOperand,
    is_half,
)
from verilocc_bench.backends.amdgpu.machine import MachineOperandFlag as Flag
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.amdgpu_calls import destroyed_units
from verilocc_bench.targets.amdgpu_classes import fixed_units
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

_FIRST_UNIT = {"v": 0, "a": 256, "s": 512, "vcc": 640}
_FILE_SIZES = {"v": 256, "a": 256, "s": 128, "vcc": 2}


def unit_number(units: FixedUnits) -> int:
    """The number of the first of some units, over all files."""
    return _FIRST_UNIT[units.file] + units.first


def unit_mask(units: FixedUnits) -> int:
    """The bits of some units."""
    return ((1 << units.count) - 1) << unit_number(units)


def units_of_mask(mask: int) -> Iterator[FixedUnits]:
    """The single units of a mask, in order."""
    while mask:
        low = mask & -mask
        bit = low.bit_length() - 1
        for file, first in _FIRST_UNIT.items():
            if first <= bit < first + _FILE_SIZES[file]:
                yield FixedUnits(file, bit - first, 1)
        mask ^= low


@cache
def operand_mask(operand: MachineOperand) -> int:
    """The units that an operand touches; 0 for registers that are never allocated."""
    units = None if operand.virtual else fixed_units(operand.name)
    if units is None:
        return 0
    if operand.sub_register is not None and (lanes := SUB_REGISTERS.get(operand.sub_register)):
        units = FixedUnits(units.file, units.first + lanes.first, lanes.count)
    return unit_mask(units)


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One instruction: the units that it reads and writes, and those live and defined around it."""

    instruction: MachineInstruction
    defined_before: int
    live_after: int
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class PhysicalFlow:
    """`live_ins[b]` are the units live into block b, `steps[b]` its instructions in order."""

    live_ins: tuple[int, ...]
    steps: tuple[tuple[FlowStep, ...], ...]


def analyse_flow(machine: MachineFunction, live_in: int) -> PhysicalFlow:
    """The flow of an assigned function; the units `live_in` are defined at its entry."""
    codes = [
        [part for i in b.instructions for part in instruction_parts(i)] for b in machine.blocks
    ]
    effects = [[_effects(i) for i in code] for code in codes]
    gone = [[destroyed_mask(i) for i in code] for code in codes]
    order: Mapping[int, int] = {block.number: i for i, block in enumerate(machine.blocks)}
    successors = [tuple(order[n] for n in block.successors or ()) for block in machine.blocks]
    live = _backward(effects, successors)
    defined = _forward(effects, gone, successors, live_in)
    steps = []
    for block, code in enumerate(codes):
        after = 0
        for successor in successors[block]:
            after |= live[successor]
        lives: list[int] = []
        for reads, full, _ in reversed(effects[block]):
            lives.append(after)
            after = (after & ~full) | reads
        before = defined[block]
        each = []
        for instruction, (reads, _, writes), lost, live_after in zip(
            code, effects[block], gone[block], reversed(lives), strict=True
        ):
            each.append(FlowStep(instruction, before, live_after, reads, writes))
            before = before & ~lost | writes
        steps.append(tuple(each))
    pairs = zip(live, defined, strict=True)
    return PhysicalFlow(tuple(a & b for a, b in pairs), tuple(steps))


def instruction_parts(instruction: MachineInstruction) -> tuple[MachineInstruction, ...]:
    """The members of a bundle, whose head only repeats them; else the instruction itself."""
    if instruction.bundled:
        own = () if instruction.opcode == "BUNDLE" else (instruction,)
        return (*own, *instruction.bundled)
    return (instruction,)


def _effects(instruction: MachineInstruction) -> tuple[int, int, int]:
    """(units read, units written as a whole or destroyed, units written)."""
    reads = writes = 0
    full = destroyed_mask(instruction)
    for _, operand in instruction.operands:
        mask = operand_mask(operand)
        if Flag.DEFINITION in operand.flags:
            writes |= mask
            if not is_half(operand):
                full |= mask
        elif not operand.flags & (Flag.UNDEF | Flag.INTERNAL):
            reads |= mask
    return reads, full, writes


def destroyed_mask(instruction: MachineInstruction) -> int:
    """The units that a call destroys."""
    mask = 0
    for units in destroyed_units(instruction.register_mask) or ():
        mask |= unit_mask(units)
    return mask


def _backward(
    effects: list[list[tuple[int, int, int]]], successors: list[tuple[int, ...]]
) -> list[int]:
    summaries = []
    for code in effects:
        exposed = killed = 0
        for reads, full, _ in code:
            exposed |= reads & ~killed
            killed |= full
        summaries.append((exposed, killed))
    live = [0] * len(effects)
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(effects))):
            out = 0
            for successor in successors[block]:
                out |= live[successor]
            exposed, killed = summaries[block]
            new = exposed | (out & ~killed)
            changed |= new != live[block]
            live[block] = new
    return live


def _forward(
    effects: list[list[tuple[int, int, int]]],
    gone: list[list[int]],
    successors: list[tuple[int, ...]],
    live_in: int,
) -> list[int]:
    written = []
    kept = []
    for code, destroyed in zip(effects, gone, strict=True):
        mask, left = 0, -1
        for (_, _, writes), lost in zip(code, destroyed, strict=True):
            mask = mask & ~lost | writes
            left &= ~lost
        written.append(mask)
        kept.append(left)
    defined = [0] * len(effects)
    defined[0] = live_in
    changed = True
    while changed:
        changed = False
        for block, targets in enumerate(successors):
            out = defined[block] & kept[block] | written[block]
            for target in targets:
                new = defined[target] | out
                changed |= new != defined[target]
                defined[target] = new
    return defined
