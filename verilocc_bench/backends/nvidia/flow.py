"""Control flow of SASS, thread by thread.

Blocks begin at branch targets and after instructions that leave. A guarded branch
falls through if its guard fails; a guarded EXIT leads to the empty block at the
end. CALL.REL.NOINC in a function without any RET never returns: ptxas leaves long
loops by it, so it is a jump. Real calls cannot be analysed (a callee has registers
of its own), nor can jumps through tables; both reject the kernel by name.

BSSY, BSYNC, BREAK, WARPSYNC and the like make threads wait for each other. They
jump only to places to which falling through leads as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction
from verilocc_bench.errors import RejectedKernel

_LEAVES = {"BRA", "EXIT", "CALL", "RET", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL", "RPCMOV"}
_PLAIN_JUMPS = {"BRA", "CALL.REL.NOINC"}


@dataclass(frozen=True, slots=True)
class SassBlock:
    """The indices of a block's instructions, and its successors as in the IR.

    If the last instruction is a guarded branch or exit, it leads to the first
    successor. The exit block has no instruction.
    """

    instructions: tuple[int, ...]
    successors: tuple[int, ...]


def has_effect(instruction: SassInstruction) -> bool:
    """True unless an instruction is a NOP or never executes (@!PT)."""
    return not instruction.never and opcode_stem(instruction.opcode) != "NOP"


def opcode_stem(opcode: str) -> str:
    """The opcode without its modifiers."""
    return opcode.partition(".")[0]


def control_flow(function: SassFunction) -> tuple[SassBlock, ...]:
    """The blocks that the entry reaches, in order of address, the exit block last.

    Raises RejectedKernel for control flow other than plain jumps.
    """
    instructions = function.instructions
    if not instructions:
        raise RejectedKernel("control-flow", f"{function.name} has no instruction")
    targets: dict[int, int] = {}
    returns = any(opcode_stem(i.opcode) == "RET" for i in instructions)
    for index, instruction in enumerate(instructions):
        target = _jump_target(function, instruction, returns)
        if target is not None:
            targets[index] = target
    leaders = {0, *targets.values()}
    leaders |= {index + 1 for index, i in enumerate(instructions) if _leaves(i)}
    starts = sorted(start for start in leaders if start < len(instructions))
    successors = {
        start: _successors(instructions, end - 1, targets)
        for start, end in zip(starts, [*starts[1:], len(instructions)], strict=True)
    }
    return _reachable_blocks(function, starts, successors)


_EXIT = -1


def _leaves(instruction: SassInstruction) -> bool:
    return opcode_stem(instruction.opcode) in _LEAVES and not instruction.never


def _jump_target(function: SassFunction, instruction: SassInstruction, returns: bool) -> int | None:
    """The index that an instruction jumps to; None for one that does not jump."""
    if not _leaves(instruction) or opcode_stem(instruction.opcode) == "EXIT":
        return None
    place = f"{function.name} at 0x{instruction.address:x}: {instruction.opcode}"
    if opcode_stem(instruction.opcode) in ("CALL", "RET") and (
        returns or instruction.opcode not in _PLAIN_JUMPS
    ):
        raise RejectedKernel(
            "call", f"{place}: calls a subroutine (as precise division does), which is not modelled"
        )
    if instruction.opcode not in _PLAIN_JUMPS or len(instruction.operands) != 1:
        reason = "jumps through a table or on a condition of its own, which is not modelled"
        raise RejectedKernel("control-flow", f"{place}: {reason}")
    target = None if instruction.target is None else function.labels.get(instruction.target)
    if target is None or target >= len(function.instructions):
        raise RejectedKernel("control-flow", f"{place}: leads out of the function")
    return target


def _successors(
    instructions: Sequence[SassInstruction], last: int, targets: dict[int, int]
) -> tuple[int, ...]:
    """The successors of the block that ends with instruction `last`: indices, or _EXIT."""
    instruction = instructions[last]
    following = last + 1
    found: tuple[int, ...]
    if not _leaves(instruction):
        found = (following,)
    else:
        taken = targets.get(last, _EXIT)
        if instruction.guard is not None:
            found = (taken,) if taken == following else (taken, following)
        else:
            found = () if taken == _EXIT else (taken,)
    return found


def _reachable_blocks(
    function: SassFunction, starts: list[int], successors: dict[int, tuple[int, ...]]
) -> tuple[SassBlock, ...]:
    found = {0}
    pending = [0]
    while pending:
        for start in successors.get(pending.pop(), ()):
            if start not in found:
                found.add(start)
                pending.append(start)
    if len(function.instructions) in found:
        raise RejectedKernel("control-flow", f"{function.name} ends without an EXIT")
    order = [start for start in starts if start in found]
    numbers = {start: number for number, start in enumerate(order)}
    ends = dict(zip(starts, [*starts[1:], len(function.instructions)], strict=True))
    if _EXIT in found:
        numbers[_EXIT] = len(order)
    blocks = [
        SassBlock(tuple(range(start, ends[start])), tuple(numbers[s] for s in successors[start]))
        for start in order
    ]
    if _EXIT in found:
        blocks.append(SassBlock((), ()))
    return tuple(blocks)
