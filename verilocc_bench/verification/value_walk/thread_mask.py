"""The bit that one thread has in saved execution masks, as far as a walk knows it (AMD).

A walk decides at a narrowing whether its thread falls asleep. That tells the thread's bit in
the mask that narrows. A copy of the mask has the thread's bit as it was when the copy was made.
A block wakes the thread by adding a mask that has its bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from verilocc_bench.ir import Instruction, Operand, VirtualLanes
from verilocc_bench.targets import Target

_REMOVES = re.compile(r"S_(ANDN2|XOR)_B64(_term)?$")
_KEEPS = re.compile(r"S_(AND_B64(_term)?|AND_SAVEEXEC_B64|MOV_B64_term)$")


class ThreadMask:
    """The bits that are known, by virtual register."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._bits: dict[int, bool] = {}

    def executed(self, instruction: Instruction, *, awake: bool) -> None:
        """Takes note of what an instruction writes; `awake` is the thread before it."""
        written = _registers(instruction.definitions)
        if not written:
            return
        opcode = instruction.opcode
        bits = [self._bits.get(register) for register in _registers(instruction.uses)]
        bit: bool | None = None
        if self._target.saves_mask(instruction) is not None or "SAVEEXEC" in opcode:
            bit = awake
        elif opcode == "COPY" and len(bits) == 1:
            (bit,) = bits
        elif opcode == "S_OR_B64" and True in bits:
            bit = True
        elif opcode == "S_AND_B64" and False in bits:
            bit = False
        for register in written:
            self._bits.pop(register, None)
            if bit is not None and len(written) == 1:
                self._bits[register] = bit

    def narrowed(self, instruction: Instruction, *, awake: bool) -> None:
        """Takes note of the mask that narrows, and of whether the thread is awake behind it."""
        removes = _REMOVES.match(instruction.opcode) is not None
        read = _registers(instruction.uses)
        if len(read) == 1 and (removes or _KEEPS.match(instruction.opcode)):
            self._bits[read[0]] = awake != removes

    def adds(self, instruction: Instruction) -> bool:
        """False if an instruction that widens the mask is known not to add the thread."""
        read = _registers(instruction.uses)
        return len(read) != 1 or self._bits.get(read[0]) is not False


def _registers(operands: Iterable[Operand]) -> list[int]:
    locations = [operand.location for operand in operands]
    return [each.register for each in locations if isinstance(each, VirtualLanes)]
