"""The function of the brute-force judge: numbered places, with their reads and writes.

Every instruction and the end of every block is a place. An instruction has two
moments: at 2 * place, before the uses are read, it writes its early clobbers; at
2 * place + 1, after the uses are read, it writes the other definitions, and it
destroys units. The
moment of the entry is -1. The cost is linear in the operands.
"""

from __future__ import annotations

from collections import defaultdict

from verilocc_bench.ir import FixedUnits, Function, Guard, Operand

Lane = tuple[int | str, int]
"""(virtual register, lane) or (file, unit)."""

ENTRY = -1


class OracleProgram:
    """The numbered places of one function.

    `writes[lane]` are the moments that write the lane. For each place, `uses` are
    the lanes that it reads, `stops` the lanes that get another value or none,
    `guards` the (predicate, value) under which it acts, and `branches` the
    (predicate, value) that chooses between the two places in `following`.
    `definitions[lane]` are the places of its definitions. `entries` are the
    places where execution can begin: the entry, and the blocks that it does not
    lead to.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.writes: dict[Lane, set[int]] = defaultdict(set)
        self.following: list[list[int]] = []
        self.uses: dict[int, set[Lane]] = {}
        self.stops: dict[int, set[Lane]] = {}
        self.guards: dict[int, tuple[Lane, bool]] = {}
        self.branches: dict[int, tuple[Lane, bool]] = {}
        self.definitions: dict[Lane, list[int]] = defaultdict(list)
        self._number_places()
        self._read_instructions()

    def _number_places(self) -> None:
        starts = []
        count = 0
        for block in self.function.blocks:
            starts.append(count)
            count += len(block.instructions) + 1
        for start, block in zip(starts, self.function.blocks, strict=True):
            for index in range(len(block.instructions)):
                self.following.append([start + index + 1])
            self.following.append([starts[successor] for successor in block.successors])
        self.entries = self._entries(starts)

    def _entries(self, starts: list[int]) -> list[int]:
        """The places where execution can begin: the entry and the blocks that it does not reach."""
        found = {0}
        pending = [0]
        while pending:
            for successor in self.function.blocks[pending.pop()].successors:
                if successor not in found:
                    found.add(successor)
                    pending.append(successor)
        return [0, *(start for block, start in enumerate(starts) if block not in found)]

    def _read_instructions(self) -> None:
        """Fills in the reads and writes of each place."""
        for units in self.function.live_ins:
            for lane in lanes_of(Operand(units)):
                self.writes[lane].add(ENTRY)
                self.definitions[lane].append(ENTRY)
        place = 0
        for block in self.function.blocks:
            for instruction in block.instructions:
                written: dict[Lane, bool] = {}
                ended: set[Lane] = set()
                for operand in instruction.definitions:
                    for lane in lanes_of(operand):
                        written[lane] = written.get(lane, False) or operand.early_clobber
                    location = operand.location
                    if operand.undef and not isinstance(location, FixedUnits):
                        width = self.function.virtual_registers[location.register].width
                        ended |= {(location.register, lane) for lane in range(width)}
                for lane, early in written.items():
                    moments = {2 * place + 1} | ({2 * place} if early else set())
                    self.writes[lane] |= moments
                    self.definitions[lane].append(place)
                destroyed = {
                    lane for units in instruction.destroys for lane in lanes_of(Operand(units))
                } - written.keys()
                for lane in destroyed:
                    self.writes[lane].add(2 * place + 1)
                self.stops[place] = written.keys() | ended | destroyed
                self.uses[place] = {
                    lane
                    for operand in instruction.uses
                    if not operand.undef
                    for lane in lanes_of(operand)
                }
                if instruction.guard is not None:
                    self.guards[place] = self._guard(instruction.guard)
                place += 1
            if block.branch_guard is not None:
                self.branches[place] = self._guard(block.branch_guard)
            place += 1  # the end of the block

    def _guard(self, guard: Guard) -> tuple[Lane, bool]:
        """The predicate and the value with which the instruction acts."""
        return lanes_of(Operand(guard.location))[0], not guard.negated


def lanes_of(operand: Operand) -> list[Lane]:
    """The lanes of an operand, in order."""
    location = operand.location
    if isinstance(location, FixedUnits):
        return [(location.file, location.first + i) for i in range(location.count)]
    return [(location.register, location.first + i) for i in range(location.count)]
