"""Numbers the virtual registers of a function by their first mention, as its text requires.

Registers without a mention vanish. The cost is linear in the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from verilocc_bench.ir import FixedUnits, Function, Guard, Instruction, Operand, VirtualLanes

Location = VirtualLanes | FixedUnits


def renumber(function: Function) -> tuple[Function, dict[int, int]]:
    """The function with canonical numbers, and the new number of every old one."""
    numbers: dict[int, int] = {}
    for _, _, instruction in function.instructions():
        for location in _mentions(instruction):
            if isinstance(location, VirtualLanes):
                numbers.setdefault(location.register, len(numbers))
    blocks = tuple(
        replace(block, instructions=tuple(_renamed(i, numbers) for i in block.instructions))
        for block in function.blocks
    )
    classes = tuple(function.virtual_registers[old] for old in numbers)
    return replace(function, blocks=blocks, virtual_registers=classes), numbers


def _mentions(instruction: Instruction) -> Iterator[Location]:
    """The operands in the order of the text."""
    if instruction.guard is not None:
        yield instruction.guard.location
    for operand in instruction.definitions + instruction.uses:
        yield operand.location


def _renamed(instruction: Instruction, numbers: dict[int, int]) -> Instruction:
    def moved(location: Location) -> Location:
        if isinstance(location, FixedUnits):
            return location
        return replace(location, register=numbers[location.register])

    def operand(each: Operand) -> Operand:
        return replace(each, location=moved(each.location))

    guard = instruction.guard
    return Instruction(
        instruction.opcode,
        tuple(operand(each) for each in instruction.definitions),
        tuple(operand(each) for each in instruction.uses),
        None if guard is None else Guard(moved(guard.location), guard.negated),
        instruction.destroys,
    )
