"""All functions of a family, each once up to the names of its virtual registers.

A function is a sequence of up to three instructions on one of the layouts: one
block, alone or with an edge to itself, or two non-empty blocks with a back edge.
An instruction has definitions, then uses, each in any order, and in some
families a guard, and destroys the family's mask or not; it has at least one of these.
An operand is one of

- a definition of all lanes of a register; in a family with `partial`
  definitions also of one lane of two, with and without `undef`;
- the same as an early clobber, if the instruction reads something;
- a use of all lanes or of one; of all, marked `undef`;
- the same tied to a definition of as many lanes;
- the family's fixed register, which is one unit, in place of all lanes.

A guard is any predicate, negated or not.

Virtual registers are numbered by their first mention, as in the normalized text,
so functions that differ only in these numbers occur once. All other symmetric
functions are enumerated: other orders of operands, the other of two units, the
other of two lanes.

Cost: an instruction list for each set of mentioned registers, which is kept, and
one tuple for each function.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

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
from verilocc_bench.targets import get_target

OPCODE = "OP"

Kinds = tuple[int, ...]
"""The kind of each virtual register mentioned so far, as an index into the family's kinds."""

Sizes = tuple[int, ...]
"""The number of instructions of each block."""

Edges = tuple[tuple[int, ...], ...]
"""The successors of each block."""

ONE_BLOCK: tuple[Edges, ...] = (((),), ((0,),))
TWO_BLOCKS: tuple[Edges, ...] = (((1,), (0,)), ((1,), (1,)), ((0, 1), ()))
"""A back edge to the entry; a loop behind the entry; a loop at the entry with an exit."""


@dataclass(frozen=True, slots=True)
class RegisterKind:
    """Virtual registers of `width` lanes in `file`, at multiples of `step`; at most `most`."""

    file: str
    width: int = 1
    step: int = 1
    most: int = 1


@dataclass(frozen=True, slots=True)
class EntryState:
    """The units that hold a value at the entry, and those that must not be assigned."""

    live_ins: tuple[FixedUnits, ...] = ()
    reserved: tuple[FixedUnits, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A finite set of functions.

    `budgets` are the units of each file that may be used, 0 for a file that is
    not named. `operands` is the most operands of a function without its guards;
    `definitions` and `uses` are the most of an instruction. The family contains
    only functions with a register of each kind in `needed`, with a guard if it
    has `guards`, with a fixed register if it has `fixed`, and with an instruction that
    destroys the units of `mask` if it has one. A fixed predicate guards; with
    `fixed_operands` it is also defined and used.
    """

    name: str
    target: str
    budgets: tuple[tuple[str, int], ...]
    kinds: tuple[RegisterKind, ...]
    operands: int
    registers: int
    definitions: int = 2
    uses: int = 2
    partial: bool = True
    early_clobbers: bool = True
    ties: bool = True
    undef_uses: bool = True
    guards: bool = False
    fixed: FixedUnits | None = None
    fixed_operands: bool = True
    mask: tuple[FixedUnits, ...] = ()
    needed: tuple[int, ...] = ()
    environments: tuple[EntryState, ...] = (EntryState(),)


@dataclass(frozen=True, slots=True)
class FamilyPart:
    """A part of a family: the functions of one size, layout and first instruction."""

    family: str
    instructions: int
    layout: int
    first: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """An instruction that may come next, the kinds mentioned after it, and its counts."""

    instruction: Instruction
    kinds: Kinds
    operands: int
    guarded: bool
    fixed: bool


class Grammar:
    """The functions of one family."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.target = get_target(family.target)
        self._choices: dict[tuple[Kinds, int], list[_Choice]] = {}

    @cached_property
    def classes(self) -> tuple[RegisterClass, ...]:
        """The class of each kind."""
        budgets = dict(self.family.budgets)
        return tuple(
            self.target.make_class(
                kind.width,
                {kind.file: (BaseRange(kind.file, 0, budgets[kind.file] - kind.width, kind.step),)},
                budgets,
            )
            for kind in self.family.kinds
        )

    @cached_property
    def files(self) -> tuple[RegisterFile, ...]:
        """The files of the target. A file with named units always has all of them."""
        budgets = dict(self.family.budgets)
        return tuple(
            file.with_budget(file.count if file.unit_names else budgets.get(file.name, 0))
            for file in self.target.files
        )

    def chunks(self, instructions: int) -> Iterator[FamilyPart]:
        """The parts with that many instructions, those with few operands first."""
        first = len(self.choices((), self.family.operands))
        for layout in range(len(_layouts(instructions))):
            for number in range(first):
                yield FamilyPart(self.family.name, instructions, layout, number)

    def functions(self, chunk: FamilyPart) -> Iterator[Function]:
        """The functions of a part, in the same order every time."""
        family = self.family
        layout = _layouts(chunk.instructions)[chunk.layout]
        first = self.choices((), family.operands)[chunk.first]
        for sequence in self._sequences((first,), chunk.instructions):
            kinds = sequence[-1].kinds
            blocks = _blocks([choice.instruction for choice in sequence], *layout)
            if blocks is None or not set(family.needed) <= set(kinds):
                continue
            if family.guards and not any(choice.guarded for choice in sequence):
                continue
            if family.fixed is not None and not any(choice.fixed for choice in sequence):
                continue
            if family.mask and not any(choice.instruction.destroys for choice in sequence):
                continue
            for environment in family.environments:
                yield Function(
                    target=self.target.name,
                    files=self.files,
                    reserved=environment.reserved,
                    virtual_registers=tuple(self.classes[kind] for kind in kinds),
                    live_ins=environment.live_ins,
                    blocks=blocks,
                )

    def _sequences(self, begun: tuple[_Choice, ...], length: int) -> Iterator[tuple[_Choice, ...]]:
        if len(begun) == length:
            yield begun
            return
        left = self.family.operands - sum(choice.operands for choice in begun)
        for choice in self.choices(begun[-1].kinds, left):
            yield from self._sequences((*begun, choice), length)

    def choices(self, kinds: Kinds, operands: int) -> list[_Choice]:
        """All instructions of at most `operands` operands that may follow these kinds."""
        key = (kinds, operands)
        if key not in self._choices:
            found = self._instructions(kinds, operands)
            self._choices[key] = sorted(found, key=lambda choice: choice.operands)
        return self._choices[key]

    def _instructions(self, kinds: Kinds, operands: int) -> Iterator[_Choice]:
        family = self.family
        for guard, mentioned in self._guards(kinds):
            counts = itertools.product(range(family.definitions + 1), range(family.uses + 1))
            for definitions, uses in counts:
                if definitions + uses > operands:
                    continue
                reads = uses > 0 or guard is not None
                early = (False, True) if family.early_clobbers and reads else (False,)
                for defined, after in self._operands(mentioned, definitions, (), early):
                    for used, last in self._operands(after, uses, defined, None):
                        locations = [operand.location for operand in defined + used]
                        if guard is not None:
                            locations.append(guard.location)
                        for mask in (family.mask, ()) if family.mask else ((),):
                            if not (locations or mask):
                                continue
                            yield _Choice(
                                Instruction(OPCODE, defined, used, guard, mask),
                                last,
                                definitions + uses,
                                guard is not None,
                                family.fixed in locations,
                            )

    def _guards(self, kinds: Kinds) -> Iterator[tuple[Guard | None, Kinds]]:
        yield None, kinds
        if not self.family.guards:
            return
        predicates: list[tuple[VirtualLanes | FixedUnits, Kinds]] = [
            (VirtualLanes(number, 0, 1), mentioned)
            for number, kind, mentioned in self._registers(kinds)
            if self.family.kinds[kind].file in self.target.guard_files
        ]
        fixed = self.family.fixed
        if fixed is not None and fixed.file in self.target.guard_files:
            predicates.append((fixed, kinds))
        for location, mentioned in predicates:
            yield Guard(location), mentioned
            yield Guard(location, negated=True), mentioned

    def _operands(
        self,
        kinds: Kinds,
        count: int,
        defined: tuple[Operand, ...],
        early: tuple[bool, ...] | None,
    ) -> Iterator[tuple[tuple[Operand, ...], Kinds]]:
        """All lists of `count` definitions; if `early` is None, of uses."""
        if count == 0:
            yield (), kinds
            return
        for operand, mentioned in self._operand(kinds, defined, early):
            for others, last in self._operands(mentioned, count - 1, defined, early):
                yield (operand, *others), last

    def _operand(
        self, kinds: Kinds, defined: tuple[Operand, ...], early: tuple[bool, ...] | None
    ) -> Iterator[tuple[Operand, Kinds]]:
        family = self.family
        if family.fixed is not None and family.fixed_operands:
            yield from ((each, kinds) for each in self._marked(family.fixed, True, defined, early))
        for number, kind, mentioned in self._registers(kinds):
            width = family.kinds[kind].width
            spans = [(0, width)]
            if family.partial and width > 1:
                spans += [(lane, 1) for lane in range(width)]
            for first, count in spans:
                location = VirtualLanes(number, first, count)
                for each in self._marked(location, count == width, defined, early):
                    yield each, mentioned

    def _marked(
        self,
        location: VirtualLanes | FixedUnits,
        whole: bool,
        defined: tuple[Operand, ...],
        early: tuple[bool, ...] | None,
    ) -> Iterator[Operand]:
        """One operand with every combination of marks that it may have."""
        if early is not None:
            for clobbers in early:
                for undef in (False,) if whole else (False, True):
                    yield Operand(location, undef=undef, early_clobber=clobbers)
            return
        ties = [n for n, each in enumerate(defined) if each.location.count == location.count]
        for undef in (False, True) if self.family.undef_uses and whole else (False,):
            yield Operand(location, undef=undef)
            if self.family.ties:
                yield from (Operand(location, undef=undef, tied_to=number) for number in ties)

    def _registers(self, kinds: Kinds) -> Iterator[tuple[int, int, Kinds]]:
        """(number, kind, kinds mentioned then) for every mentioned register and for a new one."""
        for number, kind in enumerate(kinds):
            yield number, kind, kinds
        if len(kinds) < self.family.registers:
            for kind, each in enumerate(self.family.kinds):
                if kinds.count(kind) < each.most:
                    yield len(kinds), kind, (*kinds, kind)


def _layouts(instructions: int) -> list[tuple[Sizes, Edges]]:
    """The ways to arrange that many instructions in blocks."""
    found: list[tuple[Sizes, Edges]] = [((instructions,), edges) for edges in ONE_BLOCK]
    for before in range(1, instructions):
        found += [((before, instructions - before), edges) for edges in TWO_BLOCKS]
    return found


def _blocks(
    instructions: list[Instruction], sizes: Sizes, edges: Edges
) -> tuple[Block, ...] | None:
    """The blocks, or None if a branch defines its own guard, which is not allowed."""
    blocks: list[Block] = []
    start = 0
    for size, successors in zip(sizes, edges, strict=True):
        block = Block(tuple(instructions[start : start + size]), successors)
        guard = block.branch_guard
        if guard is not None and any(
            operand.location == guard.location for operand in block.instructions[-1].definitions
        ):
            return None
        blocks.append(block)
        start += size
    return tuple(blocks)
