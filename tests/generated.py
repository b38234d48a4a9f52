"""Random functions for property tests: loops, irreducible flow, partial and undefined
lanes, early clobbers, tuples, fixed registers."""

from __future__ import annotations

import random

from verilocc_bench.ir import (
    BaseRange,
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    RegisterClass,
    RegisterFile,
    VirtualLanes,
)

CLASSES = (
    RegisterClass("V", 1, (BaseRange("v", 0, 11, 1),)),
    RegisterClass("V2", 2, (BaseRange("v", 0, 10, 2),)),
    RegisterClass("V4", 4, (BaseRange("v", 0, 8, 2),)),
    RegisterClass("AV2", 2, (BaseRange("v", 0, 10, 2), BaseRange("a", 0, 2, 2))),
    RegisterClass("S", 1, (BaseRange("s", 0, 5, 1), BaseRange("vcc", 0, 1, 1))),
    RegisterClass("S2", 2, (BaseRange("s", 0, 4, 2), BaseRange("vcc", 0, 0, 2))),
)
FILES = (
    RegisterFile("v", 12),
    RegisterFile("a", 4),
    RegisterFile("s", 6),
    RegisterFile("vcc", 2, ("vcc_lo", "vcc_hi")),
)


GUARDED_CLASSES = (
    RegisterClass("R", 1, (BaseRange("R", 0, 5, 1),)),
    RegisterClass("R2", 2, (BaseRange("R", 0, 4, 2),)),
    RegisterClass("P", 1, (BaseRange("P", 0, 3, 1),)),
    RegisterClass("P", 1, (BaseRange("P", 0, 3, 1),)),
    RegisterClass("UP", 1, (BaseRange("UP", 0, 1, 1),)),
)
GUARDED_FILES = (
    RegisterFile("R", 6),
    RegisterFile("UR", 4),
    RegisterFile("P", 4),
    RegisterFile("UP", 2),
)


def random_function(
    seed: int, *, registers: int = 10, blocks: int = 6, guarded: bool = False
) -> Function:
    """A function that need not be sensible: uses may be undefined on some or all paths.

    `guarded`: for sm_80, with guards on instructions and branches, else for gfx942.
    """
    generator = random.Random(seed)
    known = GUARDED_CLASSES if guarded else CLASSES
    files = GUARDED_FILES if guarded else FILES
    classes = [generator.choice(known) for _ in range(generator.randint(1, registers))]
    count = generator.randint(1, blocks)
    mentioned: dict[int, int] = {}

    def virtual(register: int) -> VirtualLanes:
        number = mentioned.setdefault(register, len(mentioned))
        width = classes[register].width
        if generator.random() < 0.5:
            return VirtualLanes(number, 0, width)
        first = generator.randrange(width)
        return VirtualLanes(number, first, generator.randint(1, width - first))

    def fixed() -> FixedUnits:
        if guarded:
            file = generator.choice(files)
            return FixedUnits(file.name, generator.randrange(file.count), 1)
        return generator.choice(
            (
                FixedUnits("v", generator.randrange(12), 1),
                FixedUnits("s", 2 * generator.randrange(3), 2),
                FixedUnits("vcc", 0, 2),
            )
        )

    def operand(definition: bool) -> Operand:
        if generator.random() < 0.12:
            return Operand(fixed(), undef=not definition and generator.random() < 0.1)
        location = virtual(generator.randrange(len(classes)))
        partial = location.count < classes_of(location)
        return Operand(
            location,
            undef=generator.random() < (0.4 if definition and partial else 0.08 * (not definition)),
            early_clobber=definition and generator.random() < 0.15,
        )

    def classes_of(location: VirtualLanes) -> int:
        inverse = {number: register for register, number in mentioned.items()}
        return classes[inverse[location.register]].width

    def instruction() -> Instruction:
        under = guard()
        definitions = tuple(operand(True) for _ in range(generator.choice((0, 1, 1, 1, 2))))
        uses = tuple(operand(False) for _ in range(generator.randrange(4)))
        return Instruction("OP", definitions, uses, under)

    def guard() -> Guard | None:
        """Mostly one of few predicates, which need not be defined anywhere."""
        if not guarded or generator.random() < 0.35:
            return None
        predicates = [n for n, c in enumerate(classes) if c.width == 1 and c.name in ("P", "UP")]
        location: FixedUnits | VirtualLanes = FixedUnits("P", 3, 1)
        if predicates and generator.random() < 0.9:
            register = generator.choice(predicates[:3])
            location = VirtualLanes(mentioned.setdefault(register, len(mentioned)), 0, 1)
        return Guard(location, generator.random() < 0.5)

    def block() -> Block:
        instructions = [instruction() for _ in range(generator.randrange(6))]
        last = instructions[-1] if instructions else Instruction("OP")
        if last.guard and any(o.location == last.guard.location for o in last.definitions):
            # A branch cannot depend on what it defines itself.
            instructions.append(Instruction("OP"))
        drawn = (generator.randrange(count) for _ in range(generator.randrange(3)))
        return Block(tuple(instructions), tuple(dict.fromkeys(drawn)))

    made = tuple(block() for _ in range(count))
    by_number = {number: register for register, number in mentioned.items()}
    order = [file.name for file in files]
    live_ins = tuple({fixed() for _ in range(generator.randrange(3))})
    return Function(
        target="sm_80" if guarded else "gfx942",
        files=files,
        reserved=(FixedUnits(files[-1 if guarded else 2].name, 1 if guarded else 5, 1),)
        if generator.random() < 0.3
        else (),
        virtual_registers=tuple(classes[by_number[n]] for n in range(len(by_number))),
        live_ins=tuple(sorted(live_ins, key=lambda u: (order.index(u.file), u.first))),
        blocks=made,
    )
