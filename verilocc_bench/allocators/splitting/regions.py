"""Regions: the parts of a function where a spill unit could leave its register.

Between two accesses the value of a unit only waits. A *region* is a connected
part of the function in which it waits: the instructions between two accesses,
joined across edges, but cut at the borders of each loop that accesses the unit.
So a value that a loop uses is brought back before the loop and stays in its
register, and a value that it does not use stays away throughout (Braun and Hack,
"Register Spilling and Live-Range Splitting for SSA-Form Programs", CC 2009).

Cost: for each unit the blocks at whose borders it is held, and its accesses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from verilocc_bench.allocators.splitting.loop_nest import OUTSIDE, LoopNest
from verilocc_bench.allocators.splitting.split_flow import LaneMasks
from verilocc_bench.allocators.splitting.split_units import SpillUnit
from verilocc_bench.analysis import iterate_bits
from verilocc_bench.ir import Function


@dataclass(frozen=True, slots=True)
class Part:
    """Instructions `first` to `last` of a block; empty if `last` is less than `first`.

    The part lies between the accesses `entry` and `exit`, numbered as in the unit;
    None is the border of the block.
    """

    block: int
    first: int
    last: int
    entry: int | None
    exit: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the control-flow graph between two regions of a unit."""

    source: int
    target: int
    source_block: int
    target_block: int


@dataclass(slots=True)
class Region:
    """A region of a unit: its parts, and the definitions (accesses) that reach it."""

    parts: list[Part] = field(default_factory=list)
    definitions: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class UnitRegions:
    """All regions of a unit, and the edges between different ones."""

    unit: SpillUnit
    regions: tuple[Region, ...]
    edges: tuple[Edge, ...]


def find_regions(
    function: Function, masks: LaneMasks, loops: LoopNest, units: list[SpillUnit]
) -> list[UnitRegions]:
    """The regions of every unit."""
    at_start: dict[int, list[int]] = {}
    for block, held in enumerate(masks.held):
        for lane in iterate_bits(held[0]):
            at_start.setdefault(lane, []).append(block)
    predecessors: list[list[int]] = [[] for _ in function.blocks]
    for block, each in enumerate(function.blocks):
        for successor in each.successors:
            predecessors[successor].append(block)
    finder = _RegionFinder(function, masks, loops, predecessors)
    offsets = masks.numbering.offsets
    return [
        finder.regions(unit, at_start.get(offsets[unit.register] + unit.lanes[0], []))
        for unit in units
    ]


class _RegionFinder:
    def __init__(
        self,
        function: Function,
        masks: LaneMasks,
        loops: LoopNest,
        predecessors: list[list[int]],
    ) -> None:
        self.function, self.masks, self.loops = function, masks, loops
        self.predecessors = predecessors

    def regions(self, unit: SpillUnit, starts: list[int]) -> UnitRegions:
        """The regions of a unit; it is held at the start of the blocks `starts`."""
        parts = self._parts(unit, starts)
        heads = {p.block: n for n, p in enumerate(parts) if p.entry is None}
        tails = {p.block: n for n, p in enumerate(parts) if p.exit is None}
        flows = [
            (tails[before], head)
            for block, head in heads.items()
            for before in self.predecessors[block]
            if before in tails
        ]
        own = {loop for access in unit.accesses for loop in self.loops.around(access.block)}
        loop_of = [
            next((x for x in self.loops.around(p.block) if x in own), OUTSIDE) for p in parts
        ]
        owner = _merge(len(parts), [(a, b) for a, b in flows if loop_of[a] == loop_of[b]])
        numbers = {root: n for n, root in enumerate(dict.fromkeys(owner))}
        regions = [Region() for _ in numbers]
        for part, root in zip(parts, owner, strict=True):
            regions[numbers[root]].parts.append(part)
        edges = []
        for a, b in flows:
            source, target = numbers[owner[a]], numbers[owner[b]]
            if source != target:
                edges.append(Edge(source, target, parts[a].block, parts[b].block))
        _reach(unit, regions, edges)
        return UnitRegions(unit, tuple(regions), tuple(edges))

    def _parts(self, unit: SpillUnit, starts: list[int]) -> list[Part]:
        lane = self.masks.numbering.offsets[unit.register] + unit.lanes[0]
        by_block: dict[int, list[int]] = {block: [] for block in starts}
        for number, access in enumerate(unit.accesses):
            by_block.setdefault(access.block, []).append(number)
        parts: list[Part] = []
        for block, numbers in sorted(by_block.items()):
            held = self.masks.held[block]
            bounds: list[int | None] = [None, *numbers, None]
            for entry, leave in pairwise(bounds):
                first = 0 if entry is None else unit.accesses[entry].index + 1
                last = len(held) - 2 if leave is None else unit.accesses[leave].index - 1
                if held[first] >> lane & 1:
                    parts.append(Part(block, first, last, entry, leave))
        return parts


def _merge(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    """The representative of each of `count` things, of which the pairs are the same."""
    parent = list(range(count))

    def find(thing: int) -> int:
        while parent[thing] != thing:
            parent[thing] = parent[parent[thing]]
            thing = parent[thing]
        return thing

    for a, b in pairs:
        parent[find(a)] = find(b)
    return [find(thing) for thing in range(count)]


def _reach(unit: SpillUnit, regions: list[Region], edges: list[Edge]) -> None:
    """Fills in the definitions that reach each region."""
    passing: list[tuple[int, int]] = [(e.source, e.target) for e in edges]
    entered: dict[int, list[int]] = {}
    for number, region in enumerate(regions):
        for part in region.parts:
            if part.entry is not None:
                entered.setdefault(part.entry, []).append(number)
    for number, access in enumerate(unit.accesses):
        if access.writes:
            for place in entered.get(number, ()):
                regions[place].definitions.add(number)
    for number, region in enumerate(regions):
        for part in region.parts:
            if part.exit is not None and not unit.accesses[part.exit].certain:
                passing += [(number, after) for after in entered.get(part.exit, ())]
    changed = True
    while changed:
        changed = False
        for source, target in passing:
            if not regions[source].definitions <= regions[target].definitions:
                regions[target].definitions |= regions[source].definitions
                changed = True
