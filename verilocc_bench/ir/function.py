"""Functions as register allocation sees them: blocks of instructions over lanes.

Everything that allocation cannot depend on is absent: immediates, memory
operands, symbols, and registers that no allocation can touch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.ir.registers import PhysicalRegister, RegisterClass, RegisterFile

__all__ = [
    "Assignment",
    "Block",
    "FixedUnits",
    "Function",
    "Guard",
    "Instruction",
    "Operand",
    "VirtualLanes",
]

Assignment = dict[int, PhysicalRegister]
"""The base register of each virtual register, by the number of the virtual register."""


@dataclass(frozen=True, slots=True)
class VirtualLanes:
    """`count` lanes (32-bit units) of a virtual register, from lane `first`."""

    register: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class FixedUnits:
    """`count` physical register units of `file`, from unit `first`."""

    file: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Operand:
    """One register operand of an instruction.

    `undef` on a use: the value read does not matter. `undef` on the
    definition of some lanes of a virtual register: the other lanes' old
    values end here. `tied_to` (uses): the definition, by its place among the
    instruction's definitions, that must be in the same register.
    `early_clobber` (definitions): written before the instruction's uses are
    read. `implicit`: not written out in the assembler's text.
    """

    location: VirtualLanes | FixedUnits
    undef: bool = False
    early_clobber: bool = False
    implicit: bool = False
    tied_to: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate, one lane, under which an instruction takes effect.

    It is always read. Where it does not hold (or, `negated`, where it does),
    the instruction reads nothing else and defines nothing.
    """

    location: VirtualLanes | FixedUnits
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """An opcode with its register operands: definitions, then uses; perhaps guarded."""

    opcode: str
    definitions: tuple[Operand, ...] = ()
    uses: tuple[Operand, ...] = ()
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block; `successors` are indices into the function's blocks.

    A block of two successors whose last instruction is guarded branches on
    that guard: to the first successor where the instruction takes effect, to
    the second where it does not. Every other choice among successors is free.
    """

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]

    @property
    def branch_guard(self) -> Guard | None:
        """The guard that chooses between the two successors, if one does."""
        if len(self.successors) == 2 and self.instructions:
            return self.instructions[-1].guard
        return None


@dataclass(frozen=True, slots=True)
class Function:
    """One allocation problem. The entry is block 0.

    `files` carries the budget: how many units of each file may be used.
    `reserved` units lie within the budget and yet must not be assigned.
    `virtual_registers[n]` is the class of `%n`. `maximum_occupancy` is the most
    waves or warps that may run at once, however few registers they use; None
    where the registers alone decide.
    """

    target: str
    files: tuple[RegisterFile, ...]
    reserved: tuple[FixedUnits, ...]
    virtual_registers: tuple[RegisterClass, ...]
    live_ins: tuple[FixedUnits, ...]
    blocks: tuple[Block, ...]
    maximum_occupancy: int | None = None

    def file(self, name: str) -> RegisterFile:
        """The register file of that name. Raises KeyError for another name."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)

    @property
    def instruction_count(self) -> int:
        """The number of instructions in all blocks."""
        return sum(len(block.instructions) for block in self.blocks)

    def instructions(self) -> Iterator[tuple[int, int, Instruction]]:
        """All instructions with the index of their block and their place in it."""
        for block_index, block in enumerate(self.blocks):
            for index, instruction in enumerate(block.instructions):
                yield block_index, index, instruction

    def classes(self) -> tuple[RegisterClass, ...]:
        """The classes in use, each once: the one of most virtual registers, the others by name."""
        counts = Counter(self.virtual_registers)
        by_name = sorted(counts, key=lambda c: (c.name, c.width))
        if by_name:
            by_name.insert(0, by_name.pop(by_name.index(max(by_name, key=counts.__getitem__))))
        return tuple(by_name)
