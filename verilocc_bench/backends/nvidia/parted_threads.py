"""Uniform registers that threads of one warp share while they are on two sides of a branch.

A uniform register exists once in a warp. Where a branch depends on the threads, some take one side
while the others have yet to take theirs. So what one side defines may not lie where the other side
still reads what it found at its beginning. The problem itself follows single threads, as NVIDIA's
life ranges do, and lets the two meet.

A side ends where all threads come together again: at the first block to which every path leads. A
warp takes `BRA.U` and jumps through uniform registers as a whole. Whether threads really part at
another branch is not known here: ptxas knows of many that they do not.

Experiments show that ptxas keeps these apart. In 300 kernels drawn by chance for sm_80 and sm_90,
with branches on data, none of 3,836 pairs has one register. What two sides each define for
themselves does share registers there: ptxas relies on no side interrupting another.

Cost: the blocks of each branch's sides, times their registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from verilocc_bench.backends.nvidia.flow import control_flow, opcode_stem
from verilocc_bench.backends.nvidia.issue_distances import RegisterAccess
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction

UNIFORM = ("UR", "UP")
_OF_THE_WHOLE_WARP = ("BRA.U", "BRA.DIV", "BRXU", "JMXU")

Place = tuple[int, RegisterAccess]
"""An access of the instruction at this index."""
Accesses = Sequence[tuple[Sequence[RegisterAccess], Sequence[RegisterAccess]]]
"""What each instruction writes and what it reads."""


def parted_pairs(function: SassFunction, accesses: Accesses) -> Iterator[tuple[Place, Place]]:
    """Definitions of one side of a branch, each with a use of what the other side found.

    Of all uses of one value there is one. Raises RejectedKernel if the control flow cannot be
    analysed.
    """
    blocks = control_flow(function)
    together = _later_on_all_paths(blocks)
    yielded = set()
    for number, block in enumerate(blocks):
        if len(block.successors) < 2 or not _may_part(function, block):
            continue
        sides = [_side(blocks, first, together[number]) for first in block.successors]
        written = [_written(blocks, side, accesses) for side in sides]
        if not any(written):
            continue
        read = [_found_and_read(function, blocks, side, accesses) if side else [] for side in sides]
        for one, other in permutations(range(len(sides)), 2):
            for definition in written[one]:
                for use in read[other]:
                    if (definition, use) not in yielded:
                        yielded.add((definition, use))
                        yield definition, use


def _may_part(function: SassFunction, block: SassBlock) -> bool:
    last = function.instructions[block.instructions[-1]]
    if last.opcode.startswith(_OF_THE_WHOLE_WARP):
        return False
    guarded = last.guard is not None and last.guard.file == "P"
    return guarded or opcode_stem(last.opcode) == "BRX" or any(u.file == "P" for u in last.uses)


def _later_on_all_paths(blocks: Sequence[SassBlock]) -> list[int]:
    """By block a mask of the others that every path from it comes to.

    There are none where a path can go on for ever without coming to an end.
    """
    ending = [not block.successors for block in blocks]
    changed = True
    while changed:
        changed = False
        for number in range(len(blocks) - 1, -1, -1):
            if not ending[number] and any(ending[each] for each in blocks[number].successors):
                ending[number] = changed = True
    every = (1 << len(blocks)) - 1
    inner = [number for number, block in enumerate(blocks) if ending[number] and block.successors]
    found = [1 << number for number in range(len(blocks))]
    for number in inner:
        found[number] = every
    changed = True
    while changed:
        changed = False
        for number in reversed(inner):
            common = every
            for successor in blocks[number].successors:
                common &= found[successor]
            common |= 1 << number
            changed |= common != found[number]
            found[number] = common
    return [mask & ~(1 << number) for number, mask in enumerate(found)]


def _side(blocks: Sequence[SassBlock], first: int, together: int) -> list[int]:
    """The blocks from the first one on, in the order they are found; none where threads meet."""
    found: dict[int, None] = {}
    pending = [first]
    while pending:
        number = pending.pop()
        if number not in found and not together >> number & 1:
            found[number] = None
            pending += blocks[number].successors
    return list(found)


def _written(blocks: Sequence[SassBlock], side: list[int], accesses: Accesses) -> list[Place]:
    return [
        (index, access)
        for number in side
        for index in blocks[number].instructions
        for access in accesses[index][0]
        if access.file in UNIFORM
    ]


def _found_and_read(
    function: SassFunction, blocks: Sequence[SassBlock], side: list[int], accesses: Accesses
) -> list[Place]:
    """A use of each value that the side, which begins with its first block, finds and reads."""
    kept = {
        (access.file, access.register)
        for number in side
        for index in blocks[number].instructions
        for access in accesses[index][1]
        if access.file in UNIFORM
    }
    inside, entries = set(side), {side[0]: kept}
    found: dict[tuple[str, int], Place] = {}
    pending = [side[0]]
    while pending:
        number = pending.pop()
        left = set(entries[number])
        for index in blocks[number].instructions:
            writes, reads = accesses[index]
            for access in reads:
                if (access.file, access.register) in left:
                    found.setdefault((access.file, access.register), (index, access))
            if function.instructions[index].guard is None:
                left -= {(access.file, access.register) for access in writes}
        for successor in blocks[number].successors:
            before = entries.get(successor)
            if successor in inside and (before is None or left - before):
                entries[successor] = left | (before or set())
                pending.append(successor)
    return list(found.values())
