"""Webs: the definitions and uses of physical registers that form one value.

A *site* is one register unit that one instruction defines. Sites that reach a
common use belong together; the classes of this relation are the webs (Muchnick,
"Advanced Compiler Design and Implementation", section 16.3.3). Reaching definitions
are exact over paths and predicate values (analysis.lane_flow): a guarded definition
leaves earlier ones in place exactly where its guard fails. So two values that only
follow each other in a register under guards are two webs, and the webs do not
depend on the compiler's choice of registers.

Webs that one operand names together form a *group*: a tuple of registers with the
offset of each web in it. Only offsets within operands decide the groups. A group has 1,
2 or 4 registers, unless a product of a warp group names it: its accumulator may have up
to 128, from a multiple of 8 on.

A use that no definition reaches is a web. An instruction that names a register by
its number (predicates in a mask) pins its web; the stack pointer R1 is always
pinned.

Cost: a forward dataflow over sites, linear in practice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from verilocc_bench.analysis.conditions import FALSE, TRUE, ConditionalLanes
from verilocc_bench.analysis.effects import Effects, iterate_bits
from verilocc_bench.analysis.lane_flow import LaneFlow
from verilocc_bench.backends.nvidia.flow import has_effect
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.errors import InputError, RejectedKernel

Unit = tuple[str, int]
ReferenceKey = tuple[int, int]
"""(instruction, reference): definitions count from 0, uses follow; GUARD is the guard."""

GUARD = -1
STACK_POINTER: Unit = ("R", 1)
WIDTHS = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class WebGroup:
    """Webs that are allocated together: `width` registers of `file`, compiled at `base`.

    Legal bases are those from `first` on in steps of `step`.
    """

    file: str
    width: int
    base: int
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class ReferencePlace:
    """The place of a reference: the registers of a group from `offset` on."""

    group: int
    offset: int


@dataclass(frozen=True, slots=True)
class WebGroups:
    """The groups, and the place of each reference. Only references in `places` are allocated."""

    groups: tuple[WebGroup, ...]
    places: Mapping[ReferenceKey, ReferencePlace]


def guard_reference(instruction: SassInstruction) -> RegisterReference | None:
    """An instruction's guard as a reference to its predicate."""
    guard = instruction.guard
    return None if guard is None else RegisterReference(guard.file, guard.index, 1, GUARD)


def references(instruction: SassInstruction) -> Iterator[tuple[int, RegisterReference, bool]]:
    """(number, reference, True for a definition) of the guard, the definitions and the uses."""
    guard = guard_reference(instruction)
    if guard is not None:
        yield GUARD, guard, False
    for number, reference in enumerate(instruction.definitions):
        yield number, reference, True
    for number, reference in enumerate(instruction.uses, len(instruction.definitions)):
        yield number, reference, False


def units_of(reference: RegisterReference) -> list[Unit]:
    """The register units of a reference."""
    return [(reference.file, reference.first + offset) for offset in range(reference.count)]


def find_webs(function: SassFunction, blocks: Sequence[SassBlock]) -> WebGroups:
    """The groups of webs of a function's instructions that the entry reaches.

    Raises RejectedKernel if operands tie registers in a way that no tuple of 1, 2 or
    4 aligned registers has, if a guard reads a predicate that nothing has written,
    and if the guards exceed the bounds of the analysis.
    """
    finder = _SiteForest(function, blocks)
    try:
        finder.join_sites()
    except InputError as error:
        raise RejectedKernel("conditions", f"{function.name}: {error.message}") from None
    return _group(function, finder)


class _SiteForest:
    """Sites and their classes by common uses (a union-find forest)."""

    def __init__(self, function: SassFunction, blocks: Sequence[SassBlock]) -> None:
        self.function, self.blocks = function, blocks
        self.units: list[Unit] = []
        self.site: dict[tuple[ReferenceKey, int], int] = {}
        self.sites_of: dict[Unit, int] = defaultdict(int)
        for _, index, instruction in self.instructions():
            for number, reference in enumerate(instruction.definitions):
                for offset, unit in enumerate(units_of(reference)):
                    if unit != STACK_POINTER:
                        self.sites_of[unit] |= 1 << self.new_site(index, number, offset, unit)
        self.definition_count = len(self.units)
        self.pinned: set[int] = set()

    def new_site(self, index: int, number: int, offset: int, unit: Unit) -> int:
        site = len(self.units)
        self.units.append(unit)
        self.site[(index, number), offset] = site
        return site

    def instructions(self) -> Iterator[tuple[int, int, SassInstruction]]:
        """(block, index, instruction) of every instruction that can have an effect."""
        for number, block in enumerate(self.blocks):
            for index in block.instructions:
                instruction = self.function.instructions[index]
                if has_effect(instruction):
                    yield number, index, instruction

    def join_sites(self) -> None:
        predicates = {
            (i.guard.file, i.guard.index) for _, _, i in self.instructions() if i.guard is not None
        }
        variables = {unit: self.definition_count + n for n, unit in enumerate(sorted(predicates))}
        effects: list[list[Effects]] = [[] for _ in self.blocks]
        members: list[list[int]] = [[] for _ in self.blocks]
        for number, index, instruction in self.instructions():
            effects[number].append(self._effects(index, instruction, variables))
            members[number].append(index)
        flow = LaneFlow(
            [block.successors for block in self.blocks],
            effects,
            [self._branch_literal(block, variables) for block in self.blocks],
            0,
            self.definition_count + len(variables),
        )
        self.parent = list(range(self.definition_count))
        for number, indices in enumerate(members):
            reached = flow.reached[number]
            for index, effect in zip(indices, effects[number], strict=True):
                self._join_uses(index, flow, reached, effect)
                reached = flow.reached_after(reached, effect)
        self.pinned = {self.find(site) for site in self.pinned}

    def _effects(
        self, index: int, instruction: SassInstruction, variables: Mapping[Unit, int]
    ) -> Effects:
        defined = ended = 0
        redefined: list[int] = []
        for number, reference in enumerate(instruction.definitions):
            for offset, unit in enumerate(units_of(reference)):
                if unit == STACK_POINTER:
                    continue
                defined |= 1 << self.site[(index, number), offset]
                ended |= self.sites_of[unit]
                if unit in variables:
                    redefined.append(variables[unit])
        guard = instruction.guard
        literal = None
        if guard is not None and not instruction.is_conditional_branch:
            literal = variables[guard.file, guard.index], not guard.negated
        return Effects(defined, 0, ended & ~defined, 0, literal, tuple(redefined))

    def _branch_literal(
        self, block: SassBlock, variables: Mapping[Unit, int]
    ) -> tuple[int, bool] | None:
        if len(block.successors) != 2:
            return None
        last = self.function.instructions[block.instructions[-1]]
        guard = last.guard
        if guard is None or last.is_conditional_branch:
            return None
        return variables[guard.file, guard.index], not guard.negated

    def _join_uses(
        self, index: int, flow: LaneFlow, reached: ConditionalLanes, effect: Effects
    ) -> None:
        """Joins the sites that reach each use of an instruction."""
        instruction = self.function.instructions[index]
        acting = flow.executed(reached, effect)
        for number, reference, is_definition in references(instruction):
            if is_definition:
                if reference.fixed:
                    self.pinned |= {
                        self.site[(index, number), offset]
                        for offset, unit in enumerate(units_of(reference))
                        if unit != STACK_POINTER
                    }
                continue
            lanes = reached if number == GUARD else acting
            everything = lanes.get(TRUE, 0)
            if len(lanes) > (TRUE in lanes):
                for condition, mask in lanes.items():
                    if condition != FALSE:
                        everything |= mask
            if number == GUARD and everything & flow.nowhere:
                (unit,) = units_of(reference)
                if not everything & self.sites_of.get(unit, 0):
                    reason = f"nothing has written the guard {unit[0]}{unit[1]}"
                    raise _rejected(self.function, index, reason, "undefined-predicate")
            for offset, unit in enumerate(units_of(reference)):
                if unit != STACK_POINTER:
                    site = self._join((index, number), offset, unit, everything)
                    if reference.fixed:
                        self.pinned.add(site)

    def _join(self, key: ReferenceKey, offset: int, unit: Unit, reached: int) -> int:
        """The class of a use: of all sites that reach it, or a new one if none does."""
        found = reached & self.sites_of.get(unit, 0)
        if not found:
            site = self.new_site(*key, offset, unit)
            self.parent.append(site)
            return site
        sites = iterate_bits(found)
        first = self.find(next(sites))
        for site in sites:
            self.parent[self.find(site)] = first
        self.site[key, offset] = first
        return first

    def find(self, site: int) -> int:
        """The representative of a site's class."""
        parent = self.parent
        while parent[site] != site:
            parent[site] = parent[parent[site]]
            site = parent[site]
        return site


def _group(function: SassFunction, finder: _SiteForest) -> WebGroups:
    """Ties webs that operands name together, and lays out the groups."""
    leader: dict[int, tuple[int, int]] = {}

    def locate(web: int) -> tuple[int, int]:
        """The leader of a web, and the offset from it."""
        above, offset = leader.get(web, (web, 0))
        if above == web:
            return web, 0
        top, distance = locate(above)
        leader[web] = top, distance + offset
        return leader[web]

    tuples: list[tuple[ReferenceKey, RegisterReference, list[int]]] = []
    for _, index, instruction in finder.instructions():
        for number, reference, _ in references(instruction):
            if STACK_POINTER in units_of(reference):
                if reference.count > 1:
                    raise _rejected(function, index, "a tuple has the stack pointer R1 in it")
                continue
            key = (index, number)
            webs = [finder.find(finder.site[key, offset]) for offset in range(reference.count)]
            tuples.append((key, reference, webs))
            first, first_offset = locate(webs[0])
            for distance, web in enumerate(webs[1:], 1):
                other, other_offset = locate(web)
                shift = first_offset + distance - other_offset
                if other == first and shift:
                    raise _rejected(function, index, "one register stands at two places of tuples")
                if other != first:
                    leader[other] = first, shift
    return _lay_out(function, finder, tuples, locate)


def _rejected(
    function: SassFunction, index: int, reason: str, kind: str = "tuple-groups"
) -> RejectedKernel:
    instruction = function.instructions[index]
    place = f"{function.name} at 0x{instruction.address:x}: {instruction.opcode}"
    return RejectedKernel(kind, f"{place}: {reason}")


def _lay_out(
    function: SassFunction,
    finder: _SiteForest,
    tuples: Sequence[tuple[ReferenceKey, RegisterReference, list[int]]],
    locate: Callable[[int], tuple[int, int]],
) -> WebGroups:
    """Numbers the groups by their first reference, and finds their width and base."""
    extents: dict[int, tuple[int, int]] = {}
    steps: dict[int, int] = {}
    accumulators: set[int] = set()
    for _, reference, webs in tuples:
        top, _ = locate(webs[0])
        steps[top] = max(steps.get(top, 1), reference.step)
        if reference.alignment:
            accumulators.add(top)
        for web in webs:
            top, offset = locate(web)
            low, high = extents.get(top, (offset, offset))
            extents[top] = min(low, offset), max(high, offset)
    numbers: dict[int, int] = {}
    groups: list[WebGroup] = []
    places: dict[ReferenceKey, ReferencePlace] = {}
    for key, reference, webs in tuples:
        top, offset = locate(webs[0])
        low, high = extents[top]
        width = high - low + 1
        base = reference.first - (offset - low)
        if any(web in finder.pinned for web in webs):
            if width > 1:
                raise _rejected(function, key[0], "a tuple has a register that is fixed")
            continue
        if top not in numbers:
            step = steps[top]
            if top not in accumulators and (width not in WIDTHS or base % width):
                tied = f"{reference.file}{base} and {width - 1} more"
                raise _rejected(function, key[0], f"{tied} are tied: no aligned tuple")
            numbers[top] = len(groups)
            groups.append(WebGroup(reference.file, width, base, base % step, step))
        group = groups[numbers[top]]
        assert (group.file, group.base) == (reference.file, base)
        places[key] = ReferencePlace(numbers[top], offset - low)
    return WebGroups(tuple(groups), places)
