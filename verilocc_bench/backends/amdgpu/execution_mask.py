"""Finds instructions that write EXEC in a way that their opcode does not tell."""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.backends.amdgpu.machine import MachineOperand, MachineOperandFlag
from verilocc_bench.ir import Instruction
from verilocc_bench.targets import MaskChange, Target

_EXEC = frozenset({"exec", "exec_lo", "exec_hi"})


def is_misnamed_mask_writer(
    operands: Sequence[tuple[int, MachineOperand]], instruction: Instruction, target: Target
) -> bool:
    """True if an instruction writes EXEC in another way than its opcode tells."""
    flags = MachineOperandFlag.DEFINITION
    if not any(flags in o.flags and not o.virtual and o.name in _EXEC for _, o in operands):
        return False
    read = [o for _, o in operands if not o.flags & (flags | MachineOperandFlag.IMPLICIT)]
    reads_mask = [not o.virtual and o.name == "exec" for o in read]
    if instruction.opcode == "COPY" and any(reads_mask):
        return False  # a copy of EXEC lists it as defined, but does not change it
    change = target.mask_change(instruction)
    operation = instruction.opcode.removesuffix("_term")
    if operation in ("S_AND_B64", "S_OR_B64"):
        return not any(reads_mask)
    if operation == "S_ANDN2_B64":
        return reads_mask[:1] != [True]
    return change is MaskChange.NONE
