"""The lanes of a function and the effects of its instructions, before any assignment.

A *lane* is one unit of a virtual register, or a physical unit that the function
names. Lanes are numbered, the virtual ones first. Everything here depends on the
function alone.

The module also finds the lanes that matter at the start of a block: those that
some path may read before it surely writes them. It is a backward may-analysis
over blocks, with union at joins; it ignores guards, so it can only find too many
lanes. The checker carries no other lanes from block to block. With too few it
would miss a value and reject the answer.

Cost: linear in the operands, and some set operations on integers for each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from verilocc_bench.ir import FixedUnits, Function, Instruction, VirtualLanes

GUARD_OPERAND = -1

DESTROYED_OPERAND = -2
"""Stands for the units that an instruction destroys, which are not an operand."""

Use: TypeAlias = tuple[int, int, int]
"""(operand, lane, the index of the lane in the operand)."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A lane that an instruction writes, with the operand and the lane's index in it."""

    operand: int
    lane: int
    offset: int
    early: bool


@dataclass(frozen=True, slots=True)
class SymbolicEffects:
    """The effects of an instruction that acts.

    `guard` is the lane of its guard and the value with which the instruction
    acts. `ended` are the lanes that hold no value afterwards. `destroyed` are those among
    them whose own units lose whatever they hold. `redefined` are the
    predicates that it writes or ends, by their numbers as predicates.
    """

    opcode: str
    guard: tuple[int, bool] | None
    uses: tuple[Use, ...]
    definitions: tuple[Definition, ...]
    ended: tuple[int, ...]
    redefined: tuple[int, ...]
    destroyed: tuple[int, ...] = ()


class Lanes:
    """Numbers the lanes of one function; `predicates` numbers those that guard something.

    `names[lane]` is (virtual register, its lane) or (file, unit). `effects` has
    the effects of every instruction of every block.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.offsets: list[int] = []
        self.names: list[tuple[int | str, int]] = []
        for number, register_class in enumerate(function.virtual_registers):
            self.offsets.append(len(self.names))
            self.names += [(number, index) for index in range(register_class.width)]
        self.fixed: dict[tuple[str, int], int] = {}
        for unit in _fixed_units(function):
            if unit not in self.fixed:
                self.fixed[unit] = len(self.names)
                self.names.append(unit)
        guards = {
            self.first(instruction.guard.location)
            for _, _, instruction in function.instructions()
            if instruction.guard is not None
        }
        self.predicates = {lane: number for number, lane in enumerate(sorted(guards))}
        self.effects = tuple(
            tuple([self._effects_of(instruction) for instruction in block.instructions])
            for block in function.blocks
        )

    def first(self, location: VirtualLanes | FixedUnits) -> int:
        """The number of the first lane of an operand; the others follow."""
        if isinstance(location, FixedUnits):
            return self.fixed[location.file, location.first]
        return self.offsets[location.register] + location.first

    def lanes(self, location: VirtualLanes | FixedUnits) -> range | list[int]:
        """The numbers of the lanes of an operand."""
        if isinstance(location, FixedUnits):
            units = range(location.first, location.first + location.count)
            return [self.fixed[location.file, unit] for unit in units]
        first = self.offsets[location.register] + location.first
        return range(first, first + location.count)

    def _effects_of(self, instruction: Instruction) -> SymbolicEffects:
        definitions: list[Definition] = []
        ended: set[int] = set()
        for operand, each in enumerate(instruction.definitions):
            for offset, lane in enumerate(self.lanes(each.location)):
                definitions.append(Definition(operand, lane, offset, each.early_clobber))
            if each.undef and isinstance(each.location, VirtualLanes):
                first = self.offsets[each.location.register]
                width = self.function.virtual_registers[each.location.register].width
                ended.update(range(first, first + width))
        written = {definition.lane for definition in definitions}
        destroyed = {
            self.fixed[units.file, units.first + offset]
            for units in instruction.destroys
            for offset in range(units.count)
        } - written
        ended = ended - written | destroyed
        predicates = self.predicates
        redefined = [predicates[lane] for lane in written | ended if lane in predicates]
        uses = [
            (operand, lane, offset)
            for operand, each in enumerate(instruction.uses, len(instruction.definitions))
            if not each.undef
            for offset, lane in enumerate(self.lanes(each.location))
        ]
        guard = instruction.guard
        return SymbolicEffects(
            instruction.opcode,
            None if guard is None else (self.first(guard.location), not guard.negated),
            tuple(uses),
            tuple(definitions),
            tuple(sorted(ended)),
            tuple(sorted(redefined)),
            tuple(sorted(destroyed)),
        )

    @cached_property
    def live_ins(self) -> tuple[int, ...]:
        """The lanes of the function's live-in registers."""
        return tuple(dict.fromkeys(lane for u in self.function.live_ins for lane in self.lanes(u)))

    @cached_property
    def needed(self) -> tuple[tuple[int, ...], ...]:
        """The lanes that matter at the start of each block, in ascending order."""
        exposed: list[int] = []
        kept: list[int] = []
        for block in self.effects:
            read, written = _summary(block)
            exposed.append(read)
            kept.append(~written)
        successors = [block.successors for block in self.function.blocks]
        before: list[list[int]] = [[] for _ in successors]
        for index, following in enumerate(successors):
            for successor in following:
                before[successor].append(index)
        needed = list(exposed)
        pending = dict.fromkeys(range(len(needed)))
        while pending:
            index, _ = pending.popitem()
            after = 0
            for successor in successors[index]:
                after |= needed[successor]
            now = exposed[index] | after & kept[index]
            if now != needed[index]:
                needed[index] = now
                pending |= dict.fromkeys(before[index])
        return tuple(tuple(_bits(mask)) for mask in needed)

    @cached_property
    def deciding(self) -> tuple[int, ...]:
        """The predicates whose values may matter at the start of each block, as a bit mask.

        They are the predicates among the needed lanes: an instruction reads its guard.
        """
        return tuple(
            sum(1 << self.predicates[lane] for lane in lanes if lane in self.predicates)
            for lanes in self.needed
        )

    @cached_property
    def last_decisions(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each instruction the predicates that guard nothing from there on until redefined."""
        return tuple(
            tuple(self._last_in(block.successors, effects))
            for block, effects in zip(self.function.blocks, self.effects, strict=True)
        )

    def _last_in(
        self, successors: tuple[int, ...], block: tuple[SymbolicEffects, ...]
    ) -> list[tuple[int, ...]]:
        deciding = 0
        for successor in successors:
            deciding |= self.deciding[successor]
        found: list[tuple[int, ...]] = [()] * len(block)
        for index in range(len(block) - 1, -1, -1):
            effects = block[index]
            if effects.guard is None:
                for predicate in effects.redefined:
                    deciding &= ~(1 << predicate)
                continue
            predicate = self.predicates[effects.guard[0]]
            if not deciding >> predicate & 1:
                found[index] = (predicate,)
                deciding |= 1 << predicate
        return found


def _fixed_units(function: Function) -> list[tuple[str, int]]:
    locations: list[FixedUnits] = list(function.live_ins)
    for _, _, instruction in function.instructions():
        operands = [o.location for o in instruction.definitions + instruction.uses]
        if instruction.guard is not None:
            operands.append(instruction.guard.location)
        locations += [location for location in operands if isinstance(location, FixedUnits)]
        locations += instruction.destroys
    return [
        (location.file, unit)
        for location in locations
        for unit in range(location.first, location.first + location.count)
    ]


def _summary(block: tuple[SymbolicEffects, ...]) -> tuple[int, int]:
    """The lanes that a block may read before it writes them, and those that it surely writes."""
    read: set[int] = set()
    written: set[int] = set()
    for effects in block:
        if effects.guard is not None:
            read.update({effects.guard[0]} - written)
        read.update({lane for _, lane, _ in effects.uses} - written)
        if effects.guard is None:
            written.update(definition.lane for definition in effects.definitions)
            written.update(effects.ended)
    return _mask(read), _mask(written)


def _mask(lanes: set[int]) -> int:
    """The set as a bit mask, built from bytes: linear in the highest number."""
    if not lanes:
        return 0
    data = bytearray(max(lanes) // 8 + 1)
    for lane in lanes:
        data[lane >> 3] |= 1 << (lane & 7)
    return int.from_bytes(data, "little")


def _bits(mask: int) -> list[int]:
    data = mask.to_bytes(mask.bit_length() // 8 + 1, "little")
    return [
        position * 8 + bit
        for position, byte in enumerate(data)
        if byte
        for bit in range(8)
        if byte >> bit & 1
    ]
