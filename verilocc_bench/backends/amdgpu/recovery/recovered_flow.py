"""Control flow of machine code: blocks begin at branch targets and end with branches.

Instructions that no path from the entry reaches are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verilocc_bench.backends.amdgpu.recovery.records import CodeBlock, RecoveredInstruction
from verilocc_bench.errors import RejectedKernel

_END = re.compile(r"S_ENDPGM\w*")


def find_blocks(instructions: Sequence[RecoveredInstruction]) -> tuple[CodeBlock, ...]:
    """The blocks in the order of their addresses.

    Raises RejectedKernel, `control-flow`, if a branch leads to no instruction, or if the
    code has no end.
    """
    places = {instruction.address: at for at, instruction in enumerate(instructions)}
    leaders = {0}
    for at, instruction in enumerate(instructions):
        if instruction.target is not None:
            if instruction.target not in places:
                raise _rejected(instruction, "branches out of the kernel")
            leaders.add(places[instruction.target])
        if instruction.target is not None or _END.fullmatch(instruction.opcode):
            leaders.add(at + 1)
    starts = sorted(leaders - {len(instructions)})
    ends = dict(zip(starts, [*starts[1:], len(instructions)], strict=True))
    following = {
        start: _successors(instructions[ends[start] - 1], ends[start], places) for start in starts
    }
    reached, pending = {0}, [0]
    while pending:
        for start in following[pending.pop()]:
            if start == len(instructions):
                raise _rejected(instructions[-1], "the code goes on behind its end")
            if start not in reached:
                reached.add(start)
                pending.append(start)
    order = [start for start in starts if start in reached]
    numbers = {start: number for number, start in enumerate(order)}
    return tuple(
        CodeBlock(
            tuple(instructions[start : ends[start]]),
            tuple(numbers[other] for other in following[start]),
        )
        for start in order
    )


def _successors(
    last: RecoveredInstruction, following: int, places: dict[int, int]
) -> tuple[int, ...]:
    if _END.fullmatch(last.opcode):
        return ()
    if last.target is None:
        return (following,)
    target = places[last.target]
    if last.opcode == "S_BRANCH":
        return (target,)
    return tuple(dict.fromkeys((target, following)))


def _rejected(instruction: RecoveredInstruction, reason: str) -> RejectedKernel:
    place = f"{instruction.text}, at 0x{instruction.address:x}"
    return RejectedKernel("control-flow", f"{place}: {reason}")
