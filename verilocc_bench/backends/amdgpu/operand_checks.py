"""Checks the operands of machine instructions against LLVM's table of opcodes.

- The explicit operands are as many as the opcode has, its definitions first.
- A virtual register stands only where all registers of its class may stand, and a
  physical register only where it may: LLVM's machine verifier asks the same.
- The registers that the opcode reads and writes without naming them are in the text.
- No instruction defines a lane of a register twice.
- A copy has one width, and does not go from a vector register to a scalar one.
- The first source of V_DIV_SCALE is one of the two others.
- A vector instruction reads at most one scalar register, as gfx90a and gfx942 have one
  constant bus (SIInstrInfo::verifyInstruction).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from verilocc_bench.backends.amdgpu.machine import (
    MachineInstruction,
    MachineOperand,
    MachineOperandFlag,
)
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.amdgpu_classes import (
    ClassBases,
    fixed_units,
    is_outside_allocation,
    operand_bases,
)
from verilocc_bench.targets.amdgpu_instructions import InstructionForm
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS, SubRegister

_OTHER_FILE = "other"  # EXEC, M0 and the like are scalar registers
_SCALAR_FILES = frozenset({"s", "vcc", _OTHER_FILE})
_VECTOR_FILES = frozenset({"v", "a"})
_SCALAR_IMPLICITLY = {"vcc": ("vcc", "vcc_lo", "vcc_hi"), "m0": ("m0",), "flat_scr": ("flat_scr",)}
_CONSTANT_BUSES = 1
_ALL_LANES = SubRegister(0, 32)
_DIVISION_SOURCES = (3, 5, 7)  # the places of the sources, each behind its modifiers
_LANE_BY_M0 = "V_WRITELANE_B32"  # M0 selects a lane beside the scalar that is written
_EVEN_ADDRESS = re.compile(r"IMAGE_\w+")  # even an address of one register
_UNALIGNED = frozenset({"AV_MOV_B64_IMM_PSEUDO"})  # becomes two instructions, a lane each


def operand_fault(
    instruction: MachineInstruction, form: InstructionForm, classes: Mapping[str, str]
) -> str | None:
    """What is wrong with the operands of an instruction, or None.

    `classes` has the class of each virtual register by its name. Registers of an unknown
    class, sub-register index or name are left to others.
    """
    return (
        _count_fault(instruction, form)
        or _class_fault(instruction, form, classes)
        or _implicit_fault(instruction, form)
        or _double_definition(instruction, form)
        or _constant_bus_fault(instruction, form, classes)
        or _division_fault(instruction)
        or _copy_fault(instruction, classes)
    )


def _count_fault(instruction: MachineInstruction, form: InstructionForm) -> str | None:
    expected, found = len(form.operands), instruction.explicit_operands
    if found < expected or (found > expected and not form.takes_more):
        return f"{instruction.opcode} has {expected} operands, not {found}"
    defined = [
        place
        for place, operand in instruction.operands
        if place < expected and _is(operand, MachineOperandFlag.DEFINITION)
    ]
    if defined != [*range(form.definitions)]:
        return f"{instruction.opcode} defines its first {form.definitions} operands"
    return None


def _is(operand: MachineOperand, flags: MachineOperandFlag) -> bool:
    """True if an explicit operand has the flags."""
    return flags in operand.flags and MachineOperandFlag.IMPLICIT not in operand.flags


def _class_fault(
    instruction: MachineInstruction, form: InstructionForm, classes: Mapping[str, str]
) -> str | None:
    opcode = instruction.opcode
    for place, operand in instruction.operands:
        if place >= len(form.operands):
            return None
        wanted = form.operands[place].class_name
        name = _name(operand)
        if wanted is None:
            return f"operand {place} of {opcode} cannot be a register: {name}"
        class_name = classes.get(operand.name, "") if operand.virtual else operand.name
        least = 1 if _EVEN_ADDRESS.fullmatch(opcode) and wanted == "vgpr_32" else 2
        if opcode in _UNALIGNED:
            least = sys.maxsize
        other = _other_register(class_name, operand.virtual, operand.sub_register, wanted, least)
        if other is not None:
            of = f" of class {class_name} may be {other}, which" if operand.virtual else ""
            return f"operand {place} of {opcode} is of class {wanted}: {name}{of} is not in it"
    return None


@cache
def _other_register(
    name: str, virtual: bool, sub_register: str | None, wanted: str, least_even: int
) -> str | None:
    """A register that an operand may name and that the class `wanted` lacks, or None.

    `name` is the class of a virtual register, or a physical register. From `least_even`
    vector registers on they begin at an even one, whatever LLVM's class says.
    """
    known = operand_bases(wanted)
    lanes = SUB_REGISTERS.get(sub_register or "")
    if known is None or (sub_register is not None and lanes is None):
        return None  # any class, or an index that others refuse
    width, bases = known
    for whole in _possible(name, virtual):
        first, count = (lanes.first, lanes.count) if lanes else (0, whole.count)
        if first + count > whole.count:
            return None
        place = whole.first + first
        odd = count >= least_even and whole.file in _VECTOR_FILES and place % 2
        inside = count == width and any(place in each for each in bases.get(whole.file, ()))
        if odd or not inside:
            return f"{whole.file}{place}" + (f" to {place + count - 1}" if count > 1 else "")
    if not virtual and is_outside_allocation(name) and not bases.keys() & _SCALAR_FILES:
        return name
    return None


def _possible(name: str, virtual: bool) -> Iterator[FixedUnits]:
    """The units that a virtual register of a class, or a physical register, may have."""
    if not virtual:
        units = fixed_units(name)
        if units is not None:
            yield units
        return
    width, bases = operand_bases(name) or (0, {})
    for file, ranges in bases.items():
        for each in ranges:
            for base in each:
                yield FixedUnits(file, base, width)


def _implicit_fault(instruction: MachineInstruction, form: InstructionForm) -> str | None:
    flag = MachineOperandFlag.DEFINITION
    said = {(operand.name, flag in operand.flags) for _, operand in instruction.operands}
    for names, defined in ((form.implicit_definitions, True), (form.implicit_uses, False)):
        for name in names:
            if fixed_units(name) is not None and (name, defined) not in said:
                word = "implicit-def" if defined else "implicit"
                return f"{instruction.opcode} has an operand '{word} ${name}'"
    return None


def _double_definition(instruction: MachineInstruction, form: InstructionForm) -> str | None:
    if form.definitions <= 1 and not form.takes_more:
        return None
    seen: set[tuple[str, int]] = set()
    for _, operand in instruction.operands:
        if not _is(operand, MachineOperandFlag.DEFINITION):
            continue
        if operand.virtual:
            lanes = SUB_REGISTERS.get(operand.sub_register or "", _ALL_LANES)
            register, first, count = f"%{operand.name}", lanes.first, lanes.count
        elif units := fixed_units(operand.name):
            register, first, count = units.file, units.first, units.count
        else:
            continue
        defined = {(register, first + lane) for lane in range(count)}
        if seen & defined:
            return f"{instruction.opcode} defines {_name(operand)} twice"
        seen |= defined
    return None


def _constant_bus_fault(
    instruction: MachineInstruction, form: InstructionForm, classes: Mapping[str, str]
) -> str | None:
    if not form.reads_constant_bus:
        return None
    read = {
        _name(operand)
        for place, operand in instruction.operands
        if form.definitions <= place < len(form.operands) and _is_scalar(operand, classes)
    }
    for name in form.implicit_uses:
        same = _SCALAR_IMPLICITLY.get(name)
        if same and not read & {f"${each}" for each in same}:
            read.add(f"${name}")
    if instruction.opcode == _LANE_BY_M0:
        read.discard("$m0")
    if len(read) + form.constants <= _CONSTANT_BUSES:
        return None
    constant = " beside its constant" if form.constants else ""
    names = " and ".join(sorted(read))
    return f"{instruction.opcode} reads {names}{constant}: one scalar operand is allowed"


def _is_scalar(operand: MachineOperand, classes: Mapping[str, str]) -> bool:
    files = _files(operand, classes)
    return bool(files) and files <= _SCALAR_FILES


def _division_fault(instruction: MachineInstruction) -> str | None:
    if not instruction.opcode.startswith("V_DIV_SCALE_"):
        return None
    sources = dict(instruction.operands)
    first, *others = (sources.get(place) for place in _DIVISION_SOURCES)
    if first is None or _name(first) in [_name(other) for other in others if other is not None]:
        return None
    return f"{instruction.opcode} scales one of its last two sources: {_name(first)} is another"


def _copy_fault(instruction: MachineInstruction, classes: Mapping[str, str]) -> str | None:
    if instruction.opcode != "COPY":
        return None
    operands = dict(instruction.operands)
    target, source = operands.get(0), operands.get(1)
    if target is None or source is None:
        return "COPY copies a register to another"
    widths = {_width(operand, classes) for operand in (target, source)} - {0}
    if len(widths) > 1:
        return f"COPY from {_name(source)} to {_name(target)}: the widths differ"
    vector = _files(source, classes) & _VECTOR_FILES
    if vector and _is_scalar(target, classes):
        return f"COPY from the vector register {_name(source)} to the scalar one {_name(target)}"
    return None


def _width(operand: MachineOperand, classes: Mapping[str, str]) -> int:
    """The lanes that an operand names, also in part; 0 where they are not known."""
    if operand.sub_register is not None:
        lanes = SUB_REGISTERS.get(operand.sub_register)
        return lanes.count if lanes else 0
    if operand.virtual:
        return _class_of(operand, classes)[0]
    units = fixed_units(operand.name)
    return units.count if units else 0


def _files(operand: MachineOperand, classes: Mapping[str, str]) -> AbstractSet[str]:
    """The files in which the register of an operand may be."""
    if operand.virtual:
        return _class_of(operand, classes)[1].keys()
    units = fixed_units(operand.name)
    return {units.file if units else _OTHER_FILE}


def _class_of(operand: MachineOperand, classes: Mapping[str, str]) -> ClassBases:
    return operand_bases(classes.get(operand.name, "")) or (0, {})


def _name(operand: MachineOperand) -> str:
    part = f".{operand.sub_register}" if operand.sub_register else ""
    return f"{'%' if operand.virtual else '$'}{operand.name}{part}"
