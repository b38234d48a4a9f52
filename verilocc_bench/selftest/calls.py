"""Instructions that destroy registers, as calls do, for random functions.

A function gets one or two masks. Some of its instructions destroy the registers of a mask
and, sometimes, read or define one of them: an argument or a result. The cost is linear in
the instructions.
"""

from __future__ import annotations

import random
from dataclasses import replace

from verilocc_bench.ir import FixedUnits, Function, Instruction, Operand
from verilocc_bench.targets import Target

BEYOND = 2
"""A mask may destroy this many units beyond the budget of a file."""


def with_calls(function: Function, target: Target, generator: random.Random) -> Function:
    """The function with instructions that destroy registers; no file of guards is in a mask."""
    masks = [_mask(function, target, generator) for _ in range(generator.choice((1, 1, 2)))]
    chance = generator.choice((0.1, 0.25, 0.5))
    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                _call(each, generator.choice(masks), generator)
                if generator.random() < chance
                else each
                for each in block.instructions
            ),
        )
        for block in function.blocks
    )
    return replace(function, blocks=blocks)


def _mask(function: Function, target: Target, generator: random.Random) -> tuple[FixedUnits, ...]:
    """Runs of units of each file, mostly few: what is left must hold what lives on."""
    found: list[FixedUnits] = []
    share = generator.choice((0.2, 0.4, 0.4, 0.7))
    for file in function.files:
        if file.name in target.guard_files:
            continue
        count = len(file.unit_names) or file.count + BEYOND
        destroyed = [unit for unit in range(count) if generator.random() < share]
        if file.unit_names and len(destroyed) == count:
            found.append(FixedUnits(file.name, 0, count))
            continue
        for unit in destroyed:
            last = found[-1] if found else None
            joins = last is not None and (last.file, last.first + last.count) == (file.name, unit)
            if last is not None and joins and not file.unit_names:
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(FixedUnits(file.name, unit, 1))
    return tuple(found)


def _call(
    instruction: Instruction, mask: tuple[FixedUnits, ...], generator: random.Random
) -> Instruction:
    if not mask:
        return instruction
    definitions, uses = instruction.definitions, instruction.uses
    if generator.random() < 0.4:
        uses = (*uses, Operand(_unit(mask, generator), implicit=True))
    if generator.random() < 0.4:
        definitions = (*definitions, Operand(_unit(mask, generator), implicit=True))
    return replace(instruction, definitions=definitions, uses=uses, destroys=mask)


def _unit(mask: tuple[FixedUnits, ...], generator: random.Random) -> FixedUnits:
    units = generator.choice(mask)
    return replace(units, first=units.first + generator.randrange(units.count), count=1)
