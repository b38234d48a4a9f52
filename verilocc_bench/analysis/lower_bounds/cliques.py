"""Cliques of a group of files: at each point, lanes of which no two can share a unit.

The lanes that surely hold values at a point form a clique. Another lane that is
live there joins if it cannot share a unit with any member. Two lanes cannot
share a unit if one is defined somewhere while the other is live: the verifier's
own condition.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from operator import xor

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.lower_bounds.records import Clique
from verilocc_bench.analysis.problem import AllocationProblem


def maximal_cliques(problem: AllocationProblem, files: tuple[str, ...]) -> tuple[Clique, ...]:
    """The cliques of the points that no other one contains, in the order of their points.

    Cost: an operation on bit sets for each point with other lanes, and each point where some
    lane that begins there lives; quadratic at worst.
    """
    rows = lanes_apart(problem, files)
    return tuple(_clique(problem, point, mask) for point, mask in _maximal(rows))


def other_pairs(problem: AllocationProblem, files: tuple[str, ...]) -> tuple[Clique, ...]:
    """The pairs of lanes that cannot share a unit and are in no clique of a point together.

    One is defined where the other is live but does not surely hold a value:
    because of guards, or because only some paths define it.
    """
    liveness = problem.liveness
    own = _own_lanes(problem, files)
    together = lanes_apart(problem, files)
    live_at = _live_at(problem, own)
    pairs: dict[int, int] = {}
    for lane, points in enumerate(liveness.defined):
        if not own >> lane & 1:
            continue
        for point in iterate_bits(points):
            # The clique of a point contains every lane that is defined there.
            for other in iterate_bits(live_at[point] & ~together[point]):
                pairs.setdefault(1 << lane | 1 << other, point)
    return tuple(_clique(problem, point, mask) for mask, point in pairs.items())


def _own_lanes(problem: AllocationProblem, files: tuple[str, ...]) -> int:
    """The lanes that may lie in these files, as a bit mask."""
    own = number = 0
    for register_class in problem.function.virtual_registers:
        inside = not set(register_class.files).isdisjoint(files)
        own |= ((1 << register_class.width) - 1 if inside else 0) << number
        number += register_class.width
    for file, _ in problem.liveness.fixed_lanes:
        own |= (file in files) << number
        number += 1
    return own


def _clique(problem: AllocationProblem, point: int, mask: int) -> Clique:
    """The clique of the lanes in a bit mask."""
    liveness = problem.liveness
    lanes: list[tuple[int, int]] = []
    fixed: list[tuple[str, int]] = []
    for number in iterate_bits(mask):
        if number < liveness.virtual_lane_count:
            register = bisect_right(liveness.lane_offsets, number) - 1
            lanes.append((register, number - liveness.lane_offsets[register]))
        else:
            fixed.append(liveness.fixed_lanes[number - liveness.virtual_lane_count])
    return Clique(point, *liveness.points[point], tuple(lanes), tuple(fixed))


def lanes_apart(problem: AllocationProblem, files: tuple[str, ...]) -> list[int]:
    """The clique of each point, as a bit mask of lanes."""
    own = _own_lanes(problem, files)
    rows, live_at = _together(problem, own), _live_at(problem, own)
    if all(live == row for live, row in zip(live_at, rows, strict=True)):
        return rows
    apart = _apart(problem, live_at)
    return [_grown(row, live & ~row, apart) for live, row in zip(live_at, rows, strict=True)]


def _live_at(problem: AllocationProblem, own: int) -> list[int]:
    """For each point the lanes of the mask `own` that are live there."""
    changes = [0] * (len(problem.liveness.points) + 1)
    for lane, first, last, _ in problem.liveness.segments:
        if own >> lane & 1:
            changes[first] ^= 1 << lane
            changes[last + 1] ^= 1 << lane
    return list(accumulate(changes[:-1], xor))


def _apart(problem: AllocationProblem, live_at: list[int]) -> list[int]:
    """For each lane the lanes with which it cannot share a unit, as a bit mask."""
    apart = [0] * len(problem.liveness.live)
    destroyed = [0] * len(apart)
    for lane, points in enumerate(problem.liveness.defined):
        for point in iterate_bits(points):
            if live_at[point] >> lane & 1:
                destroyed[lane] |= live_at[point]
    for lane, mask in enumerate(destroyed):
        apart[lane] |= mask
        for other in iterate_bits(mask):
            apart[other] |= 1 << lane
    return apart


def _grown(clique: int, others: int, apart: list[int]) -> int:
    """A clique with other lanes that fit, added greedily: the one that fits most others first."""
    waiting = [lane for lane in iterate_bits(others) if not clique & ~apart[lane]]
    while waiting:
        mask = sum(1 << lane for lane in waiting)
        chosen = max(waiting, key=lambda lane: ((apart[lane] & mask).bit_count(), -lane))
        clique |= 1 << chosen
        waiting = [lane for lane in waiting if lane != chosen and apart[chosen] >> lane & 1]
    return clique


def _together(problem: AllocationProblem, own: int) -> list[int]:
    """For each point the lanes of the mask `own` that surely hold values there."""
    liveness = problem.liveness
    changes = [0] * (len(liveness.points) + 1)
    for lane, first, last, surely in liveness.segments:
        if surely and own >> lane & 1:
            changes[first] ^= 1 << lane
            changes[last + 1] ^= 1 << lane
    held, rows = 0, []
    for change in changes[:-1]:
        held ^= change
        rows.append(held)
    return rows


def _maximal(rows: list[int]) -> list[tuple[int, int]]:
    """The masks that no other one contains, each with its first point, in the order of these.

    A lane that begins at that point is in few masks. Only these may contain the mask.
    """
    first: dict[int, int] = {}
    for point, mask in enumerate(rows):
        first.setdefault(mask, point)
    spans = _spans(rows)
    kept: dict[int, int] = {}
    for mask, point in sorted(first.items(), key=lambda item: (-item[0].bit_count(), item[1])):
        begun = mask & ~rows[point - 1] if point else mask
        if not begun:
            continue  # the point before has all these lanes, and more
        rare = min(
            (spans[lane] for lane in iterate_bits(begun)),
            key=lambda stretches: sum(end - start for start, end in stretches),
        )
        places = (place for start, end in rare for place in range(start, end))
        if not any(place in kept and mask & ~kept[place] == 0 for place in places):
            kept[point] = mask
    return sorted(kept.items())


def _spans(rows: list[int]) -> dict[int, list[tuple[int, int]]]:
    """For each lane the stretches of points whose masks have it: first, and one after the last."""
    spans: dict[int, list[tuple[int, int]]] = {}
    begun: dict[int, int] = {}
    before = 0
    for point, mask in enumerate([*rows, 0]):
        for lane in iterate_bits(mask ^ before):
            if lane in begun:
                spans.setdefault(lane, []).append((begun.pop(lane), point))
            else:
                begun[lane] = point
        before = mask
    return spans
