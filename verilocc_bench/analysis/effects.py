"""The effects of each instruction on the lanes of a function, as bit masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from verilocc_bench.analysis.conditions import Literal
from verilocc_bench.ir import FixedUnits, Function, Guard, Instruction, VirtualLanes

FEW_BITS = 8
"""For up to this many set bits, looking for each one is faster than reading the binary text."""


class Effects(NamedTuple):
    """One instruction's effects on lanes, where its guard holds.

    `defined` lanes get a value; the instruction writes the `early` ones among
    them before it reads its uses. `ended` lanes lose their value and get no
    other. `destroyed` are fixed lanes among the ended ones: whatever is in their units is
    gone, too. `used` lanes are read. The guard's lane is always read and is not in
    `used`. `redefined` lists the defined lanes that guard something in the
    function.
    """

    defined: int
    early: int
    ended: int
    used: int
    guard: Literal | None
    redefined: tuple[int, ...]
    destroyed: int = 0

    @property
    def is_plain(self) -> bool:
        """True if the effects depend on no condition and change none."""
        return self.guard is None and not self.redefined

    @property
    def guard_lane(self) -> int:
        """The guard's lane as a mask; 0 without a guard."""
        return 0 if self.guard is None else 1 << self.guard[0]


class LaneNumbering:
    """Numbers the lanes: first the lanes of the virtual registers in order, then the fixed ones.

    `offsets[r]` is the first lane of virtual register r. `fixed[file, unit]` is the lane of a
    physical unit that the function names. From `destroyed_from` on follow units that some
    instruction destroys and none names, as far as a virtual register may lie there.
    """

    def __init__(self, function: Function) -> None:
        self.classes = function.virtual_registers
        self.offsets: list[int] = []
        self.count = 0
        for register_class in function.virtual_registers:
            self.offsets.append(self.count)
            self.count += register_class.width
        self.fixed: dict[tuple[str, int], int] = {}
        for units in function.live_ins:
            self._number(units)
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.guard is not None:
                    self._number(instruction.guard.location)
                for operand in instruction.definitions + instruction.uses:
                    if isinstance(operand.location, FixedUnits):
                        self._number(operand.location)
        self.destroyed_from = self.count
        masks = function.masks()
        self.masks: dict[tuple[FixedUnits, ...], int] = {}
        if masks:
            self._number_destroyed(function, masks)

    def _number_destroyed(
        self, function: Function, masks: tuple[tuple[FixedUnits, ...], ...]
    ) -> None:
        closed = {(u.file, u.first + n) for u in function.reserved for n in range(u.count)}
        budgets = {file.name: file.count for file in function.files}
        for mask in masks:
            found = 0
            for units in mask:
                for index in range(units.first, units.first + units.count):
                    unit = units.file, index
                    if unit not in self.fixed and (index >= budgets[units.file] or unit in closed):
                        continue
                    self._number(FixedUnits(*unit, 1))
                    found |= 1 << self.fixed[unit]
            self.masks[mask] = found

    def _number(self, location: VirtualLanes | FixedUnits) -> None:
        if isinstance(location, FixedUnits):
            for index in range(location.first, location.first + location.count):
                if (location.file, index) not in self.fixed:
                    self.fixed[location.file, index] = self.count
                    self.count += 1

    def mask(self, location: VirtualLanes | FixedUnits) -> int:
        """The lanes of an operand."""
        if isinstance(location, FixedUnits):
            units = range(location.first, location.first + location.count)
            return sum(1 << self.fixed[location.file, index] for index in units)
        return ((1 << location.count) - 1) << self.offsets[location.register] + location.first

    def whole(self, register: int) -> int:
        """All lanes of a virtual register."""
        return ((1 << self.classes[register].width) - 1) << self.offsets[register]

    def literal(self, guard: Guard | None) -> Literal | None:
        """A guard as its lane and the value with which the instruction acts."""
        if guard is None:
            return None
        return self.mask(guard.location).bit_length() - 1, not guard.negated


def all_effects(function: Function, lanes: LaneNumbering) -> list[list[Effects]]:
    """The effects of every instruction, block by block."""
    guards = 0
    masks: dict[int, int] = {}
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.guard is not None:
                guards |= lanes.mask(instruction.guard.location)
    return [
        [_effects(instruction, lanes, guards, masks) for instruction in block.instructions]
        for block in function.blocks
    ]


def _effects(
    instruction: Instruction, lanes: LaneNumbering, guards: int, masks: dict[int, int]
) -> Effects:
    """One instruction's effects. `masks` keeps the lanes of operands by their identity."""
    defined = early = ended = used = 0
    for operand in instruction.definitions:
        # The parser makes one object of equal operands.
        if (mask := masks.get(id(operand))) is None:
            mask = masks[id(operand)] = lanes.mask(operand.location)
        defined |= mask
        if operand.early_clobber:
            early |= mask
        if operand.undef and isinstance(operand.location, VirtualLanes):
            ended |= lanes.whole(operand.location.register)
    for operand in instruction.uses:
        if not operand.undef:
            if (mask := masks.get(id(operand))) is None:
                mask = masks[id(operand)] = lanes.mask(operand.location)
            used |= mask
    redefined: tuple[int, ...] = ()
    destroyed = 0
    if instruction.destroys:
        destroyed = lanes.masks[instruction.destroys] & ~defined
        ended |= destroyed
    if common := defined & guards:
        redefined = tuple(iterate_bits(common))
    if ended:
        # One definition may end a lane that another definition of the instruction writes.
        ended &= ~defined
    guard = None if instruction.guard is None else lanes.literal(instruction.guard)
    return Effects(defined, early, ended, used, guard, redefined, destroyed)


def iterate_bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending."""
    first, end = (mask & -mask).bit_length() - 1, mask.bit_length()
    # The lanes of one operand are neighbours.
    return iter(range(first, end)) if end - first == mask.bit_count() else _scattered_bits(mask)


def _scattered_bits(mask: int) -> Iterator[int]:
    if mask.bit_count() <= FEW_BITS:
        while mask:
            lowest = mask & -mask
            yield lowest.bit_length() - 1
            mask ^= lowest
        return
    text = bin(mask)[:1:-1]
    position = text.find("1")
    while position >= 0:
        yield position
        position = text.find("1", position + 1)
