"""The regions that can be put away, the positions that this frees, and its cost.

The analysis is linear in the regions and their parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from verilocc_bench.allocators.splitting.regions import Region, UnitRegions
from verilocc_bench.allocators.splitting.sites import Sites

RegionKey = tuple[int, int]
"""(unit, region of the unit)."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The regions to put away, and the places to store their units.

    `away` are the regions whose units are elsewhere. The regions in
    `stored_at_entry` are stored at their entry. `stored_after` are the (unit,
    access) of definitions after which the unit is stored. `cost` is the number of
    moved lanes, weighted by loop depth. `missing` counts the excess lanes that no
    plan can put away. `is_optimal` is True if no plan is cheaper.
    """

    away: frozenset[RegionKey]
    stored_at_entry: frozenset[RegionKey]
    stored_after: frozenset[tuple[int, int]]
    cost: int
    missing: int
    is_optimal: bool


@dataclass(frozen=True, slots=True)
class UnitTraits:
    """The traits of a unit that matter for a plan.

    `group` is the number of its group of files. The others are True if its value
    is a constant that can be made again, if moves in its file depend on EXEC, and
    if it can be put away at all.
    """

    group: int
    is_constant: bool
    is_masked: bool
    is_spillable: bool


@dataclass(frozen=True, slots=True)
class Cover:
    """Positions `first` to `last` of a block that a region frees when it is put away.

    If `soft`, the first is free only if the region is not stored at its entry.
    """

    block: int
    first: int
    last: int
    soft: bool


class Candidates:
    """The regions of all units of one function.

    `covers[unit, region]` has the positions that each region frees, for regions
    that can be put away.
    """

    def __init__(
        self, units: Sequence[UnitRegions], sites: Sites, traits: Sequence[UnitTraits]
    ) -> None:
        self.units, self.sites, self.traits = units, sites, traits
        self.covers: dict[RegionKey, list[Cover]] = {
            (unit, place): _covers(each, region)
            for unit, each in enumerate(units)
            if traits[unit].is_spillable
            for place, region in enumerate(each.regions)
            if self._can_leave(unit, place)
        }
        self.offsets: list[int] = []
        total = 0
        for block in sites.function.blocks:
            self.offsets.append(total)
            total += 2 * len(block.instructions) + 1

    def _can_leave(self, unit: int, place: int) -> bool:
        """True if a region's unit can be brought back at every access and edge that ends it."""
        each, masked = self.units[unit], self.traits[unit].is_masked
        ends = [each.unit.accesses[p.exit] for p in each.regions[place].parts if p.exit is not None]
        return all(self.sites.before(a.block, a.index, masked=masked) for a in ends) and all(
            self.sites.on_edge(edge.source_block, masked=masked)
            for edge in each.edges
            if place in (edge.source, edge.target)
        )

    def can_store_after(self, unit: int, access: int) -> bool:
        """True if a store can stand right after an access."""
        place = self.units[unit].unit.accesses[access]
        masked = self.traits[unit].is_masked
        return self.sites.before(place.block, place.index + 1, masked=masked)

    def lane_count(self, key: RegionKey) -> int:
        """The lanes of a region's unit."""
        return len(self.units[key[0]].unit.lanes)

    def position_bit(self, block: int, position: int) -> int:
        """The bit of a position in masks of positions."""
        return 1 << self.offsets[block] + position

    def mask(self, key: RegionKey) -> int:
        """The positions at which a region surely takes no register when it is put away."""
        mask = 0
        for cover in self.covers[key]:
            first, count = cover.first + cover.soft, cover.last - cover.first - cover.soft + 1
            mask |= ((1 << count) - 1) << self.offsets[cover.block] + first
        return mask

    def price(self, key: RegionKey, stored: Collection[int]) -> int:
        """The approximate cost of putting one more region away, with some units `stored`."""
        each = self.units[key[0]]
        region = each.regions[key[1]]
        weight = self.sites.weight
        price = sum(weight(part.block) for part in region.parts if part.exit is not None)
        for edge in each.edges:
            if edge.source == key[1]:
                price += self.sites.edge_weight(edge.source_block, edge.target_block)
        if key[0] not in stored and not self.traits[key[0]].is_constant:
            at_definitions = sum(weight(each.unit.accesses[d].block) for d in region.definitions)
            entries = sum(weight(part.block) for part in region.parts if part.entry is not None)
            for edge in each.edges:
                if edge.target == key[1]:
                    entries += self.sites.edge_weight(edge.source_block, edge.target_block)
            price += min(at_definitions, entries)
        return price * len(each.unit.lanes)

    def covered(
        self, plan: SplitPlan, covers: Iterable[tuple[Cover, RegionKey]], count: int
    ) -> list[int]:
        """The number of lanes that a plan puts away at each of `count` positions of a block."""
        change = [0] * (count + 2)
        for cover, key in covers:
            if key in plan.away:
                lanes = self.lane_count(key)
                change[cover.first + (cover.soft and key in plan.stored_at_entry)] += lanes
                change[cover.last + 1] -= lanes
        return list(accumulate(change))[:count]

    def usage(
        self, plan: SplitPlan, group: int, counts: Sequence[Sequence[int]]
    ) -> list[list[int]]:
        """The lanes of a group that a plan leaves at each position of each block."""
        by_block: dict[int, list[tuple[Cover, RegionKey]]] = {}
        for key in plan.away:
            if self.traits[key[0]].group == group:
                for cover in self.covers[key]:
                    by_block.setdefault(cover.block, []).append((cover, key))
        return [
            [
                lanes - less
                for lanes, less in zip(
                    row, self.covered(plan, by_block.get(block, ()), len(row)), strict=True
                )
            ]
            for block, row in enumerate(counts)
        ]


def _covers(each: UnitRegions, region: Region) -> list[Cover]:
    covers = []
    for part in region.parts:
        first, last = 2 * part.first, 2 * part.last + 1
        soft = part.entry is not None and not each.unit.accesses[part.entry].writes
        if soft:
            first -= 1
        if first <= last:
            covers.append(Cover(part.block, first, last, soft))
    return covers
