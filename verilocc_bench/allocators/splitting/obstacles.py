"""The obstacles of a register without a place: the regions to put away for it.

At every base that the register could have, the registers placed there are in its
way. Each must be away wherever both are live, which is possible if its regions
cover these places. The obstacles are the regions at the cheapest base, and the
next plan must put them away.

Cost: the exclusions of the register, and one pass over the points at which it
and the registers in its way are live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.placement_model import PlacementModel
from verilocc_bench.allocators.splitting.candidates import Candidates, RegionKey, SplitPlan
from verilocc_bench.allocators.splitting.rewrite import Rewritten
from verilocc_bench.analysis import iterate_bits

STAYING = 2
"""The price of a lane that stays in the way at one position."""


class Obstacles:
    """Finds obstacles in one rewritten function and a partial placement of it."""

    def __init__(
        self,
        candidates: Candidates,
        plan: SplitPlan,
        rewritten: Rewritten,
        model: PlacementModel,
        bases: NDArray[np.int64],
    ) -> None:
        self.candidates, self.plan, self.rewritten = candidates, plan, rewritten
        self.model, self.bases = model, bases
        self.stored = {unit for unit, _ in plan.stored_after}
        self.regions: dict[int, list[RegionKey]] = {}
        for key, web in rewritten.webs.during.items():
            if key in candidates.covers:
                self.regions.setdefault(web.name, []).append(key)
        self.first_lane = {
            web.name: web.first
            for webs in (rewritten.webs.at, rewritten.webs.during)
            for web in webs.values()
        }
        self._positions: dict[tuple[int, int], int] = {}

    def to_clear(self, node: int) -> tuple[int, set[RegionKey]] | None:
        """The cheapest regions to put away for a node, with their price; None if none helps."""
        best: tuple[int, int, set[RegionKey]] | None = None
        for base, others in sorted(self._in_the_way(node).items()):
            found, left = self._clearing(node, base, others)
            if found:
                price = left + sum(self.candidates.price(key, self.stored) for key in found)
                if best is None or price < best[0]:
                    best = price, base, found
        registers = () if best is not None else self.model.nodes[node].members
        for register, _ in registers:
            for key in self.regions.get(register, ()):
                price = STAYING + self.candidates.price(key, self.stored)
                if best is None or price < best[0]:
                    best = price, -1, {key}
        return None if best is None else (best[0], best[2])

    def _in_the_way(self, node: int) -> Mapping[int, Sequence[int]]:
        """For each base of a node, the nodes that block it."""
        model = self.model
        found: dict[int, list[int]] = {int(b): [] for b in np.flatnonzero(model.domain[node])}
        for k in range(int(model.start[node]), int(model.start[node + 1])):
            other = int(model.other[k])
            if self.bases[other] >= 0:
                base = int(self.bases[other] + model.distance[k])
                if base in found and other not in found[base]:
                    found[base].append(other)
        return found

    def _clearing(self, node: int, base: int, others: Sequence[int]) -> tuple[set[RegionKey], int]:
        """The regions in the way at a base, and the price of the lanes that must stay.

        A lane must stay where it is accessed while the node is live. Once all
        around it is put away, it is short and finds another place more easily.
        """
        chosen: set[RegionKey] = set()
        price = 0
        own = self._lanes(node, base)
        for other in others:
            for unit, (register, lane) in self._lanes(other, int(self.bases[other])).items():
                if unit not in own:
                    continue
                common = self.positions(*own[unit]) & self.positions(register, lane)
                for key in self.regions.get(register, ()):
                    lanes = self.candidates.units[key[0]].unit.lanes
                    if common and lane + self.first_lane[register] in lanes:
                        cover = self.candidates.mask(key)
                        if common & cover:
                            chosen.add(key)
                            common &= ~cover
                price += STAYING * common.bit_count()
        return chosen, price

    def _lanes(self, node: int, base: int) -> dict[int, tuple[int, int]]:
        """(register, lane) by the unit that it takes if the node is at a base."""
        classes = self.rewritten.function.virtual_registers
        return {
            base + offset + lane: (register, lane)
            for register, offset in self.model.nodes[node].members
            for lane in range(classes[register].width)
        }

    def positions(self, register: int, lane: int) -> int:
        """The positions of the original function at which a lane is live, as a bit mask."""
        key = register, lane
        if key not in self._positions:
            self._positions[key] = self._find_positions(register, lane)
        return self._positions[key]

    def _find_positions(self, register: int, lane: int) -> int:
        liveness = self.model.problem.liveness
        number = liveness.lane_offsets[register] + lane
        mask = 0
        for point in iterate_bits(liveness.live[number]):
            block, index = liveness.points[point]
            if index >= 0:
                home, position = self.rewritten.origin[block][index]
                mask |= self.candidates.position_bit(home, position)
        # A lane stays in its register between two adjacent live positions.
        return mask | (mask << 1 & mask >> 1) | self._before_uses(register, lane, mask)

    def _before_uses(self, register: int, lane: int, mask: int) -> int:
        """The positions before the instructions that read the lane."""
        found = 0
        original = lane + self.first_lane.get(register, 0)
        for number in self.rewritten.units_of.get(register, ()):
            unit = self.candidates.units[number].unit
            if original not in unit.lanes:
                continue
            for access in unit.accesses:
                web = self.rewritten.webs.at[unit.register, access.block, access.index]
                bit = self.candidates.position_bit(access.block, 2 * access.index)
                if web.name == register and access.index and mask & bit >> 1:
                    found |= bit
        return found
