"""The conflicts of virtual registers, with the distances between their bases.

The rule is the verifier's: two lanes cannot share a unit if one is defined at a
point at which the other is live (analysis.liveness, which knows guards and lanes
without a value). Lane i of register a at base x is in unit x + i. So lanes i of a
and j of b share a unit exactly if the base of b less the base of a is i - j, in
units of one file.

Cost: one sort of (definition, live lane) pairs, some hundreds for each definition.
The pairs are expanded in parts, so memory is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis import AllocationProblem, iterate_bits

Integers = NDArray[np.int64]

PART = 1 << 21
"""The number of pairs of a definition and a live lane that are expanded at a time."""


@dataclass(frozen=True, slots=True)
class LiveRanges:
    """The live ranges (lane, first point, last point) and the definitions (lane, point).

    Lanes are numbered as in Liveness. Both lists are sorted.
    """

    live: tuple[Integers, Integers, Integers]
    defined: tuple[Integers, Integers]


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The conflicts of a function.

    `pairs` has sorted rows (a, b, base of b less base of a) with a < b. `fixed` has
    sorted rows (virtual register, unit of the base): the legal bases at which some
    lane collides with a physical register that the function names.
    """

    pairs: Integers
    fixed: Integers


def live_ranges(problem: AllocationProblem) -> LiveRanges:
    """The live ranges of all lanes; adjacent segments are one range."""
    liveness = problem.liveness
    found = np.array(liveness.segments, np.int64).reshape(-1, 4)
    lane, first, last = found[np.lexsort((found[:, 1], found[:, 0])), :3].T
    begins = np.ones(len(lane), np.bool_)
    begins[1:] = (lane[1:] != lane[:-1]) | (first[1:] != last[:-1] + 1)
    ends = np.append(begins[1:], True)[: len(lane)]
    definitions = [
        (lane, point) for lane, mask in enumerate(liveness.defined) for point in iterate_bits(mask)
    ]
    at, point = np.array(definitions, np.int64).reshape(-1, 2).T
    return LiveRanges((lane[begins], first[begins], last[ends]), (at, point))


def find_conflicts(problem: AllocationProblem, ranges: LiveRanges) -> Conflicts:
    """The conflicts of a function. Registers without a common file have none."""
    lanes = _Lanes(problem)
    pairs, fixed = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for left, right in _meetings(problem, ranges):
        # A lane is live where it is defined, so each lane meets itself once.
        virtual = (left < lanes.virtual) & (right < lanes.virtual)
        pairs.append(_distinct(lanes.encoded_pairs(left[virtual], right[virtual])))
        mixed = (left < lanes.virtual) != (right < lanes.virtual)
        fixed.append(_distinct(lanes.encoded_fixed(left[mixed], right[mixed])))
    return Conflicts(
        lanes.decoded_pairs(_distinct(np.concatenate(pairs))),
        lanes.decoded_fixed(_distinct(np.concatenate(fixed))),
    )


def _meetings(
    problem: AllocationProblem, ranges: LiveRanges
) -> Iterator[tuple[Integers, Integers]]:
    """(defined lane, live lane) for every lane that is live at a definition, in parts."""
    lane, first, last = ranges.live
    defined, point = ranges.defined
    lengths = last - first + 1
    # The lanes that are live at each point, point by point.
    where = np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    live = np.repeat(lane, lengths)[np.argsort(where, kind="stable")]
    counts = np.bincount(where, minlength=len(problem.liveness.points))
    starts = np.cumsum(counts) - counts
    sizes = counts[point]
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(defined):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + PART, "right")), begin + 1)
        part = sizes[begin:end]
        offsets = np.arange(part.sum()) - np.repeat(np.cumsum(part) - part, part)
        others = live[np.repeat(starts[point[begin:end]], part) + offsets]
        yield np.repeat(defined[begin:end], part), others
        begin = end


def _distinct(codes: Integers) -> Integers:
    """The sorted distinct codes. A sort is faster here than numpy's hash tables."""
    ordered = np.sort(codes)
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


class _Lanes:
    """The registers, indices and files of lanes, and conflicts as integers for sorting."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        classes = problem.function.virtual_registers
        self.virtual = problem.liveness.virtual_lane_count
        self.count = len(classes)
        widths = np.array([c.width for c in classes], np.int64)
        firsts = np.array(problem.liveness.lane_offsets, np.int64)
        self.register = np.repeat(np.arange(self.count), widths)
        self.place = np.arange(self.virtual) - np.repeat(firsts, widths)
        self.widest = int(widths.max(initial=1))
        numbers = {file.name: number for number, file in enumerate(problem.target.files)}
        masks = {c: sum(1 << numbers[name] for name in c.files) for c in set(classes)}
        self.files = np.array([masks[c] for c in classes], np.int64)
        first_unit = problem.placements.first_unit
        units = [first_unit[file] + index for file, index in problem.liveness.fixed_lanes]
        self.fixed_units = np.array(units, np.int64)

    def encoded_pairs(self, left: Integers, right: Integers) -> Integers:
        a, b = self.register[left], self.register[right]
        kept = (a != b) & (self.files[a] & self.files[b] != 0)
        left, right, a, b = left[kept], right[kept], a[kept], b[kept]
        distance = self.place[left] - self.place[right]
        distance = np.where(a < b, distance, -distance)
        a, b = np.minimum(a, b), np.maximum(a, b)
        codes: Integers = (a * self.count + b) * (2 * self.widest) + distance + self.widest
        return codes

    def decoded_pairs(self, codes: Integers) -> Integers:
        rest, distance = np.divmod(codes, 2 * self.widest)
        a, b = np.divmod(rest, max(self.count, 1))
        return np.stack([a, b, distance - self.widest], axis=1)

    def encoded_fixed(self, left: Integers, right: Integers) -> Integers:
        virtual, fixed = np.minimum(left, right), np.maximum(left, right)
        base = self.fixed_units[fixed - self.virtual] - self.place[virtual]
        units = self.problem.placements.unit_count
        codes: Integers = (self.register[virtual] * units + base)[base >= 0]
        return codes

    def decoded_fixed(self, codes: Integers) -> Integers:
        placements = self.problem.placements
        register, base = np.divmod(codes, placements.unit_count)
        classes = self.problem.function.virtual_registers
        legal = [
            unit in placements.legal[classes[number]]
            for number, unit in zip(register.tolist(), base.tolist(), strict=True)
        ]
        rows: Integers = np.stack([register, base], axis=1)
        return rows[np.array(legal, np.bool_)]
