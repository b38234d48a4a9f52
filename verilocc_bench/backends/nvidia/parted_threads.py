"""Uniform registers that threads of one warp share while they are on two sides of a branch.

A uniform register exists once in a warp. Where a branch depends on the threads, some take one side
while the others have yet to take theirs. So what one side defines may not lie where the other side
still reads what it found at its beginning. The problem itself follows single threads, as NVIDIA's
life ranges do, and lets the two meet.

A side ends where all threads come together again: at the first block to which every path leads.
What the other side wrote and is read only behind that block stays untouched, too. A warp takes
`BRA.U` and jumps through uniform registers as a whole. Whether threads really part at another
branch is not known here: ptxas knows of many that they do not.

Experiments show that ptxas keeps these apart. In 300 kernels drawn by chance for sm_80 and sm_90,
with branches on data, none of 3,836 pairs has one register. What two sides each define for
themselves does share registers there: ptxas relies on no side interrupting another.

A guard of threads parts them, too: an instruction under `@P0` writes the one register, whichever
threads go on under `@!P0`. A kernel with such an instruction is taken as a warp takes it: what a
uniform register holds, and any later instruction may read, is not written over.

Cost: the blocks of each branch's sides, times their registers; with guards, the code behind each
definition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, permutations, product
from typing import NamedTuple

from verilocc_bench.backends.nvidia.flow import control_flow, opcode_stem
from verilocc_bench.backends.nvidia.issue_distances import RegisterAccess
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction

UNIFORM = ("UR", "UP")
_OF_THE_WHOLE_WARP = ("BRA.U", "BRA.DIV", "BRXU", "JMXU")

Place = tuple[int, RegisterAccess]
"""An access of the instruction at this index."""
Register = tuple[str, int]
Accesses = Sequence[tuple[Sequence[RegisterAccess], Sequence[RegisterAccess]]]
"""What each instruction writes and what it reads."""


def parted_pairs(function: SassFunction, accesses: Accesses) -> Iterator[tuple[Place, Place]]:
    """Definitions of one side of a branch, each with a use of what the other side found.

    Of all uses of one value there is one. Raises RejectedKernel if the control flow cannot be
    analysed.
    """
    walk = _Walk(function, control_flow(function), accesses)
    yielded = set()
    for pair in chain(_by_branches(walk), _by_guards(walk)):
        if pair not in yielded:
            yielded.add(pair)
            yield pair


def _by_branches(walk: _Walk) -> Iterator[tuple[Place, Place]]:
    together = _later_on_all_paths(walk.blocks)
    for number, block in enumerate(walk.blocks):
        if len(block.successors) < 2 or not _may_part(walk.function, block):
            continue
        sides = [_side(walk.blocks, first, together[number]) for first in block.successors]
        written = [walk.written(side) for side in sides]
        if not any(written):
            continue
        read = [walk.found_and_read(side) + walk.left_and_read(side) for side in sides]
        for one, other in permutations(range(len(sides)), 2):
            yield from product(written[one], read[other])


def _by_guards(walk: _Walk) -> Iterator[tuple[Place, Place]]:
    """Of each definition, what is read behind it and may have been written before it."""
    if not any(
        each.guard is not None and each.guard.file == "P" and _uniform(writes)
        for each, (writes, _) in zip(walk.function.instructions, walk.accesses, strict=True)
    ):
        return
    before: list[set[Register]] = [set() for _ in walk.blocks]
    pending = list(range(len(walk.blocks)))
    while pending:
        number = pending.pop()
        after = before[number].union(*(_uniform(w) for w, _ in walk.of_block(number)))
        for successor in walk.blocks[number].successors:
            if not after <= before[successor]:
                before[successor] |= after
                pending.append(successor)
    for number, block in enumerate(walk.blocks):
        holding = set(before[number])
        for at, index in enumerate(block.instructions):
            writes = walk.accesses[index][0]
            if own := _uniform(writes):
                read: dict[Register, Place] = {}
                left = walk.read(block.instructions[at + 1 :], holding - own, read)
                walk.follow(dict.fromkeys(block.successors, left), range(len(walk.blocks)), read)
                yield from (
                    ((index, w), r) for w in writes if w.file in UNIFORM for r in read.values()
                )
                holding |= own


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


def _uniform(accesses: Sequence[RegisterAccess]) -> set[Register]:
    return {(each.file, each.register) for each in accesses if each.file in UNIFORM}


class _Walk(NamedTuple):
    """The code, and what it reads of values that it finds."""

    function: SassFunction
    blocks: Sequence[SassBlock]
    accesses: Accesses

    def of_block(self, number: int) -> Iterator[tuple[Sequence[RegisterAccess], ...]]:
        return (self.accesses[index] for index in self.blocks[number].instructions)

    def written(self, side: list[int]) -> list[Place]:
        return [
            (index, access)
            for number in side
            for index in self.blocks[number].instructions
            for access in self.accesses[index][0]
            if access.file in UNIFORM
        ]

    def found_and_read(self, side: list[int]) -> list[Place]:
        """A use of each value that the side, which begins with its first block, finds and reads."""
        kept = {r for number in side for _, reads in self.of_block(number) for r in _uniform(reads)}
        found: dict[Register, Place] = {}
        self.follow(dict.fromkeys(side[:1], kept), side, found)
        return list(found.values())

    def left_and_read(self, side: list[int]) -> list[Place]:
        """A use of each value that the side has written and that is read behind it."""
        left = {(access.file, access.register) for _, access in self.written(side)}
        behind = {to for number in side for to in self.blocks[number].successors} - set(side)
        found: dict[Register, Place] = {}
        if left:
            self.follow(dict.fromkeys(behind, left), range(len(self.blocks)), found)
        return list(found.values())

    def follow(
        self,
        entries: dict[int, set[Register]],
        inside: Collection[int],
        found: dict[Register, Place],
    ) -> None:
        """Reads blocks and those after them, each with the values that it finds."""
        entries = dict(entries)
        pending = list(entries)
        while pending:
            number = pending.pop()
            left = self.read(self.blocks[number].instructions, entries[number], found)
            for successor in self.blocks[number].successors:
                before = entries.get(successor)
                if successor in inside and (before is None or left - before):
                    entries[successor] = left | (before or set())
                    pending.append(successor)

    def read(
        self, indexes: Sequence[int], left: set[Register], found: dict[Register, Place]
    ) -> set[Register]:
        """Notes the first use of each value that is left; the values that are left at the end."""
        left = set(left)
        for index in indexes:
            writes, reads = self.accesses[index]
            for access in reads:
                if (access.file, access.register) in left:
                    found.setdefault((access.file, access.register), (index, access))
            if self.function.instructions[index].guard is None:
                left -= {(access.file, access.register) for access in writes}
        return left
