"""The places for insertions in vector registers, as far as EXEC restricts them (AMD).

A thread must execute an insertion exactly if its own path through the control-flow
graph passes it. In a block this holds after the last instruction that may widen EXEC
and before the first that may narrow it. The threads that a block stops take the edge
to the block that wakes them by widening EXEC, with a mask that holds them; the others
take the other edge. If neither successor wakes them (one may end the program), the shape
of the graph decides:
the threads that go on take the successor that leads to the other successor, or back to
the narrowing block. Only some of the threads may execute the blocks behind the other
successor, or behind both if the shape does not decide. Nothing can be inserted there.
The same holds behind a block that narrows EXEC and has only one successor, or widens
EXEC again.

Cost: linear in the instructions; one walk over the graph for each block that
narrows EXEC and has no successor that wakes what it stopped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from verilocc_bench.ir import Function, Operand, VirtualLanes
from verilocc_bench.targets import MaskChange, Target


def _registers(operands: Iterable[Operand]) -> set[int]:
    locations = [operand.location for operand in operands]
    return {each.register for each in locations if isinstance(each, VirtualLanes)}


class VectorPlaces:
    """The insertion places of one function, computed on demand."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function, self.target = function, target
        self._changes: dict[int, list[MaskChange]] = {}
        self._places: dict[int, tuple[int | None, list[int]]] = {}

    def objections(self, block: int, index: int) -> Iterator[str]:
        """The reasons why nothing can be inserted before an instruction of a block, if any.

        The place after the last instruction also stands for the edges out of the block.
        """
        if block not in self._places:
            changes = list(enumerate(self._changes_of(block)))
            first = next((i for i, change in changes if change & MaskChange.NARROWS), None)
            self._places[block] = first, [i for i, c in changes if c & MaskChange.WIDENS]
        narrowing, widening = self._places[block]
        if narrowing is not None and narrowing < index:
            what = f"instruction {narrowing} of bb{block}"
            yield f"{what} may stop threads: not all of them execute what is after it"
        later = bisect_left(widening, index)
        if later < len(widening):
            what = f"instruction {widening[later]} of bb{block}"
            yield f"{what} may wake threads: not all of them execute what is before it"
        if block in self._partial_blocks:
            yield f"bb{block} may be executed by a part of the threads whose paths pass it"

    def _changes_of(self, block: int) -> list[MaskChange]:
        if block not in self._changes:
            instructions = self.function.blocks[block].instructions
            self._changes[block] = self.target.mask_changes(instructions)
        return self._changes[block]

    def _wakes(self, narrowing: int, block: int) -> bool:
        """True if a block's first change of EXEC adds a mask with all that `narrowing` stopped."""
        changes = self._changes_of(block)
        first = next((index for index, change in enumerate(changes) if change), None)
        if first is None or not changes[first] & MaskChange.WIDENS:
            return False
        instructions = self.function.blocks[block].instructions
        added = _registers(instructions[first].uses)
        if any(added & _registers(each.definitions) for each in instructions[:first]):
            return False
        if len(added) != 1 or added <= self._held(narrowing):
            return len(added) == 1
        here = self.function.blocks[narrowing].instructions
        # A mask that was saved further out has what the blocks within stop.
        written = any(added & _registers(each.definitions) for each in here)
        return not written and self._is_saved_before(min(added), narrowing)

    def _held(self, block: int) -> set[int]:
        """The virtual registers that have, at the end of a block, all threads that it stops."""
        changes = self._changes_of(block)
        stops = [index for index, change in enumerate(changes) if change & MaskChange.NARROWS]
        held, saved = set[int](), set[int]()
        others: dict[int, int] = {}  # of a register that is EXEC XOR another one: that other one
        for index, instruction in enumerate(self.function.blocks[block].instructions):
            read, written = _registers(instruction.uses), _registers(instruction.definitions)
            opcode = instruction.opcode.removesuffix("_term")
            if index in stops[:1]:
                held |= saved
                if len(stops) == 1 and opcode == "S_ANDN2_B64":
                    held |= read if len(read) == 1 else set()
                elif len(stops) == 1:
                    held |= {register for register, other in others.items() if other in read}
            parts = read - saved if opcode == "S_XOR_B64" and read & saved else set()
            held, saved = held - written, saved - written
            others = {r: o for r, o in others.items() if not {r, o} & written}
            if changes[index]:
                saved, others = set(), {}
            if stops == [index] and opcode == "S_AND_SAVEEXEC_B64":
                held |= written
            elif len(parts) == len(written) == 1:
                others[min(written)] = min(parts)
            elif (copied := self.target.saves_mask(instruction)) is not None:
                saved.add(copied)
        return held

    def _is_saved_before(self, mask: int, narrowing: int) -> bool:
        """True if a register has EXEC of a block that all paths to another one pass."""
        places = [
            (block, index)
            for block, each in enumerate(self.function.blocks)
            for index, instruction in enumerate(each.instructions)
            if mask in _registers(instruction.definitions)
        ]
        if len(places) != 1:
            return False
        ((block, index),) = places
        saving = self.function.blocks[block].instructions[index]
        return (
            self.target.saves_mask(saving) == mask
            and not any(c & MaskChange.WIDENS for c in self._changes_of(block)[index:])
            and not self._reaches_around(block, narrowing)
        )

    def _reaches_around(self, avoided: int, end: int) -> bool:
        """True if a path from the entry to a block does not pass another one."""
        seen, pending = {0, avoided}, [0] if avoided else []
        for block in pending:
            fresh = set(self.function.blocks[block].successors) - seen
            seen |= fresh
            pending += fresh
        return end in pending

    @cached_property
    def _partial_blocks(self) -> frozenset[int]:
        """The blocks that stopped threads may pass without waking, and all blocks behind them."""
        found: set[int] = set()
        if not self.target.masked_files:
            return frozenset()
        pending = [s for block in range(len(self.function.blocks)) for s in self._unsure(block)]
        while pending:
            block = pending.pop()
            if block not in found:
                found.add(block)
                pending += self.function.blocks[block].successors
        return frozenset(found)

    def _unsure(self, block: int) -> list[int]:
        """The successors of a block that the threads stopped in it may enter without waking."""
        changes = [change for change in self._changes_of(block) if change]
        narrows = [bool(change & MaskChange.NARROWS) for change in changes]
        if not any(narrows):
            return []
        successors = self.function.blocks[block].successors
        woken_here = any(c & MaskChange.WIDENS for c in changes[narrows.index(True) :])
        if woken_here or len(successors) != 2:
            # The block may have woken other threads than those that it stopped.
            return list(successors)
        if sum(self._wakes(block, each) for each in successors) == 1:
            return []
        a, b = successors
        for on, other in ((a, b), (b, a)):
            if self._goes_on(on, other, block) and not self._goes_on(other, on, block):
                return [other]
        return list(successors)

    def _goes_on(self, start: int, other: int, narrowing: int) -> bool:
        """True if a successor leads to the other one, or back to the narrowing block."""
        seen = {start}
        pending = [start]
        while pending:
            block = pending.pop()
            if block in (other, narrowing):
                return True
            for successor in self.function.blocks[block].successors:
                if successor not in seen:
                    seen.add(successor)
                    pending.append(successor)
        return False
