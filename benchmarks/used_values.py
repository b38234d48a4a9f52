"""Which values of a function matter: those that reach a store, a branch or another effect.

ptxas leaves some instructions whose results nobody uses, and keeps no distances for them.
So their places do not show what the machine needs.

A backward dataflow: an instruction matters if it has an effect besides its definitions,
or if one of them is used later by one that matters. A definition under a guard does not
end the value before. Two values that only use each other, around a loop, do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from verilocc_bench.backends.nvidia.flow import control_flow, opcode_stem
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.webs import guard_reference

_FILE_OFFSETS = {"R": 0, "UR": 256, "P": 320, "UP": 328}
_ATOMIC = frozenset(("ATOM", "ATOMG", "ATOMS"))
_LEAVING = frozenset(("BRA", "EXIT", "CALL", "BRX"))


@dataclass(frozen=True, slots=True)
class UsedValues:
    """`matters` tells for each instruction if it does; `used_after` has the registers, as bits,
    whose values after it are used by one that matters."""

    matters: tuple[bool, ...]
    used_after: tuple[int, ...]

    def is_used(self, index: int, file: str, register: int) -> bool:
        """True if the value of a register after an instruction is used."""
        return bool(self.used_after[index] >> _FILE_OFFSETS[file] + register & 1)


def used_values(function: SassFunction) -> UsedValues:
    """The values of a function that matter. Raises RejectedKernel for unknown control flow."""
    effects = [_effects(each) for each in function.instructions]
    blocks = control_flow(function)
    before = [0] * len(blocks)
    pending = set(range(len(blocks)))
    matters = [False] * len(effects)
    used_after = [0] * len(effects)
    predecessors = _predecessors(blocks)
    while pending:
        number = max(pending)
        pending.remove(number)
        used = 0
        for successor in blocks[number].successors:
            used |= before[successor]
        for index in reversed(blocks[number].instructions):
            always, definitions, kills, uses = effects[index]
            used_after[index] = used
            matters[index] = always or bool(used & definitions)
            if matters[index]:
                used = used & ~kills | uses
        if used != before[number]:
            before[number] = used
            pending |= predecessors[number]
    return UsedValues(tuple(matters), tuple(used_after))


def _predecessors(blocks: tuple[SassBlock, ...]) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.successors:
            found[successor].add(number)
    return found


def _effects(instruction: SassInstruction) -> tuple[bool, int, int, int]:
    """Whether it always matters, and its definitions, those that end a value, and its uses."""
    if instruction.never:
        return False, 0, 0, 0
    definitions = _mask(instruction.definitions)
    guard = guard_reference(instruction)
    uses = _mask((*instruction.uses, *(() if guard is None else (guard,))))
    stem = opcode_stem(instruction.opcode)
    always = not definitions or stem in _ATOMIC or stem in _LEAVING
    return always, definitions, definitions if guard is None else 0, uses


def _mask(references: Iterable[RegisterReference]) -> int:
    mask = 0
    for each in references:
        mask |= ((1 << each.count) - 1) << _FILE_OFFSETS[each.file] + each.first
    return mask
