"""Refuses reads of physical registers that hold no value: neither live-ins nor defined before.

Liveness would let such a register be taken by a value that is written before the read.
LLVM's machine verifier refuses the same. A read of a tuple is fine if any part of it may
be defined, on any path. Cost: linear in the code, times the few rounds that loops take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from verilocc_bench.backends.amdgpu.machine import MachineBlock, MachineFunction, is_ignored
from verilocc_bench.backends.amdgpu.machine import MachineOperandFlag as Flag
from verilocc_bench.backends.amdgpu.mir_flow import (
    destroyed_mask,
    instruction_parts,
    operand_mask,
    unit_mask,
)
from verilocc_bench.errors import InputError
from verilocc_bench.targets.amdgpu_classes import fixed_units


def refuse_undefined_reads(
    machine: MachineFunction,
    successors: Sequence[Sequence[int]],
    reserved: Iterable[str],
    source: str,
) -> None:
    """Raises InputError with the line of a read of an undefined register.

    `successors` has the successors of each block, by index. The registers named `reserved`
    hold what LLVM puts there.
    """
    steps = [_steps(block) for block in machine.blocks]
    defined: list[int | None] = [None] * len(steps)
    defined[0] = _mask(machine.blocks[0].live_ins)
    waiting = [0]
    while waiting:
        block = waiting.pop()
        units = defined[block]
        assert units is not None
        for _, _, destroyed, written in steps[block]:
            units = units & ~destroyed | written
        for target in successors[block]:
            known = defined[target]
            if known is None or units & ~known:
                defined[target] = units | (known or 0)
                waiting.append(target)
    always = _mask(reserved)
    for number, code in enumerate(steps):
        units = defined[number]
        if units is None:
            continue  # no path leads there
        held = units | always
        for line, reads, destroyed, written in code:
            for name, mask in reads:
                if not mask & held:
                    raise InputError(
                        f"${name} is read, but is neither a live-in nor defined before",
                        source=source,
                        line=line,
                    )
            held = held & ~destroyed | written | always


def _mask(names: Iterable[str]) -> int:
    units = [fixed_units(name.removeprefix("$")) for name in names]
    mask = 0
    for each in units:
        mask |= 0 if each is None else unit_mask(each)
    return mask


def _steps(block: MachineBlock) -> list[tuple[int, list[tuple[str, int]], int, int]]:
    """(line, registers read, units destroyed, units written) where any register is physical."""
    steps = []
    for instruction in block.instructions:
        if is_ignored(instruction):
            continue
        for part in instruction_parts(instruction):
            reads, written = [], 0
            for _, operand in part.operands:
                mask = operand_mask(operand)
                if mask and Flag.DEFINITION in operand.flags:
                    written |= mask
                elif mask and not operand.flags & (Flag.UNDEF | Flag.INTERNAL):
                    reads.append((operand.name, mask))
            destroyed = destroyed_mask(part)
            if reads or written or destroyed:
                steps.append((part.line, reads, destroyed, written))
    return steps
