"""Turns machine functions of gfx90a and gfx942 into the IR of allocation problems.

It drops everything that allocation cannot depend on: immediates, memory operands,
symbols, instruction flags, debug instructions, and physical registers that no
class holds (EXEC, SCC, M0, …). Virtual registers are numbered by their first place
in the text. Blocks keep their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from verilocc_bench.backends.amdgpu.machine import (
    MachineBlock,
    MachineFunction,
    MachineInstruction,
    MachineModule,
    MachineOperand,
    MachineOperandFlag,
    is_half,
    is_ignored,
)
from verilocc_bench.backends.amdgpu.refusals import TAIL_CALLS, refuse_unsupported
from verilocc_bench.backends.amdgpu.undefined_reads import refuse_undefined_reads
from verilocc_bench.errors import InputError
from verilocc_bench.ir import (
    Block,
    FixedUnits,
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
)
from verilocc_bench.targets import MaskChange, Target
from verilocc_bench.targets.amdgpu import MASK_MARK, MAXIMUM_WAVES
from verilocc_bench.targets.amdgpu_budget import budget_from_attributes
from verilocc_bench.targets.amdgpu_calls import destroyed_units
from verilocc_bench.targets.amdgpu_classes import class_bases, fixed_units, is_outside_allocation
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

_BARRIERS = re.compile(
    r"(S_BRANCH|S_ENDPGM|S_SETPC_B64|SI_RETURN|SI_TCRETURN|SI_CS_CHAIN_TC)\w*"
    r"|SI_WHOLE_WAVE_FUNC_RETURN"
)
_RESERVED_INFO = (
    "scratchRSrcReg",
    "frameOffsetReg",
    "stackPtrOffsetReg",
    "sgprForEXECCopy",
    "longBranchReservedReg",
    "vgprForAGPRCopy",
)
# The encoding and operand form of an instruction do not matter to allocation:
# the classes of its operands express what it needs.
_ENCODING = re.compile(r"(?:_e32|_e64|_vi|_vgprcd|_PSEUDO|_gfx\d\w*)+$")
OUTSIDE = ".outside"
"""The suffix for the opcode of a move from a register that the text does not name."""
BASE_POINTER = FixedUnits("s", 34, 1)
STACK_ALIGNMENT = 16
"""LLVM sets a base pointer aside if an object of the stack needs more, in bytes, and the callers
pass arguments on the stack (SIRegisterInfo::hasBasePointer)."""
_NO_ATTRIBUTES: dict[str, str] = {}
_UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class NormalizedMachineFunction:
    """A function with the original name of each of its virtual registers."""

    name: str
    function: Function
    original_names: tuple[str, ...]


def normalize_machine_function(
    machine: MachineFunction,
    module: MachineModule,
    target: Target,
    *,
    max_threads: int | None = None,
    source: str = "<mir>",
) -> NormalizedMachineFunction:
    """The allocation problem of one machine function.

    `max_threads` overrides the work-group size, which decides the budget. Raises
    InputError with the line for classes, registers or syntax that these targets
    do not have, and for functions that are refused by name.
    """
    refuse_unsupported(machine, module, target, source)
    normalized = _MirNormalizer(machine, module, target, max_threads, source).normalize()
    successors = [block.successors for block in normalized.function.blocks]
    reserved = [machine.info.get(key, "") for key in _RESERVED_INFO]
    refuse_undefined_reads(machine, successors, reserved, source)
    return normalized


class _MirNormalizer:
    def __init__(
        self,
        machine: MachineFunction,
        module: MachineModule,
        target: Target,
        max_threads: int | None,
        source: str,
    ) -> None:
        self.machine, self.target, self.source = machine, target, source
        attributes = module.attributes.get(machine.name, _NO_ATTRIBUTES)
        self.realigns = machine.stack_alignment > STACK_ALIGNMENT or "stackrealign" in attributes
        try:
            budget = budget_from_attributes(target.name, attributes, max_threads)
        except ValueError as error:
            raise InputError(
                f"function {machine.name!r} has an attribute that is not a number: {error}",
                source=source,
                line=machine.line,
            ) from None
        self.budgets = {"v": budget.vgprs, "a": budget.agprs, "s": budget.sgprs, "vcc": 2}
        self.maximum_waves = budget.waves if budget.waves < MAXIMUM_WAVES else None
        self.classes: dict[str, RegisterClass] = {}
        self.numbers: dict[str, int] = {}
        self.registers: list[RegisterClass] = []
        self.operands: dict[MachineOperand, Operand | None] = {}
        self.opcodes: dict[str, str] = {}
        self.masks: dict[str, tuple[FixedUnits, ...]] = {}

    def error(self, message: str, line: int | None = None) -> InputError:
        return InputError(message, source=self.source, line=line)

    def normalize(self) -> NormalizedMachineFunction:
        machine = self.machine
        order = {block.number: index for index, block in enumerate(machine.blocks)}
        blocks = []
        for index, block in enumerate(machine.blocks):
            instructions = tuple(
                [self.instruction(i) for i in block.instructions if not is_ignored(i)]
            )
            blocks.append(Block(instructions, self.successors(block, index, order)))
        function = Function(
            target=self.target.name,
            files=tuple(file.with_budget(self.budgets[file.name]) for file in self.target.files),
            reserved=self.reserved(),
            virtual_registers=tuple(self.registers),
            live_ins=self.live_ins(machine.blocks[0]),
            blocks=tuple(blocks),
            maximum_occupancy=self.maximum_waves,
        )
        return NormalizedMachineFunction(
            machine.name, function, tuple(f"%{name}" for name in self.numbers)
        )

    def reserved(self) -> tuple[FixedUnits, ...]:
        units = []
        for key in _RESERVED_INFO:
            name = self.machine.info.get(key, "").removeprefix("$")
            found = self.units(name, self.machine.line) if name else None
            room = self.budgets[found.file] - found.first if found is not None else 0
            if found is not None and room > 0:
                units.append(replace(found, count=min(found.count, room)))
        if self.machine.has_fixed_stack and self.realigns:
            units.append(BASE_POINTER)
        return self.in_order(set(units))

    def destroyed(self, mask: str) -> tuple[FixedUnits, ...]:
        """The units within the budget that a call with a register mask destroys, or none."""
        if mask not in self.masks:
            units = destroyed_units(mask) or ()
            room = [min(u.count, self.budgets[u.file] - u.first) for u in units]
            self.masks[mask] = tuple(
                replace(u, count=count) for u, count in zip(units, room, strict=True) if count > 0
            )
        return self.masks[mask]

    def live_ins(self, entry: MachineBlock) -> tuple[FixedUnits, ...]:
        units = [self.units(name, entry.line) for name in entry.live_ins]
        return self.in_order({unit for unit in units if unit is not None})

    def in_order(self, units: set[FixedUnits]) -> tuple[FixedUnits, ...]:
        """Units in the order of the target's files, as in canonical texts."""
        order = [file.name for file in self.target.files]
        return tuple(sorted(units, key=lambda u: (order.index(u.file), u.first, u.count)))

    def successors(self, block: MachineBlock, index: int, order: dict[int, int]) -> tuple[int, ...]:
        code = [i for i in block.instructions if not is_ignored(i)]
        code = [i for head in code for i in (head, *head.bundled)]
        named = [target for i in code for target in i.targets]
        falls_through = not (code and _BARRIERS.fullmatch(code[-1].opcode))
        if falls_through and index + 1 < len(self.machine.blocks):
            named.append(self.machine.blocks[index + 1].number)
        numbers = tuple(dict.fromkeys(named)) if block.successors is None else block.successors
        # A block without successors may end in a call that does not return.
        for number in named if numbers else ():
            if number not in numbers:
                message = f"bb.{block.number} leads to bb.{number}, which its successors lack"
                raise self.error(message, block.line)
        for number in numbers:
            if number not in order:
                raise self.error(f"there is no block bb.{number}", block.line)
        return tuple(order[number] for number in numbers)

    def instruction(self, machine: MachineInstruction) -> Instruction:
        operands = _bundle_operands(machine) if machine.bundled else machine.operands
        definitions: list[Operand] = []
        uses: list[Operand] = []
        places: dict[int, int] = {}
        outside = False
        written = {place for place, o in operands if MachineOperandFlag.DEFINITION in o.flags}
        # Numbers follow the order of the text, with all definitions before the uses.
        for place, operand in operands:
            if MachineOperandFlag.DEFINITION not in operand.flags:
                continue
            definition = self.operand(operand, machine.line)
            if definition is not None:
                places[place] = len(definitions)
                definitions.append(definition)
                if _keeps_half(operand):
                    uses.append(Operand(definition.location, implicit=True))
        for _, operand in operands:
            if MachineOperandFlag.DEFINITION in operand.flags:
                continue
            use = self.operand(operand, machine.line)
            if use is not None:
                if operand.tied_to is not None:
                    if operand.tied_to not in written:
                        place = operand.tied_to
                        raise self.error(f"tied to operand {place}, no definition", machine.line)
                    # A tie to a definition outside allocation has no effect.
                    use = replace(use, tied_to=places.get(operand.tied_to))
                uses.append(use)
            elif MachineOperandFlag.IMPLICIT not in operand.flags:
                outside = True
        opcode = self.opcode(machine.opcode)
        if outside and opcode in self.target.constant_opcodes:
            opcode += OUTSIDE  # it copies EXEC, M0 or the like, so it is not a constant
        # Nothing of this function comes after a tail call.
        destroys = () if machine.opcode in TAIL_CALLS else self.destroyed(machine.register_mask)
        instruction = Instruction(opcode, tuple(definitions), tuple(uses), None, destroys)
        if is_misnamed_mask_writer(operands, instruction, self.target):
            return replace(instruction, opcode=opcode + MASK_MARK)
        return instruction

    def opcode(self, name: str) -> str:
        short = self.opcodes.get(name)
        if short is None:
            short = self.opcodes[name] = _ENCODING.sub("", name)
        return short

    def operand(self, machine: MachineOperand, line: int) -> Operand | None:
        cached = self.operands.get(machine, _UNSEEN)
        if not isinstance(cached, str):
            return cached
        location = self.virtual(machine, line) if machine.virtual else self.physical(machine, line)
        operand = None
        if location is not None:
            operand = Operand(
                location,
                undef=MachineOperandFlag.UNDEF in machine.flags,
                early_clobber=MachineOperandFlag.EARLY_CLOBBER in machine.flags,
                implicit=MachineOperandFlag.IMPLICIT in machine.flags,
            )
        self.operands[machine] = operand
        return operand

    def virtual(self, operand: MachineOperand, line: int) -> VirtualLanes:
        number = self.numbers.get(operand.name)
        if number is None:
            number = self.numbers[operand.name] = len(self.registers)
            self.registers.append(self.class_of(operand.name, line))
        width = self.registers[number].width
        if operand.sub_register is None:
            return VirtualLanes(number, 0, width)
        lanes = SUB_REGISTERS.get(operand.sub_register)
        if lanes is None:
            raise self.error(f"unknown sub-register index {operand.sub_register!r}", line)
        if lanes.first + lanes.count > width:
            raise self.error(
                f"%{operand.name} has {width} lanes: no {operand.sub_register!r}", line
            )
        return VirtualLanes(number, lanes.first, lanes.count)

    def class_of(self, name: str, line: int) -> RegisterClass:
        class_name = self.machine.classes.get(name)
        if class_name is None:
            raise self.error(f"%{name} has no register class", line)
        if class_name not in self.classes:
            bases = class_bases(class_name)
            if bases is None:
                raise self.error(
                    f"unknown register class {class_name!r}", self.machine.class_lines[name]
                )
            self.classes[class_name] = self.target.make_class(bases[0], bases[1], self.budgets)
        return self.classes[class_name]

    def physical(self, operand: MachineOperand, line: int) -> FixedUnits | None:
        units = self.units(operand.name, line)
        if units is None or operand.sub_register is None:
            return units
        lanes = SUB_REGISTERS.get(operand.sub_register)
        if lanes is None or lanes.first + lanes.count > units.count:
            raise self.error(f"${operand.name} has no {operand.sub_register!r}", line)
        return FixedUnits(units.file, units.first + lanes.first, lanes.count)

    def units(self, name: str, line: int) -> FixedUnits | None:
        units = fixed_units(name)
        if units is None and not is_outside_allocation(name):
            raise self.error(f"unknown physical register ${name} on {self.target.name}", line)
        return units


def _bundle_operands(head: MachineInstruction) -> Sequence[tuple[int, MachineOperand]]:
    """The operands of a bundle, as if it were one instruction.

    Operands of the head that only repeat its members are left out. A definition
    is an early clobber if a later member reads anything. Reads of values that the
    bundle itself defines are left out.
    """
    operands: list[tuple[int, MachineOperand]] = []
    reads_follow = False
    offset = 0
    for member in reversed(head.bundled):
        kept = [
            (place, o) for place, o in member.operands if MachineOperandFlag.INTERNAL not in o.flags
        ]
        early = MachineOperandFlag.EARLY_CLOBBER if reads_follow else MachineOperandFlag.NONE
        operands[:0] = [
            (
                offset + place,
                replace(
                    _tied_from(operand, offset),
                    flags=operand.flags
                    | (
                        early
                        if MachineOperandFlag.DEFINITION in operand.flags
                        else MachineOperandFlag.NONE
                    ),
                ),
            )
            for place, operand in kept
        ]
        reads_follow |= any(MachineOperandFlag.DEFINITION not in o.flags for _, o in kept)
        offset += 1 + max((place for place, _ in member.operands), default=0)
    said = {(o.name, o.virtual, o.sub_register) for m in head.bundled for _, o in m.operands}
    return [
        (offset + place, _tied_from(operand, offset))
        for place, operand in head.operands
        if (operand.name, operand.virtual, operand.sub_register) not in said
    ] + operands


def _tied_from(operand: MachineOperand, offset: int) -> MachineOperand:
    """The operand once the operands of its instruction start at `offset`."""
    if operand.tied_to is None:
        return operand
    return replace(operand, tied_to=offset + operand.tied_to)


def _keeps_half(operand: MachineOperand) -> bool:
    """True if a definition writes 16 bits and so leaves, and needs, the rest of the unit."""
    return is_half(operand) and MachineOperandFlag.UNDEF not in operand.flags


_EXEC = frozenset({"exec", "exec_lo", "exec_hi"})


def is_misnamed_mask_writer(
    operands: Sequence[tuple[int, MachineOperand]], instruction: Instruction, target: Target
) -> bool:
    """True if an instruction writes EXEC in another way than its opcode tells."""
    flags = MachineOperandFlag.DEFINITION
    if not any(flags in o.flags and not o.virtual and o.name in _EXEC for _, o in operands):
        return False
    read = [o for _, o in operands if not o.flags & (flags | MachineOperandFlag.IMPLICIT)]
    reads_mask = [not o.virtual and o.name == "exec" for o in read]
    if instruction.opcode == "COPY" and any(reads_mask):
        return False  # a copy of EXEC lists it as defined, but does not change it
    change = target.mask_change(instruction)
    operation = instruction.opcode.removesuffix("_term")
    if operation in ("S_AND_B64", "S_OR_B64"):
        return not any(reads_mask)
    if operation == "S_ANDN2_B64":
        return reads_mask[:1] != [True]
    return change is MaskChange.NONE
