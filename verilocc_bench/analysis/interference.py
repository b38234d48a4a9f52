"""Interference between virtual registers: which pairs have lanes that collide.

One sweep visits the points in order. Where a lane is defined, its virtual
register interferes with every register that is live there. The cost is linear
in the segments of liveness, plus one bit-set operation for each definition.
"""

from __future__ import annotations

from itertools import pairwise

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.liveness import Liveness


def interference_sets(liveness: Liveness) -> list[int]:
    """For each virtual register the registers that interfere with it, as a bit mask."""
    count = len(liveness.lane_offsets)
    owner = _owners(liveness)
    starts: list[list[int]] = [[] for _ in liveness.points]
    ends: list[list[int]] = [[] for _ in range(len(liveness.points) + 1)]
    for lane, first, last, _ in liveness.segments:
        if owner[lane] >= 0:
            starts[first].append(owner[lane])
            ends[last + 1].append(owner[lane])
    definitions: list[list[int]] = [[] for _ in liveness.points]
    for lane, mask in enumerate(liveness.defined):
        if owner[lane] >= 0:
            for point in iterate_bits(mask):
                definitions[point].append(owner[lane])
    live_lanes = [0] * count
    live = 0
    sets = [0] * count
    for point, defined in enumerate(definitions):
        for register in ends[point]:
            live_lanes[register] -= 1
            if not live_lanes[register]:
                live &= ~(1 << register)
        for register in starts[point]:
            live_lanes[register] += 1
            live |= 1 << register
        for register in set(defined):
            sets[register] |= live
    for register in range(count):
        for other in iterate_bits(sets[register]):
            sets[other] |= 1 << register
    return [mask & ~(1 << register) for register, mask in enumerate(sets)]


def live_spans(liveness: Liveness) -> list[tuple[int, int, int]]:
    """For each virtual register: (first point, last point, lane-points at which it is live).

    The entry of a register that is never live is (0, 0, 0).
    """
    spans: list[tuple[int, int, int]] = []
    bounds = [*liveness.lane_offsets, liveness.virtual_lane_count]
    for first, last in pairwise(bounds):
        masks = liveness.live[first:last]
        union = 0
        for mask in masks:
            union |= mask
        if union:
            start = (union & -union).bit_length() - 1
            spans.append((start, union.bit_length() - 1, sum(m.bit_count() for m in masks)))
        else:
            spans.append((0, 0, 0))
    return spans


def _owners(liveness: Liveness) -> list[int]:
    """The virtual register of each lane; -1 for fixed lanes."""
    owners = [-1] * len(liveness.live)
    bounds = [*liveness.lane_offsets, liveness.virtual_lane_count]
    for register, (first, last) in enumerate(pairwise(bounds)):
        for lane in range(first, last):
            owners[lane] = register
    return owners
