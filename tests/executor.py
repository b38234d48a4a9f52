"""Runs a function on physical registers, along random paths with random predicates.

Every definition that acts makes a new value. The virtual program keeps values
by lane, the assigned one by register unit; wherever a use reads a lane that
has a value, the unit must hold that very value. A predicate's truth is drawn
when it is defined. Nothing is analysed beforehand, so nothing can be wrong in
the same way as in the verifier; but a path may miss what another would show.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from verilocc_bench.ir import FixedUnits, Function, Guard, Instruction, Operand, VirtualLanes

Unit = tuple[str, int]
Lane = tuple[object, int]


class Executor:
    """One function under one assignment: bases as (file, index) of virtual registers."""

    def __init__(self, function: Function, bases: Mapping[int, Unit]) -> None:
        self.function, self.bases = function, bases

    def finds_a_difference(self, seed: int, steps: int) -> bool:
        """Whether some use reads another value than it should, on one random path."""
        run = _Run(self, random.Random(seed))
        block = 0
        while steps > 0:
            steps -= len(self.function.blocks[block].instructions) + 1
            for instruction in self.function.blocks[block].instructions:
                if not run.step(instruction):
                    return True
            following = run.following(block)
            if following is None:
                return False
            block = following
        return False

    def unit(self, lane: Lane) -> Unit:
        """Where a lane lies."""
        if isinstance(lane[0], str):
            return lane[0], lane[1]
        assert isinstance(lane[0], int)
        file, index = self.bases[lane[0]]
        return file, index + lane[1]


class _Run:
    def __init__(self, executor: Executor, generator: random.Random) -> None:
        self.executor, self.generator = executor, generator
        self.by_lane: dict[Lane, int] = {}
        self.by_unit: dict[Unit, int] = {}
        self.truth: dict[Lane, bool] = {}
        self.values = 0
        for units in executor.function.live_ins:
            for lane in lanes(Operand(units)):
                self.define(lane)

    def define(self, lane: Lane) -> None:
        self.values += 1
        self.by_lane[lane] = self.values
        self.by_unit[self.executor.unit(lane)] = self.values
        self.truth.pop(lane, None)

    def reads_its_value(self, lane: Lane) -> bool:
        value = self.by_lane.get(lane)
        return value is None or self.by_unit.get(self.executor.unit(lane)) == value

    def reads_its_guard(self, guard: Guard) -> bool:
        lane = lanes(Operand(guard.location))[0]
        if lane not in self.by_lane:
            # Nothing has written it, and it has a value all the same: one that stays.
            self.define(lane)
        return self.reads_its_value(lane)

    def holds(self, guard: Guard) -> bool:
        lane = lanes(Operand(guard.location))[0]
        if lane not in self.truth:
            self.truth[lane] = self.generator.random() < 0.5
        return self.truth[lane] != guard.negated

    def step(self, instruction: Instruction) -> bool:
        """Executes an instruction; False where it reads what it should not."""
        guard = instruction.guard
        if guard is not None:
            if not self.reads_its_guard(guard):
                return False
            if not self.holds(guard):
                return True
        definitions = [(o, lane) for o in instruction.definitions for lane in lanes(o)]
        early = {lane for operand, lane in definitions if operand.early_clobber}
        for lane in early:
            # Written before the uses are read; of its own old value it is the successor.
            self.by_unit[self.executor.unit(lane)] = -1
        for operand in instruction.uses:
            if not operand.undef:
                for lane in lanes(operand):
                    if lane not in early and not self.reads_its_value(lane):
                        return False
        for operand in instruction.definitions:
            location = operand.location
            if operand.undef and isinstance(location, VirtualLanes):
                width = self.executor.function.virtual_registers[location.register].width
                for number in range(width):
                    self.by_lane.pop((location.register, number), None)
        for lane in dict.fromkeys(lane for _, lane in definitions):
            self.define(lane)
        return True

    def following(self, number: int) -> int | None:
        block = self.executor.function.blocks[number]
        if not block.successors:
            return None
        if block.branch_guard is not None:
            return block.successors[0 if self.holds(block.branch_guard) else 1]
        return self.generator.choice(block.successors)


def lanes(operand: Operand) -> list[Lane]:
    """The lanes of an operand: (virtual register, lane) or (file, unit)."""
    location = operand.location
    name = location.file if isinstance(location, FixedUnits) else location.register
    return [(name, location.first + offset) for offset in range(location.count)]
