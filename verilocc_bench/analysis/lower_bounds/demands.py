"""How many lanes of each kind hold values together at each point.

A *kind* is a class with one of its lanes, or a physical unit that the function
names or destroys. All lanes of a kind may lie in the same units. At each point the lanes of
its clique count, of which no two can share a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.lower_bounds.cliques import lanes_apart
from verilocc_bench.analysis.lower_bounds.records import Clique, Shape
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.ir import RegisterClass

Kind = tuple[RegisterClass, int] | tuple[str, int]
"""(class, lane), or (file, unit) of a fixed lane."""


@dataclass(frozen=True)
class Demands:
    """The lanes of some files.

    `rows[p]` is the clique of point p, as a bit mask of lanes. `counts[k, p]` is
    the number of lanes of `kinds[k]` in it.
    """

    problem: AllocationProblem
    files: tuple[str, ...]
    kinds: tuple[Kind, ...]
    counts: NDArray[np.int64]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, problem: AllocationProblem, files: tuple[str, ...]) -> Demands:
        """The demands of a problem's files. Linear in segments and in kinds times points."""
        kinds: list[Kind] = []
        for register_class in problem.function.virtual_registers:
            kinds += [(register_class, lane) for lane in range(register_class.width)]
        kinds += problem.liveness.fixed_lanes
        numbers: dict[Kind, int] = {}
        kind_of_lane = [numbers.setdefault(k, len(numbers)) for k in kinds]
        points = len(problem.liveness.points)
        changes = np.zeros((len(numbers), points + 1), np.int64)
        rows = lanes_apart(problem, files)
        for point, (before, row) in enumerate(pairwise([0, *rows])):
            for lane in iterate_bits(before ^ row):
                changes[kind_of_lane[lane], point] += 1 if row >> lane & 1 else -1
        counts = changes.cumsum(axis=1)[:, :-1]
        own = [n for k, n in numbers.items() if _is_in(k, files)]
        kinds_in_order = tuple(numbers)
        return cls(problem, files, tuple(kinds_in_order[n] for n in own), counts[own], tuple(rows))

    @cached_property
    def hottest(self) -> NDArray[np.int64]:
        """The points whose counts no other point reaches in every kind, most lanes first.

        The first of several points with equal counts stands for all of them.
        """
        columns, first = np.unique(self.counts.T, axis=0, return_index=True)
        order = np.argsort(-columns.sum(axis=1), kind="stable")
        kept: list[int] = []
        rows = np.zeros((len(columns), columns.shape[1]), columns.dtype)
        for number in order:
            column = columns[number]
            if not (rows[: len(kept)] >= column).all(axis=1).any():
                rows[len(kept)] = column
                kept.append(int(first[number]))
        return np.array(kept, np.int64)

    def clique(self, point: int, kinds: frozenset[int] | None = None) -> Clique:
        """The clique of a point; with `kinds`, only its lanes of these kinds."""
        liveness = self.problem.liveness
        chosen = set(self.kinds) if kinds is None else {self.kinds[k] for k in kinds}
        alive = set(iterate_bits(self.rows[point]))
        lanes: list[tuple[int, int]] = []
        fixed: list[tuple[str, int]] = []
        lane = 0
        for register, register_class in enumerate(self.problem.function.virtual_registers):
            for index in range(register_class.width):
                if lane in alive and (register_class, index) in chosen:
                    lanes.append((register, index))
                lane += 1
        for number, unit in enumerate(liveness.fixed_lanes, lane):
            if number in alive and unit in chosen:
                fixed.append(unit)
        block, instruction = liveness.points[point]
        return Clique(point, block, instruction, tuple(lanes), tuple(fixed))


def units_of_kind(problem: AllocationProblem, kind: Kind, shape: Shape) -> frozenset[int]:
    """The units, as numbered by `placements`, where a lane of a kind may lie within a shape."""
    first_unit = problem.placements.first_unit
    ends = {file: first_unit[file] + limit for file, limit in shape}
    register_class, lane = kind
    if isinstance(register_class, str):
        unit = first_unit[register_class] + lane
        return frozenset([unit] if unit < ends.get(register_class, 0) else [])
    found: list[int] = []
    for file, end in ends.items():
        last = end - register_class.width
        legal = problem.placements.legal[register_class]
        found += [b + lane for b in legal if first_unit[file] <= b <= last]
    return frozenset(found)


def _is_in(kind: Kind, files: tuple[str, ...]) -> bool:
    place = kind[0]
    return place in files if isinstance(place, str) else not set(place.files).isdisjoint(files)
