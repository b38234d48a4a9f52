"""Control flow of SASS, thread by thread.

Blocks begin at branch targets and after instructions that leave. A guarded branch
falls through if its guard fails; a guarded EXIT leads to the empty block at the
end. CALL.REL.NOINC in a function without any RET never returns: ptxas leaves long
loops by it, so it is a jump. Real calls cannot be analysed (a callee has registers
of its own), nor can jumps without a list of targets; both reject the kernel by name.

BRX jumps to one of the labels that ptxas lists for it. A branch on an operand besides its
guard (`@!P1 BRA P0, label`) is taken or falls through, whatever the guard is.

BSSY, BSYNC, BREAK, WARPSYNC and the like make threads wait for each other. They
jump only to places to which falling through leads as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction, SassInstruction
from verilocc_bench.errors import RejectedKernel

_LEAVES = {"BRA", "EXIT", "CALL", "RET", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL", "RPCMOV"}
_PLAIN_JUMPS = {"BRA", "CALL.REL.NOINC"}


def has_effect(instruction: SassInstruction) -> bool:
    """True unless an instruction is a NOP or never executes (@!PT)."""
    return not instruction.never and opcode_stem(instruction.opcode) != "NOP"


def opcode_stem(opcode: str) -> str:
    """The opcode without its modifiers."""
    return opcode.partition(".")[0]


def control_flow(function: SassFunction) -> tuple[SassBlock, ...]:
    """The blocks that the entry reaches, in order of address, the exit block last.

    Raises RejectedKernel for control flow other than plain jumps. The blocks are worked out
    at the first call: each step of reading and lowering asks for them.
    """
    if not function.known_blocks:
        function.known_blocks.extend(_blocks(function))
    return tuple(function.known_blocks)


def _blocks(function: SassFunction) -> tuple[SassBlock, ...]:
    instructions = function.instructions
    if not instructions:
        raise RejectedKernel("control-flow", f"{function.name} has no instruction")
    targets: dict[int, tuple[int, ...]] = {}
    returns = any(opcode_stem(i.opcode) == "RET" for i in instructions)
    for index, instruction in enumerate(instructions):
        if found := _jump_targets(function, instruction, returns):
            targets[index] = found
    leaders = {0, *(target for found in targets.values() for target in found)}
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


def _jump_targets(
    function: SassFunction, instruction: SassInstruction, returns: bool
) -> tuple[int, ...]:
    """The indices that an instruction may jump to; none for one that does not jump."""
    if not _leaves(instruction) or opcode_stem(instruction.opcode) == "EXIT":
        return ()
    place = f"{function.name} at 0x{instruction.address:x}: {instruction.opcode}"
    if opcode_stem(instruction.opcode) in ("CALL", "RET") and (
        returns or instruction.opcode not in _PLAIN_JUMPS
    ):
        raise RejectedKernel(
            "call", f"{place}: calls a subroutine (as precise division does), which is not modelled"
        )
    labels: tuple[str | None, ...] = (instruction.target,)
    if instruction.opcode == "BRX" and instruction.table and instruction.guard is None:
        labels = instruction.table
    elif instruction.opcode not in _PLAIN_JUMPS:
        reason = "jumps under a guard or without a list of targets, which is not modelled"
        raise RejectedKernel("control-flow", f"{place}: {reason}")
    found = [None if label is None else function.labels.get(label) for label in labels]
    targets = [t for t in found if t is not None and t < len(function.instructions)]
    if len(targets) < len(found):
        raise RejectedKernel("control-flow", f"{place}: leads out of the function")
    return tuple(dict.fromkeys(targets))


def _successors(
    instructions: Sequence[SassInstruction], last: int, targets: dict[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """The successors of the block that ends with instruction `last`: indices, or _EXIT."""
    instruction = instructions[last]
    following = last + 1
    found: tuple[int, ...]
    if not _leaves(instruction):
        found = (following,)
    else:
        found = targets.get(last, ())
        if instruction.guard is not None or instruction.is_conditional_branch:
            found = tuple(dict.fromkeys((*(found or (_EXIT,)), following)))
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
