"""Short functions in SASS, written as nvdisasm prints them; encodings are zero."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verilocc_bench.backends.nvidia.normalize import NormalizedSass, normalize_sass
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassFunction,
    SassGuard,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.ir import print_function


def assemble(text: str, architecture: str = "sm_80") -> SassFunction:
    """A function of these lines: an instruction with its guard, `L1:`, or `name:` of a function."""
    lines = [f"\t.target\t{architecture}", '\t.section\t.text.f,"ax",@progbits']
    lines += ['\t.sectioninfo\t@"SHI_REGISTERS=32"', ".size f,(.L_x_99 - f)", "f:"]
    address = 0
    for line in text.strip().splitlines():
        instruction = line.strip()
        if instruction.endswith(":"):
            number = instruction.removeprefix("L").removesuffix(":")
            lines.append(f".L_x_{number}:" if number.isdecimal() else instruction)
            continue
        body = instruction.replace("L(", "`(.L_x_")
        lines.append(f"        /*{address:04x}*/    {body} ;  /* 0x0000000000000000 */")
        lines.append("                /* 0x0000000000000000 */")
        address += 16
    (function,) = parse_sass("\n".join([*lines, ".L_x_99:", ""]))
    return function


NO_BARRIERS = 7 << 110 | 7 << 113


def encoded(function: SassFunction, word: Callable[[int, SassInstruction], int]) -> SassFunction:
    """The function with the encodings that `word` gives by index and instruction."""
    words = (replace(i, encoding=word(n, i)) for n, i in enumerate(function.instructions))
    return replace(function, instructions=tuple(words))


def changed(function: SassFunction, index: int, **changes: Any) -> SassFunction:
    """The function with other fields of one instruction."""
    instructions = list(function.instructions)
    instructions[index] = replace(instructions[index], **changes)
    return replace(function, instructions=tuple(instructions))


def normalize(text: str, limit: int = 255) -> NormalizedSass:
    return normalize_sass(assemble(text), limit)


def body(text: str) -> list[str]:
    """The normalized text from the first block on."""
    lines = print_function(normalize(text).function).splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("bb0")) :]


def permuted(function: SassFunction, generator: random.Random) -> SassFunction:
    """The same code in other registers: aligned quads of R and UR, and P and UP, change places.

    R0 to R3 stay, as R1 is the stack pointer; predicates stay where a mask names them.
    """
    maps = {file: list(range(256)) for file in ("R", "UR", "P", "UP")}
    for file, first, last in (("R", 4, 252), ("UR", 4, 60)):
        quads = list(range(first, last, 4))
        for old, new in zip(quads, generator.sample(quads, len(quads)), strict=True):
            maps[file][old : old + 4] = range(new, new + 4)
    fixed = {r.file for i in function.instructions for r in i.definitions + i.uses if r.fixed}
    for file in {"P", "UP"} - fixed:
        maps[file][:7] = generator.sample(range(7), 7)

    def renamed(reference: RegisterReference) -> RegisterReference:
        return replace(reference, first=maps[reference.file][reference.first])

    def instruction(old: SassInstruction) -> SassInstruction:
        guard = old.guard
        if guard is not None:
            guard = SassGuard(guard.file, maps[guard.file][guard.index], guard.negated)
        return replace(
            old,
            guard=guard,
            definitions=tuple(map(renamed, old.definitions)),
            uses=tuple(map(renamed, old.uses)),
        )

    return replace(function, instructions=tuple(map(instruction, function.instructions)))
