"""Tied operands: a definition and a use that must lie in one register."""

from __future__ import annotations

from typing import NamedTuple

from verilocc_bench.ir import Function, Operand


class Tie(NamedTuple):
    """A tied pair; `operand` is the number of the use, counting definitions, then uses."""

    block: int
    instruction: int
    definition: Operand
    use: Operand
    operand: int


def tied_operands(function: Function) -> list[Tie]:
    """The ties whose two operands differ, in the order of the program."""
    ties: list[Tie] = []
    for block, index, instruction in function.instructions():
        for number, use in enumerate(instruction.uses):
            if use.tied_to is not None:
                definition = instruction.definitions[use.tied_to]
                if definition.location != use.location:
                    operand = len(instruction.definitions) + number
                    ties.append(Tie(block, index, definition, use, operand))
    return ties
