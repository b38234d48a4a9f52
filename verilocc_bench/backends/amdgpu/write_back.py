"""Writes an answer into the machine IR that its function came from (gfx90a, gfx942).

Every virtual register operand becomes the physical register of the answer, in the
manner of LLVM's own rewriter. Identity copies are removed. Definitions of lanes
lose their `undef` marks, and uses get one if no path has written any of their
units. Each block lists its live-in registers. llc then makes machine code, with
its machine verifier on.

Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineOperandFlag,
    is_half,
    is_ignored,
)
from verilocc_bench.backends.amdgpu.mir_edits import MOVE_OPCODE, EditLines, place_of
from verilocc_bench.backends.amdgpu.mir_flow import (
    FlowStep,
    analyse_flow,
    operand_mask,
    unit_mask,
    units_of_mask,
)
from verilocc_bench.backends.amdgpu.mir_text import (
    MirBlock,
    MirText,
    RegisterToken,
    register_name,
    replace_registers,
)
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.parallel_moves import BlockedCycle, sequential_moves
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.edits import EditedFunction
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Assignment, FixedUnits, VirtualLanes
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_classes import fixed_units
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

_UNREAD = MachineOperandFlag.UNDEF | MachineOperandFlag.INTERNAL
_LANES_OF_A_VGPR = 64
_STACK_REGISTERS = ("scratchRSrcReg", "frameOffsetReg", "stackPtrOffsetReg")
_SPILL = re.compile(r"SI_SPILL_\w+_SAVE", re.ASCII)
_COPY = re.compile(
    r"\s*(?:[a-z-]+ )*\$(?P<to>\w+) = (?:[a-z-]+ )*COPY (?P<flags>(?:[a-z-]+ )*)\$(?P<from>\w+)"
    r"(?P<more>, (?!debug-).*)?.*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class LoweredMir:
    """Machine IR with an answer in it.

    `instructions` counts the instructions of the text, `identity_copies` the
    removed ones, and `inserted` the instructions of the answer's edits. `registers[file]` is
    the number of registers of a file that the text needs, counted from the first.
    `llc_options` are the options that this text needs besides the usual ones.
    """

    text: str
    function: str
    instructions: int
    identity_copies: int
    inserted: int
    registers: Mapping[str, int]
    llc_options: tuple[str, ...]


def write_assignment(
    text: str,
    machine: MachineFunction,
    normalized: NormalizedMachineFunction,
    assignment: Assignment,
    *,
    edited: EditedFunction | None = None,
    source: str | None = None,
) -> LoweredMir:
    """The file with the answer in it.

    `machine` must be parsed from `text`, `normalized` must be its problem, and the
    assignment must be verified. With `edited`, the assignment includes the new
    registers. Raises InputError if the answer cannot be lowered.
    """
    try:
        return _Lowering(text, machine, normalized, assignment, edited).lowered()
    except InputError as error:
        raise error if source is None else error.located(source) from None


class _Lowering:
    def __init__(
        self,
        text: str,
        machine: MachineFunction,
        normalized: NormalizedMachineFunction,
        assignment: Assignment,
        edited: EditedFunction | None,
    ) -> None:
        self.machine, self.normalized, self.assignment = machine, normalized, assignment
        self.function = normalized.function
        self.edited = edited
        self.numbers = {name[1:]: n for n, name in enumerate(normalized.original_names)}
        successors = [block.successors for block in self.function.blocks]
        self.text = MirText.cut(text, machine, successors)
        self.reserved = _mask(self.function.reserved)
        for key in _STACK_REGISTERS:  # the function's reserved units end with its budget
            if units := fixed_units(machine.info.get(key, "").removeprefix("$")):
                self.reserved |= unit_mask(units)
        self.identity_copies = 0
        self.inserted = 0
        self.scalar_slots = 0

    def lowered(self) -> LoweredMir:
        for index, block in enumerate(self.text.blocks):
            self.assign(index, block)
        if self.edited is not None:
            target = get_target(self.function.target)
            lines = EditLines(self.text, self.machine, self.edited, self.assignment, target)
            lines.insert()
            self.inserted = lines.inserted
            self.scalar_slots = lines.scalar_slots
        return self.finished()

    def assign(self, index: int, block: MirBlock) -> None:
        """Puts physical registers into the lines of a block, and drops identity copies."""
        replaced = self.replaced_tokens(index)
        for at, line in enumerate(block.lines):
            block.lines[at] = replace_registers(line, partial(self.spell, replaced.get(at, {})))
        bundled = {
            at
            for start, instruction in zip(block.starts, self.code(index), strict=True)
            for at in range(start, start + 1 + len(instruction.bundled))
            if instruction.bundled
        }
        for at, line in enumerate(block.lines):
            match = _COPY.fullmatch(line)
            if match is None or match["to"] != match["from"] or at in bundled:
                continue
            self.identity_copies += 1
            # LLVM keeps further operands and flags of such a copy as a KILL.
            keeps = match["more"] or "undef" in match["flags"]
            block.lines[at] = line.replace("COPY", "KILL", 1) if keeps else ""

    def code(self, block: int) -> list[MachineInstruction]:
        """The instructions of a block that the normalized function contains."""
        return [i for i in self.machine.blocks[block].instructions if not is_ignored(i)]

    def replaced_tokens(self, block: int) -> dict[int, dict[int, VirtualLanes]]:
        """The lanes that replace operands, by line and operand."""
        found: dict[int, dict[int, VirtualLanes]] = {}
        if self.edited is None:
            return found
        code = self.code(block)
        for (place, index, operand), lanes in self.edited.replaced.items():
            if place != block:
                continue
            if code[index].bundled:
                raise InputError(
                    "a replaced operand in a bundle is not lowered", line=code[index].line
                )
            token = _token_numbers(code[index])[operand]
            if token is not None:
                found.setdefault(self.text.blocks[block].starts[index], {})[token] = lanes
        return found

    def spell(self, replaced: Mapping[int, VirtualLanes], token: RegisterToken) -> str | None:
        """An operand with its physical register."""
        flags = tuple(flag for flag in token.flags if flag != "killed")
        half = None
        if token.virtual is None:
            assert token.physical is not None
            if flags == token.flags and token.sub_register is None:
                return None
            units = fixed_units(token.physical)
            if units is None or token.sub_register is None:
                return token.spelled(token.physical, flags)
            lanes = SUB_REGISTERS[token.sub_register]  # the function has been normalized
            half = lanes.half
            units = FixedUnits(units.file, units.first + lanes.first, lanes.count)
        else:
            number = self.numbers[token.virtual]
            location = VirtualLanes(number, 0, self.function.virtual_registers[number].width)
            if token.sub_register is not None:
                lanes = SUB_REGISTERS[token.sub_register]
                half = lanes.half
                location = VirtualLanes(number, lanes.first, lanes.count)
            units = place_of(self.assignment, replaced.get(token.number, location))
            flags = (*flags, "renamable")
        if token.is_definition:
            flags = tuple(flag for flag in flags if flag != "undef")
        return token.spelled(register_name(units, half), flags)

    def finished(self) -> LoweredMir:
        """The text with ordered moves, live-in registers of blocks, and corrected marks."""
        for block in self.text.blocks:
            block.lines = [line for line in block.lines if line]
        text = self.text.text(lambda _: ())
        module = parse_mir(text, "the assigned machine IR", self.machine.name)
        machine = module.functions[0]
        flow = analyse_flow(machine, _mask(self.function.live_ins) | self.reserved)
        used = 0
        for index, block in enumerate(self.text.blocks):
            # The lines of a block follow its head, its successors and an empty line.
            first = machine.blocks[index].line + 2 + (block.successors is not None)
            moved: dict[int, list[str]] = {}
            for step in flow.steps[index]:
                used |= step.reads | step.writes
                at = step.instruction.line - first
                if step.instruction.opcode == MOVE_OPCODE:
                    moved[at] = self.moves(step)
                elif _spills_nothing(step):
                    # LLVM forgets `undef` where it puts an SGPR into a lane of a VGPR, and its
                    # verifier then refuses the use.
                    moved[at] = []
                else:
                    block.lines[at] = self.marked(block.lines[at], step)
            lines = [moved.get(at, [line]) for at, line in enumerate(block.lines)]
            block.lines = [line for each in lines for line in each]
            if self.scalar_slots:
                # While LLVM places the lanes of spilled SGPRs it reserves all other vector
                # registers, and its verifier forbids `renamable` on reserved registers.
                block.lines = [line.replace("renamable ", "") for line in block.lines]
        # SCC and the like are never allocated, and stay as the text has them. A block on an
        # edge is new, and keeps for its only successor what that one needs.
        others = {
            block.number: [name for name in block.live_ins if fixed_units(name) is None]
            for block in self.machine.blocks
        }
        live_ins = [
            [
                *others.get(block.number, others.get((block.successors or (0,))[0], [])),
                *[register_name(unit) for unit in units_of_mask(mask & ~self.reserved)],
            ]
            for block, mask in zip(machine.blocks, flow.live_ins, strict=True)
        ]
        return LoweredMir(
            self.text.text(lambda index: live_ins[index]),
            self.machine.name,
            sum(len(block.instructions) for block in machine.blocks),
            self.identity_copies,
            self.inserted,
            self.counts(used),
            self.options(used),
        )

    def marked(self, line: str, step: FlowStep) -> str:
        """The line with `undef` on uses of unwritten units, and `dead` only on dead definitions."""
        undefined: set[int] = set()
        live: set[int] = set()
        for number, (_, operand) in enumerate(step.instruction.operands):
            mask = operand_mask(operand)
            if MachineOperandFlag.DEFINITION in operand.flags:
                if mask & step.live_after:
                    live.add(number)
            elif mask and not mask & step.defined_before and not operand.flags & _UNREAD:
                undefined.add(number)
        if not undefined and (not live or "dead " not in line):
            return line

        def spell(token: RegisterToken) -> str | None:
            flags = token.flags
            if token.number in undefined:
                flags = (*flags, "undef")
            elif token.number in live:
                flags = tuple(flag for flag in flags if flag != "dead")
            assert token.physical is not None
            return None if flags == token.flags else token.spelled(token.physical, flags)

        return replace_registers(line, spell)

    def moves(self, step: FlowStep) -> list[str]:
        """The instructions of a parallel move."""
        operands = [units for _, o in step.instruction.operands if (units := fixed_units(o.name))]
        count = len(operands) // 2
        lines: list[str] = []
        pairs = []
        for destination, source in zip(operands[:count], operands[count:], strict=True):
            if unit_mask(source) & step.defined_before:
                pairs.append(((destination.file, destination.first), (source.file, source.first)))
            else:
                lines.append(f"    renamable ${register_name(destination)} = IMPLICIT_DEF")
        try:
            return sequential_moves(pairs, self.free(step)) + lines
        except BlockedCycle as cycle:
            names = ", ".join(f"${register_name(FixedUnits(*u, 1))}" for u in cycle.units)
            raise InputError(f"a move in a circle through {names}: no register is free") from None

    def free(self, step: FlowStep) -> dict[str, int]:
        """The first unit of each file that holds no value before, in and after a step."""
        taken = step.live_after | step.reads | step.writes | self.reserved
        free: dict[str, int] = {}
        for file in self.function.files:
            for index in range(file.count):
                if not unit_mask(FixedUnits(file.name, index, 1)) & taken:
                    free[file.name] = index
                    break
        return free

    def options(self, used: int) -> tuple[str, ...]:
        """llc's options for spilled SGPRs: to lanes of an unused VGPR, or without one to memory."""
        file = self.function.file("v")
        unused = sum(
            not unit_mask(FixedUnits("v", index, 1)) & (used | self.reserved)
            for index in range(file.count)
        )
        enough = self.scalar_slots <= unused * _LANES_OF_A_VGPR
        return () if enough else ("-amdgpu-spill-sgpr-to-vgpr=0",)

    def counts(self, used: int) -> dict[str, int]:
        counts = {file.name: 0 for file in self.function.files}
        for unit in units_of_mask(used & ~self.reserved):
            counts[unit.file] = max(counts[unit.file], unit.first + 1)
        return counts


def _mask(units: tuple[FixedUnits, ...]) -> int:
    mask = 0
    for each in units:
        mask |= unit_mask(each)
    return mask


def _spills_nothing(step: FlowStep) -> bool:
    """True for a spill of a register that no path has written: nothing has to be stored."""
    if not _SPILL.fullmatch(step.instruction.opcode):
        return False
    stored = step.instruction.operands[0][1]
    return not operand_mask(stored) & step.defined_before


def _token_numbers(instruction: MachineInstruction) -> list[int | None]:
    """The register operand of the text for each operand of the normalized instruction.

    None stands for the use that a 16-bit definition implies; it follows the definition.
    """
    definitions: list[int | None] = []
    uses: list[int | None] = []
    tokens = list(enumerate(operand for _, operand in instruction.operands))
    for wanted, found in ((True, definitions), (False, uses)):
        for number, operand in tokens:
            is_definition = MachineOperandFlag.DEFINITION in operand.flags
            if is_definition != wanted or not (operand.virtual or fixed_units(operand.name)):
                continue
            found.append(number)
            if is_definition and is_half(operand) and MachineOperandFlag.UNDEF not in operand.flags:
                uses.append(None)
    return definitions + uses
