"""The instructions of machine code in LLVM's terms, and the registers that they name.

A *unit* is one 32-bit register, as a number: VGPRs from 0, AGPRs from 256, SGPRs from
512, the halves of VCC from 640. EXEC, SCC, M0 and the like have no number: no virtual
register can stand for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from verilocc_bench.backends.amdgpu.mir_flow import unit_number
from verilocc_bench.targets.amdgpu_classes import fixed_units
from verilocc_bench.targets.amdgpu_instructions import InstructionForm

FIRST_AGPR, FIRST_SGPR, FIRST_VCC, UNITS = 256, 512, 640, 642


@dataclass(frozen=True, slots=True)
class RecoveredOperand:
    """An operand: a register by LLVM's name, or `number`.

    `units` are the register's units in order; none for registers outside allocation.
    `class_name` is the register class that the instruction asks for, None for implicit
    operands. `undef` marks a use whose value cannot matter. `tied_to` is the place of a
    definition among the operands.
    """

    register: str | None
    number: int | None
    units: tuple[int, ...] = ()
    definition: bool = False
    class_name: str | None = None
    implicit: bool = False
    early_clobber: bool = False
    undef: bool = False
    tied_to: int | None = None

    @property
    def is_use(self) -> bool:
        """True for a register that is read."""
        return self.register is not None and not self.definition


@dataclass(frozen=True, slots=True)
class RecoveredInstruction:
    """An instruction with the opcode of machine IR.

    `operands` are in the order of machine IR, the implicit ones last. `target` is the
    address to which a branch leads. `keeps_lanes` is true if a definition leaves bits
    of its register as they were.
    `reads_all_lanes` is true if it reads lanes that EXEC does not select.
    """

    address: int
    text: str
    encoding: bytes
    opcode: str
    form: InstructionForm
    operands: tuple[RecoveredOperand, ...]
    target: int | None
    keeps_lanes: bool
    reads_all_lanes: bool


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A block: its instructions, and the numbers of the blocks that follow it."""

    instructions: tuple[RecoveredInstruction, ...]
    successors: tuple[int, ...]


@cache
def units_of(register: str) -> tuple[int, ...]:
    """The units of a register by LLVM's name; none for registers outside allocation."""
    units = fixed_units(register)
    if units is None:
        return ()
    first = unit_number(units)
    return tuple(range(first, first + units.count))


def file_of(unit: int) -> str:
    """The register file of a unit."""
    return (
        "v"
        if unit < FIRST_AGPR
        else "a"
        if unit < FIRST_SGPR
        else "s"
        if unit < FIRST_VCC
        else "vcc"
    )


def index_of(unit: int) -> int:
    """The number of a unit within its file."""
    return unit - {"v": 0, "a": FIRST_AGPR, "s": FIRST_SGPR, "vcc": FIRST_VCC}[file_of(unit)]


def is_vector(unit: int) -> bool:
    """True for a VGPR or an AGPR: each lane has its own value, and EXEC selects lanes."""
    return unit < FIRST_SGPR
