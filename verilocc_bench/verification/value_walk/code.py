"""A function and the program of an answer, block by block, as the value walk runs them.

Lanes, register units and spill slots get numbers at first use. The cost is
linear in the operands of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from verilocc_bench.edits import (
    GUARD,
    Action,
    EditedFunction,
    Move,
    Reload,
    Rematerialize,
    SlotSpan,
    Spill,
)
from verilocc_bench.ir import FixedUnits, Function, Guard, Instruction, VirtualLanes
from verilocc_bench.targets import MaskChange, Target
from verilocc_bench.verification.value_walk.trace import CONSTANT, ENTRY, Made, Value

Lane = tuple[int | str, int]
"""(virtual register, lane) or (file, unit)."""

Unit = tuple[str, int]
"""(file, unit); spill slots are a file, too."""

SLOTS = "slot"

Transfer = tuple[tuple[int, int, Made | None, bool], ...]
"""An inserted action: (destination, source or -1, constant, masked) for every unit."""


class ConcreteEffects(NamedTuple):
    """The effects of an instruction on lanes and on the units that hold them.

    `definitions` are (operand, lane, unit, constant). `early` are the indices of
    the early clobbers among them. `clashes` are pairs of different lanes that are
    written to one unit. `own_uses` read lanes that the instruction's early
    clobbers write in the same place: they are checked before the write. `torn`
    lanes are written by two operands in two places; neither then holds the value.
    `destroyed` are (lane, unit) of the physical units that the instruction destroys
    and does not define.
    """

    definitions: tuple[tuple[int, int, int, Made | None], ...]
    early: tuple[int, ...]
    own_uses: tuple[tuple[int, int, int], ...]
    uses: tuple[tuple[int, int, int], ...]
    ended: tuple[int, ...]
    clashes: tuple[tuple[int, int], ...]
    torn: tuple[int, ...]
    destroyed: tuple[tuple[int, int], ...] = ()


class ExecutionStep(NamedTuple):
    """An instruction and the transfers inserted before it.

    `guard` is (lane, unit, the truth value with which the instruction acts).
    `only_scalar` are its effects in a thread that sleeps; `masked_lanes` are the
    lanes that it then does not define or end. At the end of a block `place` is
    one past its last instruction.
    """

    place: int
    before: tuple[Transfer, ...]
    guard: tuple[int, int, bool] | None
    effects: ConcreteEffects
    only_scalar: ConcreteEffects
    masked_lanes: tuple[int, ...]
    mask: MaskChange


class Code:
    """One function under one answer."""

    def __init__(
        self,
        function: Function,
        target: Target,
        bases: Mapping[int, tuple[str, int]],
        edited: EditedFunction | None,
    ) -> None:
        self.function, self.target, self.bases, self.edited = function, target, bases, edited
        self.replaced = {} if edited is None else edited.replaced
        self.lanes: dict[Lane, int] = {}
        self.units: dict[Unit, int] = {}
        self.lane_keys: list[Lane] = []
        self.unit_keys: list[Unit] = []
        actions = () if edited is None else (*edited.before.values(), *edited.on_edge.values())
        self.sites = {
            (action.block, action.index)
            for each in actions
            for action in each
            if isinstance(action, Rematerialize)
        }
        self.constants: dict[tuple[int, int, int], Made] = {}
        self.masked = frozenset(
            number
            for number, register_class in enumerate(function.virtual_registers)
            if register_class.files and target.masked_files.issuperset(register_class.files)
        )
        self._edges: dict[tuple[int, int], tuple[Transfer, ...]] = {}
        self.entry_lanes = {
            lane: (0, -1, GUARD, lane, ENTRY)
            for lane in (self.lane(key) for key in self._entry_keys())
        }

    def lane(self, key: Lane) -> int:
        """The number of a lane."""
        number = self.lanes.setdefault(key, len(self.lane_keys))
        if number == len(self.lane_keys):
            self.lane_keys.append(key)
        return number

    def unit(self, key: Unit) -> int:
        """The number of a unit."""
        number = self.units.setdefault(key, len(self.unit_keys))
        if number == len(self.unit_keys):
            self.unit_keys.append(key)
        return number

    def lane_name(self, lane: int) -> str:
        """A lane in the normalized text's notation: `%4.1`, `v3`."""
        name, number = self.lane_keys[lane]
        if isinstance(name, str):
            return self.target.file(name).with_budget(number + 1).unit_name(number)
        return (
            f"%{name}.{number}" if self.function.virtual_registers[name].width > 1 else f"%{name}"
        )

    def unit_name(self, unit: int) -> str:
        """A unit by the assembler's name; a spill slot by its number."""
        file, number = self.unit_keys[unit]
        if file == SLOTS:
            return f"{SLOTS}{number}"
        names = self.target.file(file).unit_names
        return names[number] if number < len(names) else f"{file}{number}"

    def literal(self, guard: Guard) -> tuple[int, bool]:
        """The lane of a guard, and the truth value with which its instruction acts."""
        ((_, lane),) = _lanes(guard.location)
        return self.lane(lane), not guard.negated

    def entry_units(self) -> dict[int, Value]:
        """The values of the units at the entry."""
        found: dict[int, list[Made]] = {}
        for lane, value in self.entry_lanes.items():
            found.setdefault(self.unit(self.place(self.lane_keys[lane])), []).append(value)
        return {unit: held[0] if len(held) == 1 else held for unit, held in found.items()}

    def place(self, lane: Lane) -> Unit:
        """The unit of a lane, by the base of its register."""
        name, number = lane
        if isinstance(name, str):
            return name, number
        file, index = self.bases[name]
        return file, index + number

    def _entry_keys(self) -> Iterator[Lane]:
        """The live-in registers and all predicates that guard something."""
        for units in self.function.live_ins:
            yield from (lane for _, lane in _lanes(units))
        for _, _, instruction in self.function.instructions():
            if instruction.guard is not None:
                yield from (lane for _, lane in _lanes(instruction.guard.location))

    def block(self, number: int) -> tuple[ExecutionStep, ...]:
        """The steps of a block, with the transfers inserted at its end."""
        instructions = self.function.blocks[number].instructions
        changes = self.target.mask_changes(instructions)
        steps = [
            self._step(number, index, *each)
            for index, each in enumerate(zip(instructions, changes, strict=True))
        ]
        if at_end := self._before(number, len(instructions)):
            nothing = ConcreteEffects((), (), (), (), (), (), ())
            last = len(instructions)
            steps.append(ExecutionStep(last, at_end, None, nothing, nothing, (), MaskChange.NONE))
        return tuple(steps)

    def on_edge(self, source: int, target: int) -> tuple[Transfer, ...]:
        """The transfers inserted on an edge."""
        if self.edited is None or not (actions := self.edited.on_edge.get((source, target))):
            return ()
        if (source, target) not in self._edges:
            self._edges[source, target] = tuple(self._transfer(action) for action in actions)
        return self._edges[source, target]

    def _before(self, block: int, index: int) -> tuple[Transfer, ...]:
        if self.edited is None:
            return ()
        return tuple(self._transfer(a) for a in self.edited.before.get((block, index), ()))

    def _step(
        self, block: int, index: int, instruction: Instruction, mask: MaskChange
    ) -> ExecutionStep:
        guard = None
        if instruction.guard is not None:
            lane, acts_when = self.literal(instruction.guard)
            (unit,) = self._operand_units(block, index, GUARD, instruction.guard.location)
            guard = lane, unit, acts_when
        effects = self._effects(block, index, instruction, guard)
        only_scalar, masked = self._without_masked(effects)
        return ExecutionStep(
            index,
            self._before(block, index),
            guard,
            effects,
            only_scalar,
            masked,
            mask,
        )

    def _effects(
        self,
        block: int,
        index: int,
        instruction: Instruction,
        guard: tuple[int, int, bool] | None,
    ) -> ConcreteEffects:
        definitions: list[tuple[int, int, int, Made | None]] = []
        early: list[int] = []
        ended: list[int] = []
        is_site = (block, index) in self.sites
        for number, operand in enumerate(instruction.definitions):
            location = operand.location
            units = self._operand_units(block, index, number, location)
            for (offset, key), unit in zip(_lanes(location), units, strict=True):
                if operand.early_clobber:
                    early.append(len(definitions))
                constant = self._constant(block, index, offset, key) if is_site else None
                definitions.append((number, self.lane(key), unit, constant))
            if operand.undef and isinstance(location, VirtualLanes):
                width = self.function.virtual_registers[location.register].width
                ended += [self.lane((location.register, lane)) for lane in range(width)]
        succeeded = {definitions[number][1:3] for number in early}
        own_uses: list[tuple[int, int, int]] = []
        uses: list[tuple[int, int, int]] = []
        for number, operand in enumerate(instruction.uses, len(instruction.definitions)):
            if operand.undef:
                continue
            units = self._operand_units(block, index, number, operand.location)
            for (_, key), unit in zip(_lanes(operand.location), units, strict=True):
                read = number, self.lane(key), unit
                (own_uses if read[1:] in succeeded else uses).append(read)
        if guard is not None and early and guard[:2] not in succeeded:
            # If the instruction acts, its early clobbers must spare its guard like a use.
            uses.append((GUARD, *guard[:2]))
        found = tuple(definitions)
        return ConcreteEffects(
            found,
            tuple(early),
            tuple(own_uses),
            tuple(uses),
            tuple(ended),
            _clashes(found),
            _torn(found),
            self._destroyed(instruction, {lane for _, lane, _, _ in found}),
        )

    def _destroyed(
        self, instruction: Instruction, defined: set[int]
    ) -> tuple[tuple[int, int], ...]:
        places = [place for units in instruction.destroys for _, place in _lanes(units)]
        pairs = [(self.lane(place), self.unit(self.place(place))) for place in places]
        return tuple(pair for pair in pairs if pair[0] not in defined)

    def _without_masked(self, effects: ConcreteEffects) -> tuple[ConcreteEffects, tuple[int, ...]]:
        """The effects that a sleeping thread has, too, and the lanes that it leaves alone."""
        if not self.target.masked_files:
            return effects, ()
        kept = [n for n, d in enumerate(effects.definitions) if not self._is_masked(d[1])]
        definitions = tuple(effects.definitions[n] for n in kept)
        written = [d[1] for d in effects.definitions]
        written += [lane for lane, _ in effects.destroyed]
        return (
            ConcreteEffects(
                definitions,
                tuple(kept.index(n) for n in effects.early if n in kept),
                tuple(use for use in effects.own_uses if not self._is_masked(use[1])),
                tuple(use for use in effects.uses if not self._is_masked(use[1])),
                tuple(lane for lane in effects.ended if not self._is_masked(lane)),
                _clashes(definitions),
                _torn(definitions),
                tuple(each for each in effects.destroyed if not self._is_masked(each[0])),
            ),
            tuple(lane for lane in (*written, *effects.ended) if self._is_masked(lane)),
        )

    def _is_masked(self, lane: int) -> bool:
        name, _ = self.lane_keys[lane]
        return name in self.target.masked_files if isinstance(name, str) else name in self.masked

    def _operand_units(
        self, block: int, index: int, number: int, location: VirtualLanes | FixedUnits
    ) -> list[int]:
        """The units of an operand, or of the lanes that replace it."""
        location = self.replaced.get((block, index, number), location)
        return [self.unit(self.place(lane)) for _, lane in _lanes(location)]

    def _transfer(self, action: Action) -> Transfer:
        if isinstance(action, Move):
            return tuple(
                (self.unit(destination), self.unit(source), None, self._in_masked(destination))
                for to, of in action.pairs
                for destination, source in zip(self._places(to), self._places(of), strict=True)
            )
        if isinstance(action, Spill):
            sources = self._places(action.source)
            return tuple(
                (self.unit(slot), self.unit(source), None, self._in_masked(source))
                for slot, source in zip(_slots(action.slots), sources, strict=True)
            )
        destinations = self._places(action.destination)
        if isinstance(action, Reload):
            return tuple(
                (self.unit(destination), self.unit(slot), None, self._in_masked(destination))
                for destination, slot in zip(destinations, _slots(action.slots), strict=True)
            )
        location = self.function.blocks[action.block].instructions[action.index].definitions[0]
        return tuple(
            (
                self.unit(destination),
                -1,
                self._constant(action.block, action.index, offset, key),
                self._in_masked(destination),
            )
            for destination, (offset, key) in zip(
                destinations, _lanes(location.location), strict=True
            )
        )

    def _places(self, lanes: VirtualLanes) -> list[Unit]:
        return [self.place(lane) for _, lane in _lanes(lanes)]

    def _in_masked(self, place: Unit) -> bool:
        return place[0] in self.target.masked_files

    def _constant(self, block: int, index: int, offset: int, key: Lane) -> Made:
        made = (block, index, 0, self.lane(key), CONSTANT)
        return self.constants.setdefault((block, index, offset), made)


def _lanes(location: VirtualLanes | FixedUnits) -> list[tuple[int, Lane]]:
    """(index in the operand, lane) for each lane of an operand."""
    name = location.file if isinstance(location, FixedUnits) else location.register
    return [(offset, (name, location.first + offset)) for offset in range(location.count)]


def _slots(slots: SlotSpan) -> list[Unit]:
    return [(SLOTS, slots.first + offset) for offset in range(slots.count)]


def _clashes(
    definitions: tuple[tuple[int, int, int, Made | None], ...],
) -> tuple[tuple[int, int], ...]:
    """Pairs of different lanes that are written to one unit."""
    return tuple(
        (first, second)
        for second, (_, lane, unit, _) in enumerate(definitions)
        for first in range(second)
        if definitions[first][2] == unit and definitions[first][1] != lane
    )


def _torn(definitions: tuple[tuple[int, int, int, Made | None], ...]) -> tuple[int, ...]:
    """Lanes that are written to two units."""
    places: dict[int, set[int]] = {}
    for _, lane, unit, constant in definitions:
        if constant is None:
            places.setdefault(lane, set()).add(unit)
    return tuple(lane for lane, units in places.items() if len(units) > 1)
