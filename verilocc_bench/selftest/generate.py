"""Random functions: loops, irreducible flow, partial and undefined lanes, early clobbers,
overlapping tuples, fixed registers, guards; for a named target ties, constants and
instructions that change the execution mask as well.

Functions need not be sensible: uses may be undefined on some or all paths, and
blocks may be unreachable. Budgets are small, so registers are scarce and answers
collide. The cost is linear in the size of the function.
"""

from __future__ import annotations

import random
from dataclasses import replace

from verilocc_bench.ir import (
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
)
from verilocc_bench.selftest.calls import with_calls
from verilocc_bench.selftest.register_pools import RegisterPool, plain_pool, varied_pool
from verilocc_bench.selftest.renumber import renumber
from verilocc_bench.targets import TARGETS, Target


def random_function(
    seed: int,
    *,
    registers: int = 10,
    blocks: int = 6,
    guarded: bool = False,
    target: str | None = None,
    varied: bool = False,
    calls: bool = False,
) -> Function:
    """A random function with at most that many virtual registers and blocks.

    Without `target`, a `guarded` function is of sm_80, with guards on
    instructions and branches, and any other of gfx942; it has no features that
    only its target has. With `varied` and a target, the function has register
    files and classes of its own. With `calls`, it is the same function, but some of
    its instructions destroy registers.
    """
    known = TARGETS[target or ("sm_80" if guarded else "gfx942")]
    generator = random.Random(seed)  # noqa: S311
    if varied:
        pool = varied_pool(known, generator)
    else:
        pool = plain_pool(known, uniform=target is not None)
    maker = _Maker(generator, known, pool, special=target is not None)
    function = maker.function(registers, blocks)
    return with_calls(function, known, generator) if calls else function


class _Maker:
    """Makes one function."""

    def __init__(
        self, generator: random.Random, target: Target, pool: RegisterPool, *, special: bool
    ) -> None:
        self.generator, self.target, self.pool = generator, target, pool
        self.special = special
        self.guarded = bool(target.guard_files)
        self.classes: list[RegisterClass] = []
        self.block_count = 0
        self.numbers: dict[int, int] = {}

    def function(self, registers: int, blocks: int) -> Function:
        drawn = self.generator.randint(1, registers)
        self.classes = [self.generator.choice(self.pool.classes) for _ in range(drawn)]
        self.block_count = self.generator.randint(1, blocks)
        made = tuple(self.block() for _ in range(self.block_count))
        order = [file.name for file in self.pool.files]
        live_ins = {self.fixed() for _ in range(self.generator.randrange(3))}
        reserved = (self.pool.reserved,) if self.generator.random() < 0.3 else ()
        function = Function(
            target=self.target.name,
            files=self.pool.files,
            reserved=reserved,
            virtual_registers=tuple(self.classes[register] for register in self.numbers),
            live_ins=tuple(sorted(live_ins, key=lambda u: (order.index(u.file), u.first))),
            blocks=made,
        )
        # The insertions may have mentioned registers out of order.
        return renumber(function)[0]

    def chance(self, probability: float) -> bool:
        return self.generator.random() < probability

    def fixed(self) -> FixedUnits:
        return self.generator.choice(self.pool.fixed)

    def number(self, register: int) -> int:
        return self.numbers.setdefault(register, len(self.numbers))

    def lanes(self, register: int) -> VirtualLanes:
        """All lanes of a register, or some of them."""
        number, width = self.number(register), self.classes[register].width
        if self.chance(0.5):
            return VirtualLanes(number, 0, width)
        first = self.generator.randrange(width)
        return VirtualLanes(number, first, self.generator.randint(1, width - first))

    def register(self, definition: bool) -> int:
        """A random register; the uses of a named target are mostly registers mentioned before."""
        if self.special and not definition and self.numbers and self.chance(0.8):
            return self.generator.choice(list(self.numbers))
        return self.generator.randrange(len(self.classes))

    def operand(self, definition: bool) -> Operand:
        if self.chance(0.12):
            return Operand(self.fixed(), undef=not definition and self.chance(0.1))
        register = self.register(definition)
        location = self.lanes(register)
        partial = location.count < self.classes[register].width
        undef = 0.4 if definition and partial else 0.08 * (not definition)
        return Operand(
            location,
            undef=self.chance(undef),
            early_clobber=definition and self.chance(0.15),
        )

    def instruction(self) -> Instruction:
        guard = self.guard()
        if self.special and self.chance(0.2) and (constant := self.constant(guard)):
            return constant
        definitions = tuple(
            self.operand(True) for _ in range(self.generator.choice((0, 1, 1, 1, 2)))
        )
        uses = [self.operand(False) for _ in range(self.generator.randrange(4))]
        if self.special and definitions and self.chance(0.15):
            self.tie(definitions, uses)
        return Instruction("OP", definitions, tuple(uses), guard)

    def constant(self, guard: Guard | None) -> Instruction | None:
        """A constant; mostly without a guard, so that edits can make it again."""
        register = self.generator.randrange(len(self.classes))
        each = self.classes[register]
        opcodes = self.pool.constants.get((next(iter(each.files), ""), each.width))
        if opcodes is None or (guard is not None and self.chance(0.7)):
            return None
        location = VirtualLanes(self.number(register), 0, each.width)
        return Instruction(self.generator.choice(opcodes), (Operand(location),), (), guard)

    def tie(self, definitions: tuple[Operand, ...], uses: list[Operand]) -> None:
        """Ties a use to a definition, mostly of the same register."""
        definition = self.generator.randrange(len(definitions))
        location = definitions[definition].location
        if isinstance(location, VirtualLanes) and self.chance(0.4):
            mentioned = list(self.numbers)
            mine = self.classes[mentioned[location.register]]
            same = [n for n, r in enumerate(mentioned) if self.classes[r] == mine]
            others = [n for n in same if n != location.register] or same
            location = replace(location, register=self.generator.choice(others))
        tied = Operand(location, undef=self.chance(0.1), tied_to=definition)
        uses.insert(self.generator.randint(0, len(uses)), tied)

    def guard(self) -> Guard | None:
        """A random guard, mostly one of few predicates, which need not be defined."""
        if not self.guarded or self.chance(0.35):
            return None
        guards = self.target.guard_files
        predicates = [
            r for r, c in enumerate(self.classes) if c.files and guards.issuperset(c.files)
        ]
        location: FixedUnits | VirtualLanes = FixedUnits("P", 3, 1)
        if predicates and self.chance(0.9):
            location = VirtualLanes(self.number(self.generator.choice(predicates[:3])), 0, 1)
        return Guard(location, self.chance(0.5))

    def block(self) -> Block:
        length = self.generator.randrange(9 if self.special else 6)
        instructions = [self.instruction() for _ in range(length)]
        count = self.generator.choice((0, 1, 1, 2, 2)) if self.special else None
        if count is None:
            count = self.generator.randrange(3)
        drawn = (self.generator.randrange(self.block_count) for _ in range(count))
        successors = tuple(dict.fromkeys(drawn))
        if self.special:
            self.change_mask(instructions, len(successors) == 2)
            if successors and self.chance(0.4):
                instructions.append(Instruction(self.pool.branch, guard=self.guard()))
        last = instructions[-1] if instructions else Instruction("OP")
        if last.guard and any(o.location == last.guard.location for o in last.definitions):
            # A branch must not define its own guard.
            instructions.append(Instruction("OP"))
        return Block(tuple(instructions), successors)

    def change_mask(self, instructions: list[Instruction], splits: bool) -> None:
        """Widens the mask early in a block; narrows it late in a block where paths part."""
        if not self.pool.widening:
            return
        if self.chance(0.4):
            at = self.generator.randint(0, min(1, len(instructions)))
            instructions.insert(at, self.mask_change(self.pool.widening))
        if self.chance(0.5 if splits else 0.05):
            at = self.generator.randint(max(0, len(instructions) - 1), len(instructions))
            instructions.insert(at, self.mask_change(self.pool.narrowing))
        elif splits and self.chance(0.3):
            instructions.append(self.mask_change(self.pool.ending))

    def mask_change(self, opcodes: tuple[str, ...]) -> Instruction:
        pairs = [r for r, c in enumerate(self.classes) if c.width == 2 and "s" in c.files]
        uses: tuple[Operand, ...] = ()
        if pairs and self.chance(0.5):
            number = self.number(self.generator.choice(pairs))
            uses = (Operand(VirtualLanes(number, 0, 2)),)
        return Instruction(self.generator.choice(opcodes), (), uses)
