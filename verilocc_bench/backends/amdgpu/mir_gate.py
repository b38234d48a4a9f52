"""Compares a normalized text with LLVM's machine IR, by another road than it was made.

A text that is too weak passes everything after it: allocators, judges and labels know
nothing else. So the normalized text is parsed again, and `printed_body` reads the lines
of the function's body once more. Compared are, block by block: successors and live-ins;
for each instruction the opcode, the definitions and the uses with their lanes and flags,
what a call destroys, and whether it is said to change EXEC; for each virtual register
its legal bases; and the header: budgets, occupancy, reserved registers.

Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.machine import MachineFunction, MachineModule
from verilocc_bench.backends.amdgpu.normalize import (
    NormalizedMachineFunction,
    normalize_machine_function,
)
from verilocc_bench.backends.amdgpu.printed_body import (
    BodyReader,
    PrintedInstruction,
    PrintedRegister,
    merged_bundle,
    physical_units,
)
from verilocc_bench.errors import InputError
from verilocc_bench.ir import (
    FixedUnits,
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
    parse_function,
    print_function,
)
from verilocc_bench.targets import MaskChange, Target
from verilocc_bench.targets.amdgpu import MASK_MARK, MAXIMUM_WAVES
from verilocc_bench.targets.amdgpu_budget import budget_from_attributes
from verilocc_bench.targets.amdgpu_calls import destroyed_units
from verilocc_bench.targets.amdgpu_classes import class_bases

_LAST = re.compile(
    r"(S_BRANCH|S_ENDPGM|S_SETPC_B64|SI_RETURN|SI_TCRETURN|SI_CS_CHAIN_TC)\w*"
    r"|SI_WHOLE_WAVE_FUNC_RETURN"
)
_TAIL_CALL = re.compile(r"SI_TCRETURN\w*|SI_CS_CHAIN_TC\w*")
_ENCODINGS = re.compile(r"(_e32|_e64|_vi|_vgprcd|_PSEUDO|_gfx\d\w*)*")
_EXEC = ("exec", "exec_lo", "exec_hi")
_RESERVING = (
    "scratchRSrcReg",
    "frameOffsetReg",
    "stackPtrOffsetReg",
    "sgprForEXECCopy",
    "longBranchReservedReg",
    "vgprForAGPRCopy",
)
_BASE_POINTER = ("s", 34)
_STACK_ALIGNMENT = 16


def normalized_problem(
    text: str,
    machine: MachineFunction,
    module: MachineModule,
    target: Target,
    *,
    max_threads: int | None = None,
    source: str = "<mir>",
) -> tuple[NormalizedMachineFunction, AllocationProblem]:
    """A machine function as an allocation problem, past the gate.

    `text` is the file that `machine` and `module` were read from. Raises the errors of
    normalize_machine_function, and InputError if the normalized text contradicts the
    machine IR.
    """
    normalized = normalize_machine_function(
        machine, module, target, max_threads=max_threads, source=source
    )
    printed = print_function(normalized.function)
    checked = check_against_mir(
        printed, text, machine, module, target, max_threads=max_threads, source=source
    )
    return replace(normalized, function=checked), AllocationProblem(checked, printed)


def check_against_mir(
    normalized: str,
    text: str,
    machine: MachineFunction,
    module: MachineModule,
    target: Target,
    *,
    max_threads: int | None = None,
    source: str = "<mir>",
) -> Function:
    """The function of a normalized text.

    Raises InputError with the line if it differs from the machine IR. `text` is the
    file that `machine` and `module` were read from.
    """
    subject = parse_function(normalized, "the normalized text")
    attributes = module.attributes.get(machine.name, {})
    realigns = machine.stack_alignment > _STACK_ALIGNMENT or "stackrealign" in attributes
    _Comparison(subject, text, machine, target, source).compare(realigns)
    budget = budget_from_attributes(target.name, attributes, max_threads)
    budgets = {"v": budget.vgprs, "a": budget.agprs, "s": budget.sgprs, "vcc": 2}
    found = {file.name: file.count for file in subject.files}
    waves = budget.waves if budget.waves < MAXIMUM_WAVES else None
    if found != budgets or subject.maximum_occupancy != waves:
        raise InputError(
            f"the normalized text allows {found} and {subject.maximum_occupancy} waves, "
            f"the function {budgets} and {waves} waves",
            source=source,
            line=machine.line,
        )
    return subject


class _Comparison:
    """The comparison of one function."""

    def __init__(
        self, subject: Function, text: str, machine: MachineFunction, target: Target, source: str
    ) -> None:
        self.subject, self.machine, self.target, self.source = subject, machine, target, source
        self.blocks = BodyReader(text.split("\n"), machine.blocks[0].line - 1).blocks()
        self.budgets = {file.name: file.count for file in subject.files}
        self.numbers: dict[str, int] = {}
        self.operands: dict[PrintedRegister, Operand | None] = {}
        self.classes: set[tuple[str, RegisterClass]] = set()

    def error(self, line: int, text: str, code: str) -> InputError:
        return InputError(
            f"the normalized text has {text}, the machine IR {code}", source=self.source, line=line
        )

    def compare(self, realigns: bool) -> None:
        subject, blocks = self.subject, self.blocks
        line = blocks[0].line
        if len(subject.blocks) != len(blocks):
            raise self.error(line, f"{len(subject.blocks)} blocks", str(len(blocks)))
        order = {block.number: index for index, block in enumerate(blocks)}
        for index, (block, own) in enumerate(zip(subject.blocks, blocks, strict=True)):
            successors = tuple(order[number] for number in self._successors(index))
            if block.successors != successors:
                raise self.error(own.line, f"edges to {block.successors}", f"to {successors}")
            for instruction, printed in zip_longest(block.instructions, own.lines):
                if instruction is None or printed is None:
                    counts = len(block.instructions), len(own.lines)
                    raise self.error(own.line, f"{counts[0]} instructions", str(counts[1]))
                self._compare(instruction, merged_bundle(printed) if printed.members else printed)
        live_ins = {
            units for name in blocks[0].live_ins if (units := physical_units(name)) is not None
        }
        if set(subject.live_ins) != live_ins:
            raise self.error(line, f"live-ins {_names(subject.live_ins)}", _names(live_ins))
        reserved = set(self._reserved(realigns))
        if set(subject.reserved) != reserved:
            raise self.error(line, f"{_names(subject.reserved)} reserved", _names(reserved))
        for name, number in self.numbers.items():
            self._compare_class(name, number)

    def _successors(self, index: int) -> Sequence[int]:
        """The numbers of the blocks that follow a block, as printed or as its branches say."""
        block = self.blocks[index]
        if block.successors is not None:
            return block.successors
        named = [t for line in block.lines for each in (line, *line.members) for t in each.targets]
        if index + 1 < len(self.blocks) and not (
            block.lines and _LAST.fullmatch(block.lines[-1].opcode)
        ):
            named.append(self.blocks[index + 1].number)
        return list(dict.fromkeys(named))

    def _compare(self, instruction: Instruction, line: PrintedInstruction) -> None:
        opcode = instruction.opcode
        short = opcode.partition(".")[0]
        if not line.opcode.startswith(short) or not _ENCODINGS.fullmatch(line.opcode[len(short) :]):
            raise self.error(line.number, opcode, line.opcode)
        if instruction.guard is not None:
            raise self.error(line.number, "a guard", "none")
        definitions, uses = self._operands(line)
        for what, operands, expected in (
            ("definitions", instruction.definitions, definitions),
            ("uses", instruction.uses, uses),
        ):
            if operands != expected:
                text, code = ("; ".join(map(_spelled, each)) for each in (operands, expected))
                raise self.error(line.number, f"the {what} {text or 'none'}", code or "none")
        if instruction.destroys or line.mask:
            mask = "" if _TAIL_CALL.fullmatch(line.opcode) else line.mask
            destroyed = tuple(self._clipped(units) for units in destroyed_units(mask) or ())
            if instruction.destroys != tuple(units for units in destroyed if units.count > 0):
                raise self.error(line.number, "another set of destroyed registers", mask or "none")
        if short in self.target.constant_opcodes and ".outside" not in opcode:
            read = [r for _, r in line.registers if not (r.defined or r.implicit)]
            if any(self._operand(register, line) is None for register in read):
                raise self.error(line.number, f"a constant, {opcode}", "a register that may change")
        self._compare_mask(instruction, line)

    def _compare_mask(self, instruction: Instruction, line: PrintedInstruction) -> None:
        """An instruction that writes EXEC must be said to change it, and no other by its mark."""
        named = [r for _, r in line.registers if r.name in _EXEC and not r.virtual]
        written = any(r.defined for r in named)
        marked = instruction.opcode.endswith(MASK_MARK)
        if not written and not marked:
            return
        copied = instruction.opcode == "COPY" and any(not (r.defined or r.implicit) for r in named)
        unchanged = self.target.mask_change(instruction) is MaskChange.NONE
        if not written or (unchanged and not copied):
            words = ("no change", "a change") if unchanged else ("a change", "no change")
            raise self.error(line.number, f"{words[0]} of EXEC", words[1])

    def _operands(
        self, line: PrintedInstruction
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """The definitions and the uses."""
        definitions: list[Operand] = []
        uses: list[Operand] = []
        places: dict[int, int] = {}
        for place, register in line.registers:
            if register.defined and (operand := self._operand(register, line)) is not None:
                places[place] = len(places)
                definitions.append(operand)
                if register.half and not register.undef:
                    # The other half of the unit stays, so the instruction needs it.
                    uses.append(Operand(operand.location, implicit=True))
        for _, register in line.registers:
            if not register.defined and (operand := self._operand(register, line)) is not None:
                if register.tied is not None:
                    operand = replace(operand, tied_to=places.get(register.tied))
                uses.append(operand)
        return tuple(definitions), tuple(uses)

    def _operand(self, register: PrintedRegister, line: PrintedInstruction) -> Operand | None:
        """The operand of a register without its tie; None outside allocation."""
        if register not in self.operands:
            location = self._location(register, line)
            operand = None
            if location is not None:
                operand = Operand(location, register.undef, register.early, register.implicit)
            self.operands[register] = operand
        return self.operands[register]

    def _location(
        self, register: PrintedRegister, line: PrintedInstruction
    ) -> VirtualLanes | FixedUnits | None:
        if not register.virtual:
            units = physical_units(register.name)
            if units is None or register.lanes is None:
                return units
            return FixedUnits(units.file, units.first + register.lanes[0], register.lanes[1])
        # The text numbers virtual registers by their first place: definitions, then uses.
        number = self.numbers.setdefault(register.name, len(self.numbers))
        if number >= len(self.subject.virtual_registers):
            raise self.error(line.number, f"no register for %{register.name}", "one more")
        width = self.subject.virtual_registers[number].width
        return VirtualLanes(number, *(register.lanes or (0, width)))

    def _compare_class(self, name: str, number: int) -> None:
        found, class_name = self.subject.virtual_registers[number], self.machine.classes[name]
        if (class_name, found) in self.classes:
            return
        self.classes.add((class_name, found))
        table = class_bases(class_name)
        assert table is not None, "normalizing refuses unknown classes"
        width, ranges = table
        own = {(r.file, r.first, r.last, r.step) for r in found.ranges}
        expected = {
            (file, r.first, r.first + (min(r.last, room) - r.first) // r.step * r.step, r.step)
            for file, each in ranges.items()
            for r in each
            if (room := self.budgets[file] - width) >= r.first
        }
        if found.width != width or _bases(own) != _bases(expected):
            line = self.machine.class_lines[name]
            raise self.error(line, f"class {found.name} for %{name}", class_name)

    def _reserved(self, realigns: bool) -> Iterator[FixedUnits]:
        for key in _RESERVING:
            units = physical_units(self.machine.info.get(key, "").removeprefix("$"))
            if units is not None and self._clipped(units).count > 0:
                yield self._clipped(units)
        if self.machine.has_fixed_stack and realigns:
            yield FixedUnits(*_BASE_POINTER, 1)

    def _clipped(self, units: FixedUnits) -> FixedUnits:
        return replace(units, count=min(units.count, self.budgets[units.file] - units.first))


def _bases(ranges: set[tuple[str, int, int, int]]) -> set[tuple[str, int]]:
    return {
        (file, base) for file, first, last, step in ranges for base in range(first, last + 1, step)
    }


def _names(units: Sequence[FixedUnits] | set[FixedUnits]) -> str:
    ordered = sorted((u.file, u.first, u.count) for u in units)
    return ", ".join(f"{file}{first}:{count}" for file, first, count in ordered) or "none"


def _spelled(operand: Operand) -> str:
    location = operand.location
    if isinstance(location, FixedUnits):
        text = f"{location.file}{location.first}:{location.count}"
    else:
        text = f"%{location.register}.{location.first}:{location.count}"
    marks = [name for name in ("undef", "early_clobber", "implicit") if getattr(operand, name)]
    tie = [] if operand.tied_to is None else [f"tied to {operand.tied_to}"]
    return " ".join([*marks, text, *tie])
