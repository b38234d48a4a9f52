"""The places for insertions in vector registers, as far as EXEC restricts them (AMD).

A thread must execute an insertion exactly if its own path through the control-flow
graph passes it. In a block this holds after the last instruction that may widen EXEC
and before the first that may narrow it. The threads that a block stops take the edge
to the block that wakes them by widening EXEC; the others take the other edge. If
neither successor widens EXEC (one may end the program), the shape of the graph decides:
the threads that go on take the successor that leads to the other successor, or back to
the narrowing block. Only some of the threads may execute the blocks behind the other
successor, or behind both if the shape does not decide. Nothing can be inserted there.
The same holds behind a block that narrows EXEC and has only one successor, or widens
EXEC again.

Cost: linear in the instructions; one walk over the graph for each block that
narrows EXEC and has no successor that widens it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from verilocc_bench.ir import Function
from verilocc_bench.targets import MaskChange, Target


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
            self._changes[block] = [self.target.mask_change(each) for each in instructions]
        return self._changes[block]

    def _wakes(self, block: int) -> bool:
        """True if the first change of EXEC in a block widens it."""
        first = next((change for change in self._changes_of(block) if change), MaskChange.NONE)
        return bool(first & MaskChange.WIDENS)

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
        if sum(map(self._wakes, successors)) == 1:
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
