"""Tied operands: a definition and a use that must be in one register."""

from __future__ import annotations

from typing import NamedTuple

from verilocc_bench.ir import Function, Operand

__all__ = ["Tie", "tied_operands"]


class Tie(NamedTuple):
    """A tied pair; `operand` is the place of the use among definitions, then uses."""

    block: int
    instruction: int
    definition: Operand
    use: Operand
    operand: int


def tied_operands(function: Function) -> list[Tie]:
    """The ties that equal operands do not already meet, in the order of the program."""
    ties: list[Tie] = []
    for block, index, instruction in function.instructions():
        for operand, use in enumerate(instruction.uses, len(instruction.definitions)):
            if use.tied_to is not None:
                definition = instruction.definitions[use.tied_to]
                if definition.location != use.location:
                    ties.append(Tie(block, index, definition, use, operand))
    return ties
