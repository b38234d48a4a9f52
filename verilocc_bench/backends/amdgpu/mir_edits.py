"""The edits of a split-track answer as lines of machine IR.

A move is one pseudo instruction until the free registers around it are known.
Spills use LLVM's own spill pseudo instructions and stack objects, one for each
slot, so LLVM writes the code that accesses scratch memory. A constant is its
original instruction with another destination.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verilocc_bench.backends.amdgpu.machine import MachineFunction
from verilocc_bench.backends.amdgpu.mir_text import (
    MirBlock,
    MirText,
    RegisterToken,
    falls_through,
    register_name,
    replace_registers,
)
from verilocc_bench.edits import Action, EditedFunction, Move, Reload, Rematerialize, Spill
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Assignment, FixedUnits, VirtualLanes
from verilocc_bench.targets import Target

MOVE_OPCODE = "VERILOCC_BENCH_MOVE"

_SPILL_LETTERS = {"v": "V", "a": "A", "s": "S", "vcc": "S"}
_CONSTANT_FILES = {
    "S_MOV_B32": {"s", "vcc"},
    "S_MOV_B64": {"s", "vcc"},
    "V_MOV_B32": {"v"},
    "AV_MOV_B32_IMM": {"v", "a"},
}
_IMMEDIATE = re.compile(r" = (?:[a-z-]+ )*\w+ (-?\d+)(?=,|$)", re.ASCII)
# The constants that need no literal, besides -16 to 64.
_INLINE_FLOATS = {
    struct.unpack("<I", struct.pack("<f", sign * size))[0]
    for sign in (1, -1)
    for size in (0.5, 1.0, 2.0, 4.0)
} | {0x3E22F983}  # the last: 1 / (2 pi)
_BARE_BRANCH = re.compile(r"\s*S_BRANCH %bb\.\S+\s*")


def place_of(assignment: Assignment, lanes: VirtualLanes) -> FixedUnits:
    """The physical units of some lanes under an assignment."""
    base = assignment[lanes.register]
    return FixedUnits(base.file, base.index + lanes.first, lanes.count)


@dataclass(slots=True)
class EditLines:
    """Puts an answer's insertions into the blocks of a function's text.

    The blocks' own lines must already have physical registers.
    `constants[block, index]` has the original lines of constants.
    """

    text: MirText
    machine: MachineFunction
    edited: EditedFunction
    assignment: Assignment
    target: Target
    slots: dict[tuple[int, bool], int] = field(default_factory=dict)  # (slot, scalar): object
    inserted: int = 0

    def insert(self) -> None:
        """Inserts everything: lines in blocks, lines on edges, and the stack objects."""
        before: dict[tuple[int, int], list[str]] = {
            place: self.lines(actions) for place, actions in self.edited.before.items()
        }
        blocks = self.edited.function.blocks
        predecessors = [0] * len(blocks)
        for block in blocks:
            for successor in block.successors:
                predecessors[successor] += 1
        ends: dict[int, list[str]] = {}
        starts: dict[int, list[str]] = {}
        split: list[tuple[int, int, list[str]]] = []
        for (source, target), actions in self.edited.on_edge.items():
            lines = self.lines(actions)
            if len(blocks[source].successors) == 1 and self._ends_plainly(source):
                ends[source] = lines
            elif predecessors[target] == 1 and target != 0:
                starts[target] = lines
            else:
                split.append((source, target, lines))
        for index, cut in enumerate(self.text.blocks):
            inside = {at: lines for (b, at), lines in before.items() if b == index}
            self._fill(index, cut, inside, starts.get(index, []), ends.get(index, []))
        own = list(self.text.blocks)
        for source, target, lines in split:
            self._split_edge(own, source, target, lines)
        self._declare_slots()

    @property
    def scalar_slots(self) -> int:
        """The number of slots that hold SGPRs or VCC."""
        return sum(scalar for _, scalar in self.slots)

    def lines(self, actions: Sequence[Action]) -> list[str]:
        """The lines of some actions in order."""
        lines: list[str] = []
        for action in actions:
            if isinstance(action, Move):
                lines.append(self._move(action))
            elif isinstance(action, Spill):
                lines += self._spill(action)
            elif isinstance(action, Reload):
                lines += self._reload(action)
            else:
                lines += self._constant(action)
        self.inserted += len(actions)
        return lines

    def _units(self, lanes: VirtualLanes) -> list[FixedUnits]:
        units = place_of(self.assignment, lanes)
        return [FixedUnits(units.file, units.first + i, 1) for i in range(units.count)]

    def _move(self, move: Move) -> str:
        destinations: list[str] = []
        sources: list[str] = []
        for destination, source in move.pairs:
            destinations += [f"${register_name(u)}" for u in self._units(destination)]
            sources += [f"${register_name(u)}" for u in self._units(source)]
        return f"    {', '.join(destinations)} = {MOVE_OPCODE} {', '.join(sources)}"

    def _spill(self, spill: Spill) -> list[str]:
        lines = []
        for slot, unit in enumerate(self._units(spill.source), spill.slots.first):
            name, number, rest = self._access(unit, slot)
            lines.append(
                f"    SI_SPILL_{name}_SAVE ${register_name(unit)}, %stack.{number}, {rest} "
                f":: (store (s32) into %stack.{number}, addrspace 5)"
            )
        return lines

    def _reload(self, reload: Reload) -> list[str]:
        lines = []
        for slot, unit in enumerate(self._units(reload.destination), reload.slots.first):
            name, number, rest = self._access(unit, slot)
            lines.append(
                f"    ${register_name(unit)} = SI_SPILL_{name}_RESTORE %stack.{number}, {rest} "
                f":: (load (s32) from %stack.{number}, addrspace 5)"
            )
        return lines

    def _access(self, unit: FixedUnits, slot: int) -> tuple[str, int, str]:
        """(part of the pseudo instruction's name, stack object, further operands)."""
        letter = _SPILL_LETTERS[unit.file]
        scalar = letter == "S"
        number = self.slots.setdefault(
            (slot, scalar), self.text.first_stack_object + len(self.slots)
        )
        pointer = self.machine.info.get("stackPtrOffsetReg") or "$sgpr32"
        rest = f"implicit $exec, implicit {pointer}" if scalar else f"{pointer}, 0, implicit $exec"
        return f"{letter}32", number, rest

    def _constant(self, action: Rematerialize) -> list[str]:
        instruction = self.edited.function.blocks[action.block].instructions[action.index]
        units = place_of(self.assignment, action.destination)
        block = self.text.blocks[action.block]
        line = block.lines[block.starts[action.index]]
        aligned = units.count == 1 or units.first % 2 == 0
        if units.file in _CONSTANT_FILES.get(instruction.opcode, ()) and aligned:
            return [_with_destination(line, units)]
        value = _IMMEDIATE.search(line)
        lines = [] if value is None else _immediate(int(value[1]), self._units(action.destination))
        if not lines:
            raise InputError(
                f"{instruction.opcode} of bb{action.block} instruction {action.index} "
                f"cannot be made again in ${register_name(units)}"
            )
        return lines

    def _ends_plainly(self, block: int) -> bool:
        """True if only an unconditional branch stands after the last insertion place."""
        cut = self.text.blocks[block]
        instructions = self.edited.function.blocks[block].instructions
        last = self._last_place(block)
        lines = cut.lines[cut.starts[last] :] if last < len(instructions) else []
        return all(_BARE_BRANCH.fullmatch(line) for line in lines)

    def _last_place(self, block: int) -> int:
        instructions = self.edited.function.blocks[block].instructions
        for index, instruction in enumerate(instructions):
            if self.target.terminators.fullmatch(instruction.opcode):
                return index
        return len(instructions)

    def _fill(
        self,
        index: int,
        block: MirBlock,
        inside: Mapping[int, list[str]],
        start: list[str],
        end: list[str],
    ) -> None:
        if not inside and not start and not end:
            return
        last = self._last_place(index)
        places = [*block.starts, len(block.lines)]
        lines: list[str] = []
        at = 0
        for number, place in enumerate(places):
            # A line that emits no code stays before the instruction that it stood before.
            lines += block.lines[at:place]
            at = place
            if number == 0:
                lines += start
            lines += inside.get(number, [])
            if number == last:
                lines += end
        block.lines = lines + block.lines[at:]

    def _split_edge(self, own: list[MirBlock], source: int, target: int, lines: list[str]) -> None:
        """Inserts a block with these lines on an edge."""
        number = 1 + max(block.number for block in self.text.blocks)
        origin, goal = own[source], own[target]
        new = MirBlock(number, f"  bb.{number}:", f"    successors: %bb.{goal.number}", [*lines])
        name = re.compile(rf"%bb\.{goal.number}(?!\d)(?:\.[^\s,(]+)?")
        assert origin.successors is not None
        origin.successors = name.sub(f"%bb.{number}", origin.successors, count=1)
        origin.lines = [name.sub(f"%bb.{number}", line) for line in origin.lines]
        if target == source + 1 and falls_through(self.machine.blocks[source]):
            self.text.blocks.insert(self.text.blocks.index(origin) + 1, new)
        else:
            new.lines.append(f"    S_BRANCH %bb.{goal.number}")
            self.text.blocks.append(new)

    def _declare_slots(self) -> None:
        """Declares the stack objects in the function's keys; LLVM places them."""
        if not self.slots:
            return
        rows = []
        for (_, scalar), number in self.slots.items():
            kind = "sgpr-spill" if scalar else "default"
            rows.append(
                f"  - {{ id: {number}, type: spill-slot, size: 4, alignment: 4, stack-id: {kind} }}"
            )
        self.text.declare_stack(rows, {scalar for _, scalar in self.slots})


def _with_destination(line: str, units: FixedUnits) -> str:
    """A constant's line with another destination."""

    def spell(token: RegisterToken) -> str | None:
        if token.number:
            return None
        flags = tuple(flag for flag in token.flags if flag != "dead")
        return token.spelled(register_name(units), flags)

    return replace_registers(line, spell)


def _immediate(value: int, units: Sequence[FixedUnits]) -> list[str]:
    """Moves of a constant's 32-bit parts; empty if no instruction can do it."""
    lines: list[str] = []
    for place, unit in enumerate(units):
        part = (value >> 32 * place) & 0xFFFFFFFF
        signed = part - (part >> 31 << 32)
        if unit.file == "v":
            rest = f"V_MOV_B32_e32 {signed}, implicit $exec"
        elif unit.file != "a":
            rest = f"S_MOV_B32 {signed}"
        elif -16 <= signed <= 64 or part in _INLINE_FLOATS:
            rest = f"AV_MOV_B32_IMM_PSEUDO {signed}, implicit $exec"
        else:
            return []
        lines.append(f"    renamable ${register_name(unit)} = {rest}")
    return lines
