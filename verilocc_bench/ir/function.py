"""Functions as register allocation sees them: blocks of instructions over lanes.

The IR leaves out everything that allocation cannot depend on: immediates, memory
operands, symbols, and registers that no allocation can touch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.ir.registers import PhysicalRegister, RegisterClass, RegisterFile

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

    The value of an `undef` use does not matter. An `undef` definition of some lanes of
    a virtual register ends the old values of its other lanes. `tied_to` is set on a
    use: the index of the definition that must lie in the same register. An
    `early_clobber` definition is written before the instruction reads its uses. The
    assembler's text does not show an `implicit` operand.
    """

    location: VirtualLanes | FixedUnits
    undef: bool = False
    early_clobber: bool = False
    implicit: bool = False
    tied_to: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate, one lane, under which an instruction takes effect.

    The instruction always reads it. If the predicate is false (or true, if `negated`),
    the instruction reads nothing else and defines nothing.
    """

    location: VirtualLanes | FixedUnits
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """An opcode with its register operands and perhaps a guard.

    After it has read its uses, the instruction destroys the units `destroys`, except
    those that it defines: they hold nothing then. A call destroys what its callee may
    write. The units are in the order of their files, apart from each other; they do not
    count as units that the function names.
    """

    opcode: str
    definitions: tuple[Operand, ...] = ()
    uses: tuple[Operand, ...] = ()
    guard: Guard | None = None
    destroys: tuple[FixedUnits, ...] = ()


_new = object.__new__
_set_location, _set_undef, _set_early_clobber, _set_implicit, _set_tied_to = (
    vars(Operand)[name].__set__ for name in Operand.__slots__
)
_set_opcode, _set_definitions, _set_uses, _set_guard, _set_destroys = (
    vars(Instruction)[name].__set__ for name in Instruction.__slots__
)


def operand_of(
    location: VirtualLanes | FixedUnits,
    undef: bool,
    early_clobber: bool,
    implicit: bool,
    tied_to: int | None,
) -> Operand:
    """An Operand in half the time that the constructor of a frozen class takes."""
    made = _new(Operand)
    _set_location(made, location)
    _set_undef(made, undef)
    _set_early_clobber(made, early_clobber)
    _set_implicit(made, implicit)
    _set_tied_to(made, tied_to)
    return made


def instruction_of(
    opcode: str,
    definitions: tuple[Operand, ...],
    uses: tuple[Operand, ...],
    guard: Guard | None,
    destroys: tuple[FixedUnits, ...],
) -> Instruction:
    """An Instruction in half the time that the constructor of a frozen class takes."""
    made = _new(Instruction)
    _set_opcode(made, opcode)
    _set_definitions(made, definitions)
    _set_uses(made, uses)
    _set_guard(made, guard)
    _set_destroys(made, destroys)
    return made


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block; `successors` are indices into the function's blocks.

    A block with two successors and a guarded last instruction branches on that guard:
    to the first successor if the instruction takes effect, else to the second. Every
    other choice among successors is free.
    """

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]

    @property
    def branch_guard(self) -> Guard | None:
        """The guard that chooses between two successors, or None."""
        if len(self.successors) == 2 and self.instructions:
            return self.instructions[-1].guard
        return None


@dataclass(frozen=True, slots=True)
class Function:
    """One allocation problem. The entry is block 0.

    `files` has the budget: the number of units of each file that may be used.
    `reserved` units are within the budget but must not be assigned.
    `virtual_registers[n]` is the class of `%n`. `maximum_occupancy` is the most waves
    or warps that may run at once, however few registers they use; None if the registers
    alone decide.
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
        """(block, index, instruction) of all instructions in order."""
        for block_index, block in enumerate(self.blocks):
            for index, instruction in enumerate(block.instructions):
                yield block_index, index, instruction

    def masks(self) -> tuple[tuple[FixedUnits, ...], ...]:
        """The different sets of units that instructions destroy, in order."""
        found = (i.destroys for block in self.blocks for i in block.instructions if i.destroys)
        return tuple(dict.fromkeys(found))

    def classes(self) -> tuple[RegisterClass, ...]:
        """The classes in use: first the most frequent one, then the others by name."""
        # Counting objects is faster than counting equal classes, and they are mostly the same.
        objects = {id(each): each for each in self.virtual_registers}
        counts: Counter[RegisterClass] = Counter()
        for identity, count in Counter(map(id, self.virtual_registers)).items():
            counts[objects[identity]] += count
        by_name = sorted(counts, key=lambda c: (c.name, c.width))
        if by_name:
            by_name.insert(0, by_name.pop(by_name.index(max(by_name, key=counts.__getitem__))))
        return tuple(by_name)
