"""False dependences: the order that a shared register adds to the code.

An instruction that writes a virtual register may change places with an earlier one that
reads or writes another virtual register. If both virtual registers share a register
unit, it may not. The scheduler that runs after allocation then has less freedom to hide
latencies: code waits where it could go on. Behind a matrix instruction the hardware
itself needs distance, so that code is filled with wait states, also around a loop.

A pair of one block is listed if nothing orders it anyway: no chain of true dependences,
memory operations and barriers. A pair of a block and its successor is listed if the
earlier instruction needs wait states: scheduling may bring the two close together.

Targets whose instructions keep their order after allocation have no false dependences.

Cost: linear in the instructions times the window, and one bit-set operation for each
true dependence; 0.2 s for 1,200 instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from verilocc_bench.analysis.effects import Effects, LaneNumbering, all_effects, iterate_bits
from verilocc_bench.analysis.liveness import Liveness
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import Instruction, VirtualLanes

WINDOW = 48
"""The most instructions from the earlier to the later one of a pair."""


class FalseDependence(NamedTuple):
    """Two instructions that a shared register unit would keep in order.

    The later one, in `block`, writes the lanes `written`. The earlier one, `distance`
    instructions before, reads or writes the lanes `accessed` of another virtual
    register, of which some hold no value any more. `stalls` is True if the two are
    closer, in the order of the text, than the hardware allows.
    """

    block: int
    distance: int
    accessed: VirtualLanes
    written: VirtualLanes
    stalls: bool


def false_dependences(problem: AllocationProblem) -> list[FalseDependence]:
    """The false dependences of all blocks, in the order of the later instructions."""
    return list(_Collector(problem).collect()) if problem.target.stays_behind else []


class _Collector:
    """Finds the pairs block by block."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.liveness: Liveness = problem.liveness
        self.lanes = LaneNumbering(problem.function)
        self.blocks = [block.instructions for block in problem.function.blocks]
        self.successors = [block.successors for block in problem.function.blocks]
        self.reads = [[_virtual(i, writes=False) for i in block] for block in self.blocks]
        self.writes = [[_virtual(i, writes=True) for i in block] for block in self.blocks]
        wait_states, stays_behind = problem.target.wait_states, problem.target.stays_behind
        assert stays_behind is not None
        self.needs = [[wait_states(i) for i in block] for block in self.blocks]
        effects = all_effects(problem.function, self.lanes)
        self.before = [
            _ordered_before(*each)
            for each in zip(effects, map(stays_behind, self.blocks), strict=True)
        ]

    def collect(self) -> Iterator[FalseDependence]:
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for block, successors in enumerate(self.successors):
            for successor in dict.fromkeys(successors):
                predecessors[successor].append(block)
        for block, instructions in enumerate(self.blocks):
            for later in range(len(instructions)):
                if self.writes[block][later]:
                    before = self.before[block][later]
                    for earlier in range(later - 1, max(later - 1 - WINDOW, -1), -1):
                        if not before >> earlier & 1:
                            yield from self._pairs(block, earlier, block, later, later - earlier)
                    for predecessor in predecessors[block]:
                        yield from self._across(predecessor, block, later)

    def _across(self, predecessor: int, block: int, later: int) -> Iterator[FalseDependence]:
        needs = self.needs[predecessor]
        for earlier in range(len(needs) - 1, max(len(needs) - 1 - WINDOW, -1), -1):
            distance = len(needs) - earlier + later
            if needs[earlier] and distance <= WINDOW:
                yield from self._pairs(predecessor, earlier, block, later, distance)

    def _pairs(
        self, first_block: int, earlier: int, block: int, later: int, distance: int
    ) -> Iterator[FalseDependence]:
        stalls = self.needs[first_block][earlier] > distance
        point = self.liveness.after[block][later]
        accesses = self.writes[first_block][earlier] + self.reads[first_block][earlier]
        for written in self.writes[block][later]:
            for accessed in accesses:
                if accessed.register != written.register and self._is_free(accessed, point):
                    yield FalseDependence(block, distance, accessed, written, stalls)

    def _is_free(self, location: VirtualLanes, point: int) -> bool:
        """True if some lane holds no value at a point, so that it can be written."""
        first = self.lanes.offsets[location.register] + location.first
        live = self.liveness.live
        return any(not live[lane] >> point & 1 for lane in range(first, first + location.count))


def _virtual(instruction: Instruction, *, writes: bool) -> tuple[VirtualLanes, ...]:
    """The lanes of virtual registers that an instruction writes, or those that it reads."""
    operands = instruction.definitions if writes else instruction.uses
    return tuple(
        operand.location
        for operand in operands
        if isinstance(operand.location, VirtualLanes) and (writes or not operand.undef)
    )


def _ordered_before(effects: Sequence[Effects], stays_behind: Sequence[int]) -> list[int]:
    """For each instruction of a block all that it must stay behind, as a bit mask."""
    writer: dict[int, int] = {}
    readers: dict[int, int] = {}
    found: list[int] = []
    for number, (effect, before) in enumerate(zip(effects, stays_behind, strict=True)):
        read, own = effect.used | effect.guard_lane, 1 << number
        direct = before
        for lane in iterate_bits(read | effect.defined):
            direct |= writer.get(lane, 0)
        for lane in iterate_bits(effect.defined):
            direct |= readers.get(lane, 0)
        every = direct
        for one in iterate_bits(direct):
            every |= found[one]
        found.append(every)
        for lane in iterate_bits(read):
            readers[lane] = readers.get(lane, 0) | own
        for lane in iterate_bits(effect.defined):
            writer[lane], readers[lane] = own, 0
    return found
