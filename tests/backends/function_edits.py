"""Faults in a normalized function: other instructions, blocks and budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verilocc_bench.ir import Function, Instruction

Edit = Callable[[Instruction], Instruction]


def changed(**changes: Any) -> Edit:
    return lambda instruction: replace(instruction, **changes)


def definition(**changes: Any) -> Edit:
    return lambda i: replace(
        i, definitions=(replace(i.definitions[0], **changes), *i.definitions[1:])
    )


def use(place: int, **changes: Any) -> Edit:
    def edit(instruction: Instruction) -> Instruction:
        uses = list(instruction.uses)
        uses[place] = replace(uses[place], **changes)
        return replace(instruction, uses=tuple(uses))

    return edit


def without_use(place: int) -> Edit:
    return lambda i: replace(i, uses=i.uses[:place] + i.uses[place + 1 :])


def with_instruction(function: Function, block: int, index: int, edit: Edit) -> Function:
    body = list(function.blocks[block].instructions)
    body[index] = edit(body[index])
    return with_block(function, block, instructions=tuple(body))


def with_block(function: Function, number: int, **changes: Any) -> Function:
    blocks = list(function.blocks)
    blocks[number] = replace(blocks[number], **changes)
    return replace(function, blocks=tuple(blocks))


def with_budget(function: Function, name: str, count: int) -> Function:
    files = tuple(replace(f, count=count) if f.name == name else f for f in function.files)
    return replace(function, files=files)
