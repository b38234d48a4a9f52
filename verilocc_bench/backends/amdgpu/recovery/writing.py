"""Recovered code as the text of LLVM's machine IR, with virtual registers.

The text is as `llc -stop-before=greedy` would write it: arguments are copied from their
physical registers at the entry, VCC, SCC and the like keep their names, and accesses to
memory have memory operands. Without those, LLVM takes each access for one that all other
threads must see, and adds cache operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verilocc_bench.backends.amdgpu.mir_text import register_name
from verilocc_bench.backends.amdgpu.recovery.lane_liveness import LaneEffects, analyse_lanes
from verilocc_bench.backends.amdgpu.recovery.records import (
    CodeBlock,
    RecoveredInstruction,
    RecoveredOperand,
    file_of,
    index_of,
)
from verilocc_bench.backends.amdgpu.recovery.tuples import Tuples
from verilocc_bench.backends.amdgpu.recovery.webs import CodeWebs, WebOperand
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

_INDICES = {(s.first, s.count): name for name, s in SUB_REGISTERS.items() if s.half is None}
_FIXED = {"vcc": 0b011, "vcc_lo": 0b001, "vcc_hi": 0b010, "scc": 0b100}
_FIXED_NAMES = ("vcc_lo", "vcc_hi", "scc")
"""The registers that stay physical and have liveness, in the order of their bits."""

_ADDRESS_SPACES = (
    (re.compile(r"S_\w+"), 4),  # constant memory
    (re.compile(r"DS_\w+"), 3),  # local memory
    (re.compile(r"FLAT_\w+"), 0),
    (re.compile(r"\w+"), 1),  # global memory
)


@dataclass(frozen=True, slots=True)
class WrittenBody:
    """The lines of a body, and the rows of its virtual registers (LLVM's class of each)."""

    lines: tuple[str, ...]
    classes: tuple[str, ...]


def write_body(blocks: Sequence[CodeBlock], webs: CodeWebs, tuples: Tuples) -> WrittenBody:
    """The body of the function, from `bb.0` on."""
    return _BodyWriter(blocks, webs, tuples).write()


class _BodyWriter:
    def __init__(self, blocks: Sequence[CodeBlock], webs: CodeWebs, tuples: Tuples) -> None:
        self.blocks, self.webs, self.tuples = blocks, webs, tuples
        self.starts = []
        bit = 0
        for register in tuples.registers:
            self.starts.append(bit)
            bit += register.width
        self.fixed = bit
        effects = [
            [self._effects(b, i) for i in range(len(block.instructions))]
            for b, block in enumerate(blocks)
        ]
        live_in = 0
        for _, web in webs.live_ins:
            number, lane = tuples.places[web]
            live_in |= 1 << (self.starts[number] + lane)
        self.flow = analyse_lanes(effects, [block.successors for block in blocks], live_in)

    def _effects(self, b: int, i: int) -> LaneEffects:
        reads = writes = 0
        for operand in self.webs.operands[b][i]:
            mask = self.mask(operand)
            if operand.definition:
                writes |= mask
                if operand.operand in self.webs.kept[b][i]:
                    reads |= mask
            elif not operand.undefined:
                reads |= mask
        for each in self.blocks[b].instructions[i].operands:
            bits = _FIXED.get(each.register or "", 0) << self.fixed
            if each.definition:
                writes |= bits
            else:
                reads |= bits
        return LaneEffects(reads, writes)

    def place(self, operand: WebOperand) -> tuple[int, int]:
        """(virtual register, first lane) of an operand."""
        return self.tuples.places[operand.webs[0]]

    def mask(self, operand: WebOperand) -> int:
        """The lanes of an operand."""
        register, lane = self.place(operand)
        return ((1 << len(operand.units)) - 1) << (self.starts[register] + lane)

    def write(self) -> WrittenBody:
        lines: list[str] = []
        for b, block in enumerate(self.blocks):
            lines += [""] if b else []
            lines.append(f"  bb.{b}:")
            if block.successors:
                names = ", ".join(f"%bb.{successor}" for successor in block.successors)
                lines.append(f"    successors: {names}")
            if names := ", ".join(f"${name}" for name in self.live_ins(b)):
                lines.append(f"    liveins: {names}")
            lines.append("  ")
            lines += [f"    {line}" for line in self.block_lines(b)]
        return WrittenBody(tuple(lines), tuple(r.class_name for r in self.tuples.registers))

    def live_ins(self, b: int) -> list[str]:
        """The physical registers that are live into a block."""
        arguments = [_unit_name(unit) for unit, _ in self.webs.live_ins] if not b else []
        live = self.flow.live_ins[b] >> self.fixed
        return arguments + [name for bit, name in enumerate(_FIXED_NAMES) if live >> bit & 1]

    def block_lines(self, b: int) -> Iterator[str]:
        """The instructions of a block."""
        if not b:
            yield from self.argument_copies()
        code = self.blocks[b].instructions
        end = len(code) - (bool(code) and code[-1].target is not None)
        for i in range(end):
            yield self.instruction(b, i)
        yield from self.missing_definitions(b)
        for i in range(end, len(code)):
            yield self.instruction(b, i)

    def argument_copies(self) -> Iterator[str]:
        """Copies of the arguments into virtual registers."""
        written = 0
        for unit, web in self.webs.live_ins:
            register, lane = self.tuples.places[web]
            undef = "undef " if self._begins(register, written, 1 << lane) else ""
            written |= 1 << (self.starts[register] + lane)
            yield f"{undef}{self.spelled(register, lane, 1)} = COPY ${_unit_name(unit)}"

    def _begins(self, register: int, written: int, own: int) -> bool:
        """True if a definition of the lanes `own` is the first of several of a register."""
        width = self.tuples.registers[register].width
        others = (((1 << width) - 1) & ~own) << self.starts[register]
        return bool(others) and not written & others

    def missing_definitions(self, b: int) -> Iterator[str]:
        """Definitions for lanes that only other paths to a later block have written."""
        missing = self.flow.missing[b]
        code = self.blocks[b].instructions
        held = 0
        if code:  # lanes that are written and live at the end of the block
            effects = self._effects(b, len(code) - 1)
            held = (self.flow.written[b][-1] | effects.writes) & self.flow.live[b][-1]
        for register, tuple_of_webs in enumerate(self.tuples.registers):
            width = tuple_of_webs.width
            lanes = missing >> self.starts[register] & ((1 << width) - 1)
            for lane in range(width):
                if lanes >> lane & 1:
                    undef = "undef " if self._begins(register, held, 1 << lane) else ""
                    held |= 1 << (self.starts[register] + lane)
                    yield f"{undef}{self.spelled(register, lane, 1)} = IMPLICIT_DEF"
        for bit, name in enumerate(_FIXED_NAMES):
            if missing >> (self.fixed + bit) & 1:
                yield f"${name} = IMPLICIT_DEF"

    def spelled(self, register: int, lane: int, count: int) -> str:
        """A register or lanes of it."""
        if count == self.tuples.registers[register].width:
            return f"%{register}"
        return f"%{register}.{_INDICES[lane, count]}"

    def instruction(self, b: int, i: int) -> str:
        """One instruction as a line."""
        instruction = self.blocks[b].instructions[i]
        replaced = {operand.operand: operand for operand in self.webs.operands[b][i]}
        definitions, operands = [], []
        for number, operand in enumerate(instruction.operands):
            text = self.operand(b, i, operand, replaced.get(number))
            if operand.definition and not operand.implicit:
                definitions.append(text)
            elif instruction.target is not None and operand.register is None:
                operands.append(f"%bb.{self.block_at(instruction.target)}")
            else:
                operands.append(text)
        # LLVM wants this use tied where an operand says that the rest of a register stays.
        # That operand may stand there even if the instruction writes the whole register.
        tied = "UNUSED_PRESERVE" in instruction.text
        for number in {*self.webs.kept[b][i], *((0,) if tied else ())}:
            kept = replaced[number]
            undef = "" if number in self.webs.kept[b][i] else "undef "
            name = self.spelled(*self.place(kept), len(kept.units))
            operands.append(f"implicit {undef}{name}{'(tied-def 0)' if tied else ''}")
        left = f"{', '.join(definitions)} = " if definitions else ""
        right = f" {', '.join(operands)}" if operands else ""
        return f"{left}{instruction.opcode}{right}{_memory(instruction)}"

    def block_at(self, address: int) -> int:
        """The number of the block that begins at an address."""
        return next(
            n for n, block in enumerate(self.blocks) if block.instructions[0].address == address
        )

    def operand(
        self, b: int, i: int, operand: RecoveredOperand, replaced: WebOperand | None
    ) -> str:
        """The text of one operand."""
        if operand.register is None:
            return str(operand.number)
        flags = []
        if operand.implicit:
            flags.append("implicit-def" if operand.definition else "implicit")
        if operand.early_clobber:
            flags.append("early-clobber")
        if replaced is None:
            name = f"${operand.register}"
            bits = _FIXED.get(operand.register, 0) << self.fixed
            if not operand.definition and bits and not bits & self.flow.written[b][i]:
                flags.append("undef")
        else:
            name = self.spelled(*self.place(replaced), len(replaced.units))
            if replaced.undefined or (operand.definition and self.begins_value(b, i, replaced)):
                flags.append("undef")
        tied = "" if operand.tied_to is None else f"(tied-def {operand.tied_to})"
        return " ".join((*flags, name)) + tied

    def begins_value(self, b: int, i: int, operand: WebOperand) -> bool:
        """True if a definition of some lanes leaves no other lane with a value."""
        register, _ = self.place(operand)
        width = self.tuples.registers[register].width
        if len(operand.units) == width or operand.operand in self.webs.kept[b][i]:
            return False
        own = self.mask(operand)
        others = (((1 << width) - 1) << self.starts[register]) & ~own
        return not others & self.flow.live[b][i] & self.flow.written[b][i]


def _unit_name(unit: int) -> str:
    return register_name(FixedUnits(file_of(unit), index_of(unit), 1))


def _memory(instruction: RecoveredInstruction) -> str:
    """The memory operand of an instruction, or nothing."""
    form = instruction.form
    if not (form.may_load or form.may_store) or instruction.opcode.startswith("BUFFER_WB"):
        return ""
    space = next(n for pattern, n in _ADDRESS_SPACES if pattern.fullmatch(instruction.opcode))
    units = max((len(o.units) for o in instruction.operands if o.definition), default=1)
    words = " ".join(
        word for word, does in (("load", form.may_load), ("store", form.may_store)) if does
    )
    where = f", addrspace {space}" if space else ""
    return f" :: ({words} (s{32 * max(units, 1)}){where})"
