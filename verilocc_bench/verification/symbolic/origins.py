"""The origins of values: the last writes of a place, and the definitions of a lane.

The walks go backwards from a step of the program over all edges and ignore
predicates. They only tell a reader where to look. Cost: one pass over the
program, then one look-up for each block on the way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property

from verilocc_bench.edits.findings import Place
from verilocc_bench.verification.symbolic.symbolic_lanes import Lanes
from verilocc_bench.verification.symbolic.symbolic_program import Copies, Execute, SymbolicProgram

NOTHING = "nothing"

_Writes = dict[Hashable, list[int]]
"""The steps of a block that write each place or lane, by number, ascending."""


class Origins:
    """Finds the origins of values in one program."""

    def __init__(self, lanes: Lanes, program: SymbolicProgram) -> None:
        self.lanes, self.program = lanes, program
        self.steps = 0
        """The number of blocks and writes that all walks have visited."""

    def writers(self, step: Execute, bit: int) -> list[str]:
        """The steps that may have written a place last before a step, in words, nearest first."""
        found: dict[str, None] = {}
        for block, number, edge in self._walk(step, bit, self._places_written):
            found[self._described(block, number, edge)] = None
        return list(found)

    def definitions(self, step: Execute, lane: int) -> tuple[Place, ...]:
        """The definitions of a lane that may reach a step; the entry is (0, -1)."""
        found: set[Place] = set()
        for block, number, _ in self._walk(step, lane, self._lanes_defined):
            if number is None:
                if block == 0 and lane in self.program.entry:
                    found.add((0, -1))
                continue
            each = self.program.blocks[block][number]
            assert isinstance(each, Execute)
            if lane not in each.ended:
                found.add((each.block, each.index))
        return tuple(sorted(found))

    def _walk(
        self, step: Execute, what: int, writes: list[_Writes]
    ) -> Iterator[tuple[int, int | None, int | None]]:
        """Yields the last writes as (block, step, successor).

        `step` is None for the entry of the function. `successor` is set for a
        write on the edge to it.
        """
        start = self._numbers[step.block, step.index]
        pending = deque([(step.block, start)])
        seen: set[int] = set()
        while pending:
            block, before = pending.popleft()
            self.steps += 1 + len(self._predecessors[block])
            stopped = False
            numbers = writes[block].get(what, [])
            for place in range(bisect_left(numbers, before) - 1, -1, -1):
                number = numbers[place]
                self.steps += 1
                yield block, number, None
                each = self.program.blocks[block][number]
                if isinstance(each, Copies) or each.guard is None:
                    stopped = True
                    break
            if stopped:
                continue
            if not self._predecessors[block] or block == 0:
                yield block, None, None
            for predecessor in self._predecessors[block]:
                copies = self.program.edges.get((predecessor, block), ())
                if writes is self._places_written and any(
                    destination == what for each in copies for destination, _ in each.pairs
                ):
                    yield predecessor, None, block
                elif predecessor not in seen:
                    seen.add(predecessor)
                    pending.append((predecessor, len(self.program.blocks[predecessor])))

    def _described(self, block: int, number: int | None, edge: int | None) -> str:
        if edge is not None:
            return f"an insertion on the edge from bb{block} to bb{edge}"
        if number is None:
            return NOTHING
        steps = self.program.blocks[block]
        step = steps[number]
        if isinstance(step, Execute):
            opcode = self.lanes.effects[step.block][step.index].opcode
            return f"bb{step.block} instruction {step.index} ({opcode})"
        following = (each.index for each in steps[number:] if isinstance(each, Execute))
        index = next(following, len(self.lanes.effects[block]))
        return f"an insertion at bb{block} instruction {index}"

    @cached_property
    def _numbers(self) -> dict[Place, int]:
        return {
            (step.block, step.index): number
            for steps in self.program.blocks
            for number, step in enumerate(steps)
            if isinstance(step, Execute)
        }

    @cached_property
    def _places_written(self) -> list[_Writes]:
        def written(step: Execute | Copies) -> Iterator[int]:
            if isinstance(step, Execute):
                yield from step.written
            else:
                yield from (destination for destination, _ in step.pairs)

        return self._by_block(written)

    @cached_property
    def _lanes_defined(self) -> list[_Writes]:
        def defined(step: Execute | Copies) -> Iterator[int]:
            if isinstance(step, Execute):
                yield from step.ended
                yield from (lane for lane, _ in step.values)

        return self._by_block(defined)

    def _by_block(self, written: Callable[[Execute | Copies], Iterator[int]]) -> list[_Writes]:
        found: list[_Writes] = []
        for steps in self.program.blocks:
            writes: _Writes = defaultdict(list)
            for number, step in enumerate(steps):
                for what in written(step):
                    writes[what].append(number)
            found.append(writes)
        return found

    @cached_property
    def _predecessors(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.program.blocks]
        for number, block in enumerate(self.lanes.function.blocks):
            for successor in block.successors:
                found[successor].append(number)
        return found
