"""Runs a function and its assigned, perhaps edited, program side by side.

Both programs walk the same random path. Values are opaque: every definition
that acts makes a new value, identified by where and when it is made. The
virtual program keeps values by lane, the assigned program by register unit and
spill slot. The result of an instruction depends on all that it reads, so every
read is observable. If the unit that a use reads does not hold the value of the
use's lane, the programs differ, and the path with all its decisions is the
proof. The walk analyses nothing beforehand, so it cannot share a mistake
with the other judges. But a path shows only the differences that occur on it.

These rules (docs/verification.md, docs/split-track.md) decide here:

- A lane without a value may read as anything. An undef definition ends the
  values of the register's other lanes.
- An instruction reads its guard first. Then it writes its early clobbers, reads
  its uses, and writes its other definitions. If it reads a lane that its own
  early clobber writes in the same place, it reads just before that write. An
  early clobber must not overwrite the guard of an instruction that acts. Two
  lanes written at once into one unit are a difference. A lane that two operands
  write in two places has its value in neither.
- An instruction may destroy physical units after it has read its uses: they hold nothing
  then. A definition in such a unit is a difference, unless it is the unit's own.
- A predicate is true or false at random, and chosen anew with every value. A
  predicate that nothing has written holds a value from the entry on. Two entry
  values in one unit are a difference once both have been read.
- Blocks that the entry does not lead to count: some runs start in one, where
  no lane holds a value.
- A constant that edits make again is the same value every time.

Execution masks (targets with `masked_files`): the wave walks the path, and one
thread is observed. In a block that may narrow the mask the thread may fall
asleep. It wakes in a successor of that block that may widen the mask, however
long the wave's way there is. So the thread's own path is a path of the graph,
too, without the blocks that the wave visits meanwhile. A sleeping thread neither
reads nor writes vector registers, lane by lane, in either program. The text
defines lanes between the place where the thread falls asleep and the end of the
block, and between the start of a block and the place where it wakes; the thread
skips these definitions, so the lanes have no value from there on.
Without edits a valid assignment cannot fail: vector units follow the thread's
path and scalar units the wave's. Both are paths of the graph, no needed value is
overwritten on either, and a skipped definition overwrites nothing.

Cost: linear in the steps of the path. The walk reads the instructions of a
block when the path first reaches it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from verilocc_bench.edits import GUARD, EditedFunction
from verilocc_bench.ir import Function, Instruction
from verilocc_bench.targets import MaskChange, Target
from verilocc_bench.verification.value_walk.code import (
    Code,
    ConcreteEffects,
    ExecutionStep,
    Transfer,
)
from verilocc_bench.verification.value_walk.thread_mask import ThreadMask
from verilocc_bench.verification.value_walk.trace import (
    Made,
    Miscompile,
    TraceBlock,
    Value,
    ValueOrigin,
)

ASLEEP_CHANCE = 0.5
DETOUR = 4
"""The number of blocks that the wave walks at random before it heads for the waking block."""


class ValueWalk:
    """One function under one answer.

    `bases` are the base registers, as (file, index), of all virtual registers,
    with those that the edits make. The walk does not check that units exist
    or are allowed.
    """

    def __init__(
        self,
        function: Function,
        target: Target,
        bases: Mapping[int, tuple[str, int]],
        edited: EditedFunction | None = None,
    ) -> None:
        self.function = function
        self.code = Code(function, target, bases, edited)
        self.steps: dict[int, tuple[ExecutionStep, ...]] = {}
        self.distances: dict[int, dict[int, int]] = {}
        self.unreachable = _unreachable(function)
        self.wakes_in = _wakes_in(function, target) if target.masked_files else {}

    def run(self, seed: int, steps: int, toward: int | None = None) -> Miscompile | None:
        """Walks one path of about `steps` instructions. Returns a difference, if one occurs.

        Where the path has a choice it prefers the way `toward` that block.
        """
        return _PathRun(self, random.Random(seed), toward).walk(steps)  # noqa: S311

    def block(self, number: int) -> tuple[ExecutionStep, ...]:
        """The steps of a block."""
        found = self.steps.get(number)
        if found is None:
            found = self.steps[number] = self.code.block(number)
        return found

    def instructions(self, block: int) -> tuple[Instruction, ...]:
        """The function's own instructions of a block."""
        return self.function.blocks[block].instructions

    def distance(self, target: int) -> dict[int, int]:
        """The number of edges from every block that leads to `target` to that block."""
        found = self.distances.get(target)
        if found is None:
            found = self.distances[target] = _distances(self.function, target)
        return found


class _PathRun:
    def __init__(self, walked: ValueWalk, generator: random.Random, toward: int | None) -> None:
        self.walked, self.generator = walked, generator
        self.code = walked.code
        self.by_lane: dict[int, Value] = {}
        self.by_unit: dict[int, Value] = {}
        self.truth: dict[int, bool] = {}
        self.bias = generator.choice((0.2, 0.5, 0.5, 0.8))
        self.toward = toward
        self.step = 0
        self.trace: list[tuple[int, list[tuple[int, int, str]]]] = []
        self.mask = ThreadMask(self.code.target)
        self.asleep = False
        self.on_own_path = False
        self.sleepwalks = False
        self.wakes_in: int | None = None
        self.detour = 0

    def walk(self, steps: int) -> Miscompile | None:
        block: int | None = 0
        unreachable = self.walked.unreachable
        if unreachable and self.generator.random() < 0.25:
            block = self.generator.choice(unreachable)
        else:
            self.by_lane.update(self.code.entry_lanes)
            self.by_unit.update(self.code.entry_units())
        while block is not None and self.step < steps:
            self.step += 1
            self.trace.append((block, []))
            self.on_own_path = self.sleepwalks or block == self.wakes_in
            for step in self.walked.block(block):
                self.step += 1
                difference = self.execute(block, step)
                if difference is not None:
                    return difference
            following = self.following(block)
            if following is not None:
                for transfer in self.code.on_edge(block, following):
                    self.transfer(transfer)
            block = following
        return None

    def execute(self, block: int, step: ExecutionStep) -> Miscompile | None:
        for transfer in step.before:
            self.transfer(transfer)
        if step.guard is not None:
            lane, unit, acts_when = step.guard
            if not self.holds_its_value(lane, unit):
                return self.differs(block, step.place, -1, lane, unit)
            truth = self.decide(lane)
            self.trace[-1][1].append((step.place, lane, "true" if truth else "false"))
            if truth != acts_when:
                return None
        if self.asleep:
            found = self.instruction(block, step.place, step.only_scalar)
            if self.on_own_path:
                for lane in step.masked_lanes:
                    self.by_lane.pop(lane, None)
        else:
            found = self.instruction(block, step.place, step.effects)
        if self.walked.wakes_in and step.place < len(self.walked.instructions(block)):
            instruction = self.walked.instructions(block)[step.place]
            awake = not self.asleep
            if step.mask is not MaskChange.NONE and found is None:
                self.change_mask(block, step, instruction)
            self.mask.executed(instruction, awake=awake)
        return found

    def instruction(self, block: int, index: int, effects: ConcreteEffects) -> Miscompile | None:
        """Writes the early clobbers, reads the uses, writes the other definitions."""
        by_lane, by_unit = self.by_lane, self.by_unit
        made: list[Value] = [
            constant or (block, index, operand, lane, self.step)
            for operand, lane, _, constant in effects.definitions
        ]
        for operand, lane, unit in effects.own_uses:
            if not self.holds_its_value(lane, unit):
                return self.differs(block, index, operand, lane, unit)
        for number in effects.early:
            by_unit[effects.definitions[number][2]] = made[number]
        for operand, lane, unit in effects.uses:
            value = by_lane.get(lane)
            right = value is None or by_unit.get(unit) is value
            if not right and not self.holds_its_value(lane, unit):
                return self.differs(block, index, operand, lane, unit)
        for lane in effects.ended:
            by_lane.pop(lane, None)
        for (_, lane, unit, _), value in zip(effects.definitions, made, strict=True):
            by_lane[lane] = by_unit[unit] = value
            self.truth.pop(lane, None)
        if effects.destroyed:
            found = self.destroy(block, index, effects)
            if found is not None:
                return found
        for lane in effects.torn:
            by_lane[lane] = (block, index, GUARD, lane, self.step)
        for first, second in effects.clashes:
            operand, lane, unit, _ = effects.definitions[first]
            by_lane[lane], by_unit[unit] = made[first], made[second]
            return self.differs(block, index, operand, lane, unit)
        return None

    def destroy(self, block: int, index: int, effects: ConcreteEffects) -> Miscompile | None:
        """Empties the destroyed units. The miscompile, if a definition is in one of them."""
        units = {unit for _, unit in effects.destroyed}
        for lane, unit in effects.destroyed:
            self.by_lane.pop(lane, None)
            self.by_unit.pop(unit, None)
        for operand, lane, unit, _ in effects.definitions:
            if unit in units:
                return self.differs(block, index, operand, lane, unit)
        return None

    def holds_its_value(self, lane: int, unit: int) -> bool:
        """True if the unit holds the lane's value, or the lane has none."""
        expected = self.by_lane.get(lane)
        if expected is None:
            return True
        found = self.by_unit.get(unit)
        if isinstance(found, list) and expected in found:
            # Several lanes have entry values here: the first one read is the actual one.
            found[:] = [expected]
            return True
        return found is expected

    def decide(self, lane: int) -> bool:
        if lane not in self.truth:
            self.truth[lane] = self.generator.random() < self.bias
        return self.truth[lane]

    def transfer(self, transfer: Transfer) -> None:
        """Executes an inserted move, spill, reload or constant: reads everything, then writes."""
        by_unit = self.by_unit
        moved = [
            (destination, constant or by_unit.get(source))
            for destination, source, constant, masked in transfer
            if not (masked and self.asleep)
        ]
        written: set[int] = set()
        for destination, value in moved:
            torn = destination in written
            written.add(destination)
            if value is None or torn:
                by_unit.pop(destination, None)
            else:
                by_unit[destination] = value

    def change_mask(self, block: int, step: ExecutionStep, instruction: Instruction) -> None:
        """Wakes the observed thread, or perhaps puts it to sleep."""
        events = self.trace[-1][1]
        if self.asleep:
            here = self.on_own_path and len(self.trace) > self.detour
            if here and step.mask & MaskChange.WIDENS:
                self.asleep, self.wakes_in = not self.mask.adds(instruction), None
                self.sleepwalks = self.asleep  # its path goes on here
                if not self.asleep:
                    events.append((step.place, -1, "the thread wakes"))
            return
        places = self.walked.wakes_in.get(block)
        if not step.mask & MaskChange.NARROWS:
            return
        if places and self.generator.random() < ASLEEP_CHANCE:
            self.asleep = self.on_own_path = True
            self.wakes_in = self.generator.choice(places)
            self.detour = len(self.trace)
            events.append((step.place, -1, "the thread falls asleep"))
        self.mask.narrowed(instruction, awake=not self.asleep)

    def following(self, block: int) -> int | None:
        """The next block of the path."""
        each = self.walked.function.blocks[block]
        if not each.successors:
            return None
        if each.branch_guard is not None:
            lane, acts_when = self.code.literal(each.branch_guard)
            return each.successors[0 if self.decide(lane) == acts_when else 1]
        if self.wakes_in is not None:
            return self.nearer(
                each.successors, self.wakes_in, len(self.trace) - self.detour > DETOUR
            )
        if self.toward is not None and self.generator.random() < 0.6:
            return self.nearer(each.successors, self.toward, True)
        return self.generator.choice(each.successors)

    def nearer(self, successors: tuple[int, ...], target: int, straight: bool) -> int | None:
        """A successor that leads to `target`; the nearest one if `straight`."""
        distance = self.walked.distance(target)
        leading = [s for s in successors if s in distance]
        if not leading:
            return self.generator.choice(successors) if self.wakes_in is None else None
        if straight:
            least = min(distance[s] for s in leading)
            leading = [s for s in leading if distance[s] == least]
        return self.generator.choice(leading)

    def differs(self, block: int, index: int, operand: int, lane: int, unit: int) -> Miscompile:
        expected, found = self.by_lane[lane], self.by_unit.get(unit)
        if isinstance(found, list):
            found = found[0]
        assert isinstance(expected, tuple)
        return Miscompile(
            block=block,
            instruction=index,
            operand=operand,
            lane=self.code.lane_name(lane),
            unit=self.code.unit_name(unit),
            expected=self.origin(expected),
            found=None if found is None else self.origin(found),
            trace=tuple(
                TraceBlock(
                    number,
                    tuple(
                        (index, what if at < 0 else f"{self.code.lane_name(at)} is {what}")
                        for index, at, what in events
                    ),
                )
                for number, events in self.trace
            ),
        )

    def origin(self, value: Made) -> ValueOrigin:
        block, index, operand, lane, step = value
        return ValueOrigin(block, index, operand, self.code.lane_name(lane), step)


def _distances(function: Function, target: int) -> dict[int, int]:
    before: dict[int, list[int]] = {}
    for number, block in enumerate(function.blocks):
        for successor in block.successors:
            before.setdefault(successor, []).append(number)
    found = {target: 0}
    pending = [target]
    for reached in pending:
        for earlier in before.get(reached, ()):
            if earlier not in found:
                found[earlier] = found[reached] + 1
                pending.append(earlier)
    return found


def _unreachable(function: Function) -> tuple[int, ...]:
    found = {0}
    pending = [0]
    while pending:
        for successor in function.blocks[pending.pop()].successors:
            if successor not in found:
                found.add(successor)
                pending.append(successor)
    return tuple(b for b in range(len(function.blocks)) if b not in found)


def _wakes_in(function: Function, target: Target) -> dict[int, tuple[int, ...]]:
    """For each block that may narrow the mask: the successors that may widen it."""
    changes: list[MaskChange] = []
    for block in function.blocks:
        change = MaskChange.NONE
        for each in target.mask_changes(block.instructions):
            change |= each
        changes.append(change)
    return {
        number: places
        for number, block in enumerate(function.blocks)
        if changes[number] & MaskChange.NARROWS
        and (places := tuple(s for s in block.successors if changes[s] & MaskChange.WIDENS))
    }
