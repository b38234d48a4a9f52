"""Machine functions of LLVM's machine IR: the parts that matter for register allocation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntFlag

from verilocc_bench.backends.amdgpu.mir_yaml import Frame
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

_IGNORED = re.compile(r"DBG_\w+|CFI_INSTRUCTION|PSEUDO_PROBE|LIFETIME_(START|END)")


class MachineOperandFlag(IntFlag):
    """The flags of a register operand that matter for register allocation."""

    NONE = 0
    DEFINITION = 1
    IMPLICIT = 2
    UNDEF = 4
    EARLY_CLOBBER = 8
    INTERNAL = 16


@dataclass(frozen=True, slots=True)
class MachineOperand:
    """A register operand: `%name` is virtual, `$name` physical.

    `tied_to` counts all operands of the instruction, as MIR does.
    """

    name: str
    virtual: bool
    sub_register: str | None
    flags: MachineOperandFlag
    class_name: str | None
    tied_to: int | None


def is_half(operand: MachineOperand) -> bool:
    """True if an operand is 16 bits of a 32-bit register."""
    if operand.sub_register is None:
        return not operand.virtual and operand.name.endswith(("_lo16", "_hi16"))
    lanes = SUB_REGISTERS.get(operand.sub_register)
    return lanes is not None and lanes.half is not None


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """Register operands in order, each with its place among all operands."""

    opcode: str
    operands: tuple[tuple[int, MachineOperand], ...]
    explicit_operands: int  # of every kind but register masks; implicit registers follow
    targets: tuple[int, ...]  # blocks named as operands
    line: int
    register_mask: str = ""  # of a call: what its callee keeps
    bundled: tuple[MachineInstruction, ...] = ()  # the members, if it is the head of a bundle


def is_ignored(instruction: MachineInstruction) -> bool:
    """True for debug and unwind notes, which emit no code and read nothing."""
    return _IGNORED.fullmatch(instruction.opcode) is not None


@dataclass(slots=True)
class MachineBlock:
    """A block; `successors` is None if the text leaves them to be inferred."""

    number: int
    line: int
    successors: tuple[int, ...] | None = None
    live_ins: tuple[str, ...] = ()
    instructions: list[MachineInstruction] = field(default_factory=list)


@dataclass(slots=True)
class MachineFunction:
    """One function: `classes` by virtual register name, `info` from machineFunctionInfo.

    `frame` has all keys of its document, and `line` is the document's first line.
    """

    name: str
    line: int
    frame: Frame
    classes: dict[str, str] = field(default_factory=dict)
    class_lines: dict[str, int] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    is_ssa: bool = False
    no_virtual_registers: bool | None = None  # noVRegs, if the text has it
    whole_wave: dict[str, int] = field(default_factory=dict)  # WWM_REG registers, their lines
    stack_alignment: int = 1  # the largest alignment of an object, in bytes
    has_fixed_stack: bool = False  # its callers pass arguments on the stack
    blocks: list[MachineBlock] = field(default_factory=list)


@dataclass(slots=True)
class MachineModule:
    """The functions of a file, with the LLVM attributes and calling conventions from its IR.

    `calling_conventions` are spelled as in LLVM IR; the default is `ccc`. `is_triton_dump` is
    True if Triton's scheduling graph follows the functions.
    """

    functions: list[MachineFunction] = field(default_factory=list)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    calling_conventions: dict[str, str] = field(default_factory=dict)
    triple: str | None = None
    is_triton_dump: bool = False
