"""Pools: the register files, classes and opcodes that random functions draw on.

The *plain* pool of a target is always the same and has few registers. A *varied*
pool has its own budgets and classes: VGPRs and AGPRs with or without classes that
draw on both, tuples of many widths, shortened ranges of bases, reserved
registers, fixed registers perhaps beyond the budget, and budgets that are too
small.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from verilocc_bench.ir import BaseRange, FixedUnits, RegisterClass, RegisterFile
from verilocc_bench.targets import Target


@dataclass(frozen=True, slots=True)
class RegisterPool:
    """The files and classes that functions of a target draw on.

    `fixed` are the physical operands. `constants` are the opcodes that set a
    register of (file, width) to a constant. The opcodes in `widening`,
    `narrowing` and `ending` change the mask, the last two only at the end of a
    block. A varied pool has one of `mixes`, the sets of vector files that its
    classes draw on, a class of one unit in each file of `others`, and a class of
    two units in `pair`. `uniform` are the classes of values that all threads
    share, if a function may do without them.
    """

    files: tuple[RegisterFile, ...]
    classes: tuple[RegisterClass, ...]
    fixed: tuple[FixedUnits, ...]
    reserved: FixedUnits
    constants: dict[tuple[str, int], tuple[str, ...]]
    branch: str
    mixes: tuple[tuple[tuple[str, ...], ...], ...]
    others: tuple[tuple[str, ...], ...]
    pair: tuple[str, ...]
    uniform: tuple[RegisterClass, ...] = ()
    widening: tuple[str, ...] = ()
    narrowing: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()


_AMD = RegisterPool(
    files=(
        RegisterFile("v", 12),
        RegisterFile("a", 4),
        RegisterFile("s", 6),
        RegisterFile("vcc", 2, ("vcc_lo", "vcc_hi")),
    ),
    classes=(
        RegisterClass("V", 1, (BaseRange("v", 0, 11, 1),)),
        RegisterClass("V2", 2, (BaseRange("v", 0, 10, 2),)),
        RegisterClass("V4", 4, (BaseRange("v", 0, 8, 2),)),
        RegisterClass("AV2", 2, (BaseRange("v", 0, 10, 2), BaseRange("a", 0, 2, 2))),
        RegisterClass("S", 1, (BaseRange("s", 0, 5, 1), BaseRange("vcc", 0, 1, 1))),
        RegisterClass("S2", 2, (BaseRange("s", 0, 4, 2), BaseRange("vcc", 0, 0, 2))),
    ),
    fixed=(
        *(FixedUnits("v", n, 1) for n in range(12)),
        *(FixedUnits("s", n, 2) for n in (0, 2, 4) for _ in range(4)),
        *(FixedUnits("vcc", 0, 2) for _ in range(12)),
    ),
    reserved=FixedUnits("s", 5, 1),
    constants={
        ("v", 1): ("V_MOV_B32", "AV_MOV_B32_IMM"),
        ("s", 1): ("S_MOV_B32",),
        ("s", 2): ("S_MOV_B64",),
    },
    branch="S_CBRANCH_EXECZ",
    mixes=(
        (("v",),),
        (("v",), ("a",)),
        (("v",), ("a",)),
        (("v",), ("a",), ("v", "a")),
        (("v",), ("a",), ("v", "a")),
        (("v",), ("v", "a")),
        (("a",), ("v", "a")),
        (("a",),),
        (("v", "a"),),
    ),
    others=(("s", "vcc"), ("s",)),
    pair=("s", "vcc"),
    widening=("S_OR_B64",),
    narrowing=("S_AND_B64", "S_ANDN2_B64", "S_XOR_B64", "S_AND_SAVEEXEC_B64"),
    ending=("S_MOV_B64_term", "S_ANDN2_B64_term", "S_XOR_B64_term"),
)
_NVIDIA = RegisterPool(
    files=(
        RegisterFile("R", 6),
        RegisterFile("UR", 4),
        RegisterFile("P", 4),
        RegisterFile("UP", 2),
    ),
    classes=(
        RegisterClass("R", 1, (BaseRange("R", 0, 5, 1),)),
        RegisterClass("R2", 2, (BaseRange("R", 0, 4, 2),)),
        RegisterClass("P", 1, (BaseRange("P", 0, 3, 1),)),
        RegisterClass("P", 1, (BaseRange("P", 0, 3, 1),)),
        RegisterClass("UP", 1, (BaseRange("UP", 0, 1, 1),)),
    ),
    fixed=tuple(
        FixedUnits(file, n, 1)
        for file, count in (("R", 6), ("UR", 4), ("P", 4), ("UP", 2))
        for n in range(count)
        for _ in range(12 // count)
    ),
    reserved=FixedUnits("UP", 1, 1),
    constants={
        ("R", 1): ("MOV", "IMAD.MOV.U32"),
        ("UR", 1): ("UMOV", "ULDC"),
        ("UR", 2): ("ULDC.64",),
    },
    branch="BRA",
    mixes=((("R",),),),
    others=(("P",), ("P",), ("UR",), ("UP",)),
    pair=("UR",),
    uniform=(
        RegisterClass("UR", 1, (BaseRange("UR", 0, 3, 1),)),
        RegisterClass("UR2", 2, (BaseRange("UR", 0, 2, 2),)),
    ),
)
_POOLS = {"amd": _AMD, "nvidia": _NVIDIA}


def plain_pool(target: Target, *, uniform: bool) -> RegisterPool:
    """The fixed pool of a target; on sm_80 with or without uniform registers."""
    pool = _POOLS[target.vendor]
    return replace(pool, classes=pool.classes + pool.uniform) if uniform else pool


_WIDTHS = (1, 1, 1, 2, 2, 3, 4, 8)


def varied_pool(target: Target, generator: random.Random) -> RegisterPool:
    """A random pool of a target, with its own budgets, classes and fixed registers."""
    plain = _POOLS[target.vendor]
    counts = {
        "v": generator.choice((2, 4, 6, 8, 9, 12, 16, 20)),
        "a": generator.choice((0, 2, 4, 8, 8, 16)),
        "s": generator.randint(2, 8),
        "vcc": 2,
        "R": generator.randint(2, 12),
        "UR": generator.randint(2, 6),
        "P": generator.randint(1, 4),
        "UP": generator.randint(1, 3),
    }
    files = tuple(replace(file, count=counts[file.name]) for file in plain.files)
    budgets = {file.name: file.count for file in files}
    vector = generator.choice(plain.mixes) if len(plain.mixes) > 1 else plain.mixes[0]
    drawn = [(generator.choice(vector), generator.choice(_WIDTHS)) for _ in range(5)]
    drawn += [(files_of, 1) for files_of in plain.others]
    drawn.append((plain.pair, 2))
    classes = [_any_class(target, budgets, *each, generator) for each in drawn]
    beyond = 3 if generator.random() < 0.15 else 0
    fixed = [
        FixedUnits(file.name, generator.randrange(file.count + beyond), 1)
        for file in files
        for _ in range(4)
        if file.count and not file.unit_names
    ]
    fixed += [
        FixedUnits(file.name, 0, file.count) for file in files if file.unit_names for _ in range(2)
    ]
    holder = generator.choice([file for file in files if file.count])
    reserved = FixedUnits(holder.name, generator.randrange(holder.count), 1)
    return replace(
        plain,
        files=files,
        classes=tuple(each for each in classes if each.ranges or generator.random() < 0.05),
        fixed=tuple(fixed),
        reserved=reserved,
    )


def _any_class(
    target: Target,
    budgets: dict[str, int],
    files: tuple[str, ...],
    width: int,
    generator: random.Random,
) -> RegisterClass:
    """A class of these files with all legal bases or, sometimes, fewer."""
    if "P" in files or "UP" in files:
        width = 1
    cut = generator.random() < 0.15
    bases = {}
    for name in files:
        step = target.file(name).usual_step(width)
        room = max(budgets[name] - width, 0)
        last = generator.randint(0, room) if cut else room
        bases[name] = (BaseRange(name, 0, last - last % step, step),)
    return target.make_class(width, bases, budgets)
