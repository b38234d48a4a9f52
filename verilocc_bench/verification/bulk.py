"""The arrays of the fast check: the units, ties and collisions of a whole answer at once.

Every virtual register has a *row*: its place in the array of base units, where
registers are sorted by class. One more row, with base 0, serves fixed lanes and
fixed operands, which have units of their own.

A lane holds its unit over *segments* of consecutive points. A segment in its
unit is one integer: the unit times the number of points plus the first point,
with the length in the low bits. Sorted, the segments of a unit are adjacent, in
the order of their first points. So no two lanes share a unit at a point exactly
when every segment ends before the next one begins.

If some do share a point, the exact condition decides: at no definition may a
second segment hold the unit. The number of segments that hold it is the number
that begin up to that point less the number that end before it. Two searches in
sorted arrays give these numbers for all units at once.

Cost: n log n in the number of segments, and in the number of definitions for
the exact condition, in about ten array operations; one dictionary look-up for
each virtual register and one for each name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.analysis.ties import Tie
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, Operand, RegisterClass

Units = NDArray[np.int64]
"""The base unit of each row."""

POINTS_LIMIT = 1 << 25
"""A segment fits 63 bits with this many points and 4,096 units; no function has as many."""


class BulkCheck:
    """Judges any number of answers for one problem, without findings."""

    def __init__(self, problem: AllocationProblem, ties: Sequence[Tie]) -> None:
        self.problem = problem
        classes = problem.function.virtual_registers
        members: dict[RegisterClass, list[int]] = {}
        for number, register_class in enumerate(classes):
            members.setdefault(register_class, []).append(number)
        order = [number for numbers in members.values() for number in numbers]
        self._names = [
            (problem.placements.by_name[register_class], [f"%{number}" for number in numbers])
            for register_class, numbers in members.items()
        ]
        self._row_of = np.empty(len(order), np.int64)
        self._row_of[order] = np.arange(len(order))
        self._fixed_row = len(order)
        self._last_lanes = np.array([classes[number].width - 1 for number in order], np.int64)
        self._place_lanes()
        self._place_segments()
        sides = [self._side(tie.definition) + self._side(tie.use) for tie in ties]
        self._ties = np.array(sides, np.int64).reshape(-1, 4).T
        self._fixed_touched = np.zeros(problem.placements.unit_count, np.uint8)
        liveness = problem.liveness
        named = slice(liveness.virtual_lane_count, liveness.destroyed_from)
        self._fixed_touched[self._offsets[named]] = 1

    def _place_lanes(self) -> None:
        """Computes the row of each lane and the distance of its unit from the base."""
        problem = self.problem
        widths = np.array([c.width for c in problem.function.virtual_registers], np.int64)
        firsts = np.array(problem.liveness.lane_offsets, np.int64)
        virtual = np.arange(problem.liveness.virtual_lane_count) - np.repeat(firsts, widths)
        first_unit = problem.placements.first_unit
        fixed = [first_unit[file] + index for file, index in problem.liveness.fixed_lanes]
        self._offsets = np.concatenate([virtual, np.array(fixed, np.int64)])
        self._rows = np.append(
            np.repeat(self._row_of, widths), np.full(len(fixed), self._fixed_row, np.int64)
        )

    def _place_segments(self) -> None:
        """Computes the segments as integers, less the base unit; joins adjacent ones of a lane."""
        liveness = self.problem.liveness
        self._points = len(liveness.points)
        if self._points >= POINTS_LIMIT:
            raise InputError(f"the function has {self._points:,} points: expected less than 2**25")
        self._length_bits = self._points.bit_length()
        numbers = chain.from_iterable(liveness.segments)
        found = np.fromiter(numbers, np.int64, 4 * len(liveness.segments)).reshape(-1, 4)
        lane, first, last = found[np.lexsort((found[:, 1], found[:, 0])), :3].T
        begins = np.ones(len(lane), np.bool_)
        begins[1:] = (lane[1:] != lane[:-1]) | (first[1:] != last[:-1] + 1)
        ends = np.append(begins[1:], True)[: len(lane)]
        lane, first, last = lane[begins], first[begins], last[ends]
        self._segment_rows = self._rows[lane]
        starts = self._offsets[lane] * self._points + first
        self._segments = (starts << self._length_bits) | (last - first)

    def _side(self, operand: Operand) -> tuple[int, int]:
        """The row of an operand, and the distance of its first unit from the base."""
        location = operand.location
        if isinstance(location, FixedUnits):
            first_unit = self.problem.placements.first_unit[location.file]
            return self._fixed_row, first_unit + location.first
        return int(self._row_of[location.register]), location.first

    @cached_property
    def _definitions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of all definitions, and their units and points as integers, less the base."""
        found = [
            (lane, point)
            for point, lanes in enumerate(self.problem.liveness.written)
            for lane in iterate_bits(lanes)
        ]
        lane, point = np.array(found, np.int64).reshape(-1, 2).T
        return self._rows[lane], self._offsets[lane] * self._points + point

    def units(self, answer: Mapping[str, str]) -> Units | None:
        """The base units of an answer; None if a register has none, or one that is not legal."""
        units: list[int] = []
        try:
            for legal, names in self._names:
                units += map(legal.__getitem__, map(answer.__getitem__, names))
        except KeyError:
            return None
        units.append(0)
        return np.array(units, np.int64)

    def is_valid(self, units: Units) -> bool:
        """True if tied operands are in one register and no lane destroys another."""
        left, left_offset, right, right_offset = self._ties
        if len(left) and (units[left] + left_offset != units[right] + right_offset).any():
            return False
        starts = units.take(self._segment_rows)
        starts *= self._points << self._length_bits
        starts += self._segments
        starts.sort()
        # The low bits are lengths; without them `starts` and `ends` are units times points.
        ends = starts & ((1 << self._length_bits) - 1)
        starts >>= self._length_bits
        ends += starts
        if not (starts[1:] <= ends[:-1]).any():
            return True
        ends.sort()  # only now: above, a segment's end stood beside its start
        rows, places = self._definitions
        places = units.take(rows) * self._points + places
        held = starts.searchsorted(places, "right") - ends.searchsorted(places, "left")
        return bool((held == 1).all())  # the defined lane alone

    def touched(self, units: Units) -> bytes:
        """Marks the units that the function names, and the last unit of every assigned register."""
        touched = self._fixed_touched.copy()
        touched[units[:-1] + self._last_lanes] = 1
        return touched.tobytes()
