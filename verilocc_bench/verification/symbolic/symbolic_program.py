"""The program that the checker runs: an edited function on the places of one answer.

Every place that can hold a value is a bit of a mask: the register units and the
spill slots that the program names, and one place for each constant that is
rematerialized. A lane gets its constant's place, besides its register, when the
defining instruction runs. Bit 0, NOWHERE, is not a place: only lanes without a
value are there. If an early clobber of another lane overwrites the register of
an operand before the operand is read, the operand reads from NOWHERE.

Cost: linear in the operands and edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from verilocc_bench.edits import Action, EditedFunction, Move, Reload, SlotSpan, Spill
from verilocc_bench.ir import VirtualLanes
from verilocc_bench.verification.symbolic.places import Place, Places
from verilocc_bench.verification.symbolic.symbolic_lanes import (
    DESTROYED_OPERAND,
    GUARD_OPERAND,
    Definition,
    Lanes,
    SymbolicEffects,
)

NOWHERE = 1

SLOT = "slot"
"""The file of spill slots."""

CONSTANT = "constant of"
"""The file of rematerialized constants."""


@dataclass(frozen=True, slots=True)
class Read:
    """A lane that an operand reads from a place; `asked` is the bit that must hold it."""

    operand: int
    lane: int
    place: int
    asked: int


@dataclass(frozen=True, slots=True)
class Execute:
    """One instruction.

    `written` are the bits that it overwrites or destroys, `values` the lanes that are there
    afterwards. `redefined` are the predicates that get a new value; `decided` are
    the predicates whose value no longer matters afterwards. `collisions` are
    (definition, definition, bit) of two lanes written to one place.
    """

    block: int
    index: int
    guard: tuple[int, bool] | None
    guard_read: Read | None
    reads: tuple[Read, ...]
    written: tuple[int, ...]
    ended: tuple[int, ...]
    values: tuple[tuple[int, int], ...]
    redefined: tuple[int, ...]
    decided: tuple[int, ...]
    collisions: tuple[tuple[Definition, Definition, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Copies:
    """Pairs of bits (destination, source). All are read before any is written."""

    pairs: tuple[tuple[int, int], ...]


Step: TypeAlias = Execute | Copies


@dataclass(frozen=True, slots=True)
class SymbolicProgram:
    """The steps of every block and edge; `entry` are the lanes that hold a value at the entry."""

    blocks: tuple[tuple[Step, ...], ...]
    edges: dict[tuple[int, int], tuple[Copies, ...]]
    entry: dict[int, int]


class Compiler:
    """Compiles one edited function for the places of one answer."""

    def __init__(self, lanes: Lanes, edited: EditedFunction, places: Places) -> None:
        self.lanes, self.edited, self.places = lanes, edited, places
        self.names: list[Place | None] = [None]
        self._bits: dict[Place | tuple[str, int, int, int], int] = {}
        self._constants: set[tuple[int, int]] = set()
        self._homes = [0] * len(lanes.names)

    def compile(self, entry: Iterable[int]) -> SymbolicProgram:
        """The program; the lanes `entry` hold a value at the entry, in their own places."""
        edited = self.edited
        every = [*edited.before.values(), *edited.on_edge.values()]
        self._constants = {
            (action.block, action.index)
            for actions in every
            for action in actions
            if not isinstance(action, Move | Reload | Spill)
        }
        return SymbolicProgram(
            tuple(tuple(self._block(number)) for number in range(len(self.lanes.effects))),
            {
                edge: tuple([self._copies(action) for action in actions])
                for edge, actions in edited.on_edge.items()
            },
            {lane: self.home(lane) for lane in sorted(entry)},
        )

    def home(self, lane: int) -> int:
        """The bit of a lane's own place."""
        if not self._homes[lane]:
            self._homes[lane] = self.bit(self._place(*self.lanes.names[lane]))
        return self._homes[lane]

    def bit(self, place: Place) -> int:
        """The bit of a register unit or a slot."""
        found = self._bits.get(place)
        if found is None:
            found = self._bits[place] = 1 << len(self.names)
            self.names.append(place)
        return found

    def operand_bit(self, block: int, index: int, operand: int, lane: int, offset: int) -> int:
        """The place where an operand reads or writes a lane: its own or the replacing one."""
        location = self.edited.replaced.get((block, index, operand))
        if location is None:
            return self.home(lane)
        return self.bit(self._place(location.register, location.first + offset))

    def _place(self, owner: int | str, index: int) -> Place:
        if isinstance(owner, str):
            return owner, index
        file, base = self.places.bases[owner]
        return file, base + index

    def _block(self, number: int) -> Iterator[Step]:
        before = self.edited.before
        effects = self.lanes.effects[number]
        for index, each in enumerate(effects):
            for action in before.get((number, index), ()):
                yield self._copies(action)
            yield self._execute(number, index, each)
        for action in before.get((number, len(effects)), ()):
            yield self._copies(action)

    def _execute(self, block: int, index: int, effects: SymbolicEffects) -> Execute:
        definitions = effects.definitions
        bits = [
            self.operand_bit(block, index, d.operand, d.lane, d.offset)
            if self.edited.replaced
            else self.home(d.lane)
            for d in definitions
        ]
        early: dict[int, int] = {}
        collisions: list[tuple[Definition, Definition, int]] = []
        values: dict[int, int] = {}
        owners: dict[int, Definition] = {}
        destroyed: list[int] = []
        for definition, bit in zip(definitions, bits, strict=True):
            lane = definition.lane
            # If two operands write one lane in two places, it is in neither.
            values[lane] = values.get(lane, bit) & bit
            owner = owners.setdefault(bit, definition)
            if owner.lane != lane:
                collisions.append((owner, definition, bit))
            if definition.early:
                early[bit] = lane
        for lane in effects.destroyed:
            bit = self.home(lane)
            if bit in owners:
                gone = Definition(DESTROYED_OPERAND, lane, 0, early=False)
                collisions.append((owners[bit], gone, bit))
            else:
                destroyed.append(bit)
        if (block, index) in self._constants:
            for definition in definitions:
                values[definition.lane] |= self._constant(block, index, definition.offset)
        guard_read = None
        guard = None
        if effects.guard is not None:
            lane, value = effects.guard
            guard = self.lanes.predicates[lane], value
            bit = self.operand_bit(block, index, GUARD_OPERAND, lane, 0)
            guard_read = Read(GUARD_OPERAND, lane, bit, bit)
        return Execute(
            block,
            index,
            guard,
            guard_read,
            tuple(self._reads(block, index, effects, guard_read, early)),
            (*owners, *destroyed),
            effects.ended,
            tuple(values.items()),
            effects.redefined,
            self.lanes.last_decisions[block][index],
            tuple(collisions),
        )

    def _reads(
        self,
        block: int,
        index: int,
        effects: SymbolicEffects,
        guard: Read | None,
        early: dict[int, int],
    ) -> Iterator[Read]:
        replaced = self.edited.replaced
        if guard is not None and early.get(guard.place, guard.lane) != guard.lane:
            # Early clobbers must spare the guard's register as they spare the registers of uses.
            yield Read(GUARD_OPERAND, guard.lane, guard.place, NOWHERE)
        for operand, lane, offset in effects.uses:
            bit = self._homes[lane] or self.home(lane)
            if replaced:
                bit = self.operand_bit(block, index, operand, lane, offset)
            # An early definition of the same lane in the same register is its successor.
            destroyed = early and early.get(bit, lane) != lane
            yield Read(operand, lane, bit, NOWHERE if destroyed else bit)

    def _constant(self, block: int, index: int, offset: int) -> int:
        key = (CONSTANT, block, index, offset)
        found = self._bits.get(key)
        if found is None:
            found = self._bits[key] = 1 << len(self.names)
            self.names.append((CONSTANT, offset))
        return found

    def _copies(self, action: Action) -> Copies:
        if isinstance(action, Move):
            pairs = [
                pair
                for destination, source in action.pairs
                for pair in zip(self._units(destination), self._units(source), strict=True)
            ]
        elif isinstance(action, Spill):
            slots = self._slots(action.slots)
            pairs = list(zip(slots, self._units(action.source), strict=True))
        elif isinstance(action, Reload):
            slots = self._slots(action.slots)
            pairs = list(zip(self._units(action.destination), slots, strict=True))
        else:
            constants = [
                self._constant(action.block, action.index, offset)
                for offset in range(action.destination.count)
            ]
            pairs = list(zip(self._units(action.destination), constants, strict=True))
        return Copies(tuple(pairs))

    def _units(self, lanes: VirtualLanes) -> list[int]:
        return [
            self.bit(self._place(lanes.register, lanes.first + offset))
            for offset in range(lanes.count)
        ]

    def _slots(self, slots: SlotSpan) -> list[int]:
        return [self.bit((SLOT, slots.first + offset)) for offset in range(slots.count)]
