"""Plain liveness of a normalized text against NVIDIA's own life ranges, row by row.

`text_gate` says how the two are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.backends.nvidia.life_ranges import FILES, LifeRangeRow, LifeRanges
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import Assignment, FixedUnits, Function, Instruction, VirtualLanes

_FIRST_UNIT = {"R": 0, "P": 256, "UR": 264, "UP": 328}
"""Where the units of each of `FILES` begin in a mask of units."""

ALWAYS_FIXED = ("R", 1)
_INSTRUCTION_BYTES = 16


def rejected(function: SassFunction, place: str, reason: str) -> RejectedKernel:
    """The error of a text that contradicts the code or its life ranges."""
    return RejectedKernel("text-contradicts-code", f"{function.name}{place}: {reason}")


def place_of(instruction: SassInstruction) -> str:
    """An instruction in the words of `rejected`."""
    return f", {instruction.opcode} at 0x{instruction.address:04x} (line {instruction.line})"


class LivenessCheck:
    """Compares liveness of the text's lanes, put back by the label, row by row.

    A lane is a bit of a mask; the lanes of virtual registers follow each other. A unit
    is a bit, too (`_FIRST_UNIT`).
    """

    def __init__(
        self, subject: Function, label: Assignment, function: SassFunction, ranges: LifeRanges
    ) -> None:
        self.function = function
        # nvdisasm leaves out NOPs before it pads the end.
        self.rows = {row.address // _INSTRUCTION_BYTES: row for row in ranges.rows}
        self.offsets: list[int] = []
        self.unit_of: list[int] = []
        for number, register_class in enumerate(subject.virtual_registers):
            self.offsets.append(len(self.unit_of))
            first = _FIRST_UNIT[label[number].file] + label[number].index
            self.unit_of += range(first, first + register_class.width)
        self.lanes_at: dict[int, int] = dict.fromkeys(self.unit_of, 0)
        for lane, unit in enumerate(self.unit_of):
            self.lanes_at[unit] |= 1 << lane
        self.fixed = 1 << _FIRST_UNIT[ALWAYS_FIXED[0]] + ALWAYS_FIXED[1]
        self.successors = [block.successors for block in subject.blocks]
        self.effects = [[self._effects(i) for i in block.instructions] for block in subject.blocks]

    def _effects(self, instruction: Instruction) -> tuple[int, int, bool]:
        """The lanes that an instruction defines and uses; True if it has a guard."""
        defined = used = 0
        for operand in instruction.definitions:
            defined |= self._lanes(operand.location)
        for operand in instruction.uses:
            used |= self._lanes(operand.location)
        if instruction.guard is not None:
            used |= self._lanes(instruction.guard.location)
        return defined, used, instruction.guard is not None

    def _lanes(self, location: VirtualLanes | FixedUnits) -> int:
        if isinstance(location, VirtualLanes):
            first = self.offsets[location.register] + location.first
            return ((1 << location.count) - 1) << first
        first = _FIRST_UNIT[location.file] + location.first
        self.fixed |= ((1 << location.count) - 1) << first
        return 0

    def check(self, indices: Sequence[Sequence[int]], firsts: Sequence[int]) -> None:
        """`indices[b]` are the instructions of the code that block b of the text has.

        `firsts[b]` is the row of instruction 0 in the copy of the code that block b is of.
        """
        self._check_undefined()
        possible = self._live_out([[(0 if g else d, u) for d, u, g in e] for e in self.effects])
        sure = self._live_out([[(self._ended(d), u) for d, u, _ in each] for each in self.effects])
        for number, effects in enumerate(self.effects):
            rows = [(index, self._row(firsts[number], index)) for index in indices[number]]
            self._check_block(effects, possible[number], sure[number], rows)

    def _row(self, first: int, index: int) -> LifeRangeRow:
        row = self.rows.get(first + index)
        if row is None:
            place = place_of(self.function.instructions[index])
            raise rejected(self.function, place, "NVIDIA's life ranges lack a row")
        return row

    def _ended(self, defined: int) -> int:
        """The lanes whose registers hold another value, as NVIDIA shows it, above `defined`."""
        ended = 0
        for lane in iterate_bits(defined):
            ended |= self.lanes_at[self.unit_of[lane]]
        return ended

    def _check_undefined(self) -> None:
        """A value that the text never defines is in use from the entry on."""
        read = written = 0
        for each in self.effects:
            for defined, used, _ in each:
                read |= used
                written |= defined
        shown = _shown(self.rows[0])
        for lane in iterate_bits(read & ~written):
            if not shown >> self.unit_of[lane] & 1:
                raise self._disagreement(0, 1 << self.unit_of[lane], "free", "in use")

    def _live_out(self, effects: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
        """The lanes live at the end of each block; effects are (ended, used)."""
        gained: list[int] = []
        lost: list[int] = []
        for each in effects:
            live = killed = 0
            for ended, used in reversed(each):
                live = live & ~ended | used
                killed |= ended
            gained.append(live)
            lost.append(killed)
        live_in = [0] * len(gained)
        live_out = [0] * len(gained)
        changed = True
        while changed:
            changed = False
            for number in range(len(gained) - 1, -1, -1):
                after = 0
                for successor in self.successors[number]:
                    after |= live_in[successor]
                before = after & ~lost[number] | gained[number]
                live_out[number] = after
                changed |= before != live_in[number]
                live_in[number] = before
        return live_out

    def _check_block(
        self,
        effects: Sequence[tuple[int, int, bool]],
        possible: int,
        sure: int,
        rows: Sequence[tuple[int, LifeRangeRow]],
    ) -> None:
        compared = ~self.fixed
        at_most, at_least = _Units(self), _Units(self)
        for (index, row), (defined, used, guarded) in zip(
            reversed(rows), reversed(effects), strict=True
        ):
            named = defined | used
            shown = _shown(row)
            destroyed = self._destroyed(index)
            if found := destroyed and at_most.of(possible & ~defined) & destroyed:
                raise self._disagreement(index, found, "destroyed", "in use")
            possible |= named
            if found := shown & ~at_most.of(possible) & compared & ~destroyed:
                raise self._disagreement(index, found, "in use", "free")
            sure |= named
            if found := at_least.of(sure) & ~shown & compared:
                raise self._disagreement(index, found, "free", "in use")
            possible &= ~(0 if guarded else defined & ~used)
            sure &= ~(self._ended(defined) & ~used)

    def _destroyed(self, index: int) -> int:
        """The units that a call by the ABI destroys, which nvdisasm marks as defined."""
        units = 0
        for each in self.function.instructions[index].destroys:
            units |= ((1 << each.count) - 1) << _FIRST_UNIT[each.file] + each.first
        return units

    def _disagreement(self, index: int, units: int, theirs: str, ours: str) -> RejectedKernel:
        names = []
        for unit in iterate_bits(units):
            file = max((f for f in FILES if _FIRST_UNIT[f] <= unit), key=_FIRST_UNIT.__getitem__)
            names.append(f"{file}{unit - _FIRST_UNIT[file]}")
        return rejected(
            self.function,
            place_of(self.function.instructions[index]),
            f"{', '.join(names)}: {theirs} by NVIDIA's life ranges, {ours} by the text",
        )


class _Units:
    """The units of lanes, for sets of lanes that follow each other and differ little."""

    def __init__(self, lanes: LivenessCheck) -> None:
        self.unit_of, self.lanes_at = lanes.unit_of, lanes.lanes_at
        self.held = self.units = 0

    def of(self, lanes: int) -> int:
        for lane in iterate_bits(self.held & ~lanes):
            unit = self.unit_of[lane]
            if not lanes & self.lanes_at[unit]:
                self.units &= ~(1 << unit)
        for lane in iterate_bits(lanes & ~self.held):
            self.units |= 1 << self.unit_of[lane]
        self.held = lanes
        return self.units


def _shown(row: LifeRangeRow) -> int:
    """The units in use in a row of the life ranges."""
    general, predicates, uniform, uniform_predicates = row.marks
    return (
        general.live
        | predicates.live << _FIRST_UNIT["P"]
        | uniform.live << _FIRST_UNIT["UR"]
        | uniform_predicates.live << _FIRST_UNIT["UP"]
    )
