"""The placement model: the nodes and exclusions of a search, as arrays.

Files that some class draws on together form a *group* (VGPRs and AGPRs; SGPRs
and VCC; each file of sm_80). Groups are independent, so each has its own model.
A *node* is a virtual register, or several that ties hold at fixed distances; its
base is the base of its first member. Two nodes exclude each other at certain
distances of their bases: those at which a lane of one would share a unit with a
lane of the other that is live where the first is defined. That is the verifier's
own condition, so an assignment is valid exactly if every node lies at a base of
its domain and no two lie at an excluded distance.

Cost: one bit-set operation for each definition, and n log n in the pairs of
lanes that exclude each other; 10 milliseconds for 500 virtual registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.register_state import FIXED, base_distances, unequal_ties
from verilocc_bench.analysis import AllocationProblem, Liveness, iterate_bits
from verilocc_bench.ir import Assignment, RegisterClass

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlacementNode:
    """Virtual registers at fixed distances: (register, its base less the node's base)."""

    members: tuple[tuple[int, int], ...]


class Space(NamedTuple):
    """The part of a model that compiled loops need: the allowed bases and its arrays."""

    allowed: NDArray[np.bool_]
    last: Integers
    start: Integers
    other: Integers
    distance: Integers


@dataclass(frozen=True)
class PlacementModel:
    """One group of files with its nodes.

    A unit is its number in `problem.placements` less `first_unit`; there are
    `unit_count` units. `domain[n, b]` is True if node n may have base b, by its
    classes, the reserved units and the function's own physical registers.
    `last[n]` is the last unit of node n less its base.

    The exclusions of node n are the entries k from `start[n]` to `start[n + 1]`:
    its base less the base of `other[k]` must not be `distance[k]`. Each exclusion
    is in the lists of both nodes.
    """

    problem: AllocationProblem
    files: tuple[str, ...]
    first_unit: int
    unit_count: int
    nodes: tuple[PlacementNode, ...]
    domain: NDArray[np.bool_]
    last: Integers
    start: Integers
    other: Integers
    distance: Integers

    @cached_property
    def node_of(self) -> Mapping[int, tuple[int, int]]:
        """For each virtual register of the group its node, and its base less the node's base."""
        return {
            register: (number, offset)
            for number, node in enumerate(self.nodes)
            for register, offset in node.members
        }

    @cached_property
    def file_ends(self) -> Mapping[str, tuple[int, int]]:
        """The units of each file of the group: the first, and the one after the last."""
        placements, target = self.problem.placements, self.problem.target
        ends = {}
        for name in self.files:
            first = placements.first_unit[name] - self.first_unit
            ends[name] = first, first + target.file(name).count
        return ends

    def within(self, limits: Mapping[str, int]) -> Space:
        """The space with only the first `limits[file]` units of each file that is named there.

        Files of other groups do not matter.
        """
        allowed = self.domain.copy()
        for name, limit in limits.items():
            if name not in self.files:
                continue
            first, end = self.file_ends[name]
            base = np.arange(first, end)
            allowed[:, first:end] &= base[None, :] + self.last[:, None] < first + limit
        return Space(allowed, self.last, self.start, self.other, self.distance)

    def assignment(self, bases: Iterable[int]) -> Assignment:
        """The assignment of the group's virtual registers that these node bases give."""
        placements = self.problem.placements
        return {
            register: placements.register(self.first_unit + int(base) + offset)
            for node, base in zip(self.nodes, bases, strict=True)
            for register, offset in node.members
        }

    def bases(self, assignment: Assignment) -> Integers:
        """The node bases of an assignment; -1 for a node that has none."""
        placements = self.problem.placements
        found = np.full(len(self.nodes), -1, np.int64)
        for number, node in enumerate(self.nodes):
            register, offset = node.members[0]
            if register in assignment:
                found[number] = placements.unit(assignment[register]) - self.first_unit - offset
        return found

    def is_valid(self, bases: Integers) -> bool:
        """True if every node lies within its domain and no two exclude each other."""
        count = len(self.nodes)
        if count == 0:
            return True
        if (bases < 0).any() or (bases >= self.unit_count).any():
            return False
        if not self.domain[np.arange(count), bases].all():
            return False
        owner = np.repeat(np.arange(count), np.diff(self.start))
        return not bool((bases[owner] - bases[self.other] == self.distance).any())


def file_groups(problem: AllocationProblem) -> list[tuple[str, ...]]:
    """The groups of files that the function's classes draw on together, in the target's order."""
    group = {file.name: {file.name} for file in problem.target.files}
    for register_class in set(problem.function.virtual_registers):
        merged = set().union(*(group[name] for name in register_class.files))
        for name in merged:
            group[name] = merged
    order = [file.name for file in problem.target.files]
    return list(dict.fromkeys(tuple(n for n in order if n in group[name]) for name in order))


def placement_models(problem: AllocationProblem) -> list[PlacementModel]:
    """A model for each group of files that some virtual register draws on.

    Virtual registers of classes without any legal base are in no model.
    """
    classes = problem.function.virtual_registers
    nodes = _tied_nodes(problem)
    pairs = _excluding_lanes(problem.liveness)
    models = []
    for files in file_groups(problem):
        own = [
            node
            for node in nodes
            if any(file in files for r, _ in node.members for file in classes[r].files)
        ]
        if own:
            models.append(_make_model(problem, files, own, pairs))
    return models


def _tied_nodes(problem: AllocationProblem) -> list[PlacementNode]:
    """Virtual registers that ties hold together, in the order of their first members.

    The domains express contradicting ties and ties to physical registers.
    """
    edges = base_distances(problem, unequal_ties(problem.function))
    seen: set[int] = set()
    nodes = []
    for register in range(len(problem.function.virtual_registers)):
        if register in seen:
            continue
        offsets, pending = {register: 0}, [register]
        while pending:
            current = pending.pop()
            for other, distance in edges.get(current, ()):
                if other != FIXED and other not in offsets:
                    offsets[other] = offsets[current] - distance
                    pending.append(other)
        seen |= offsets.keys()
        nodes.append(PlacementNode(tuple(offsets.items())))
    return nodes


def _excluding_lanes(liveness: Liveness) -> tuple[Integers, Integers]:
    """All pairs of lanes of which the first is defined where the second is live."""
    points = len(liveness.points)
    begins: list[int] = [0] * (points + 1)
    ends: list[int] = [0] * (points + 1)
    for lane, first, last, _ in liveness.segments:
        # The segments of a lane may touch: one ends where the next begins.
        begins[first] |= 1 << lane
        ends[last + 1] |= 1 << lane
    defined: list[list[int]] = [[] for _ in range(points)]
    for lane, mask in enumerate(liveness.defined):
        for point in iterate_bits(mask):
            defined[point].append(lane)
    excluded = [0] * len(liveness.live)
    live = 0
    for point, lanes in enumerate(defined):
        live = live & ~ends[point] | begins[point]
        for lane in lanes:
            excluded[lane] |= live
    # Masks become arrays by their bytes, which is faster than bit by bit.
    size = (len(liveness.live) + 7) // 8
    destroyer, victim = [], []
    for lane, mask in enumerate(excluded):
        mask &= ~(1 << lane)  # noqa: PLW2901
        if mask:
            bits = np.frombuffer(mask.to_bytes(size, "little"), np.uint8)
            found = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
            destroyer.append(np.full(len(found), lane, np.int64))
            victim.append(found.astype(np.int64))
    if not destroyer:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(destroyer), np.concatenate(victim)


def _make_model(
    problem: AllocationProblem,
    files: tuple[str, ...],
    nodes: list[PlacementNode],
    pairs: tuple[Integers, Integers],
) -> PlacementModel:
    placements, target = problem.placements, problem.target
    first_unit = min(placements.first_unit[name] for name in files)
    end = max(placements.first_unit[name] + target.file(name).count for name in files)
    classes = problem.function.virtual_registers
    count = end - first_unit
    domain = np.ones((len(nodes), count), np.bool_)
    last = np.zeros(len(nodes), np.int64)
    legal = {c: _legal_units(problem, c) for c in set(classes)}
    for number, node in enumerate(nodes):
        for register, offset in node.members:
            _restrict(domain[number], legal[classes[register]], first_unit + offset)
        last[number] = max(o + classes[r].width - 1 for r, o in node.members)
    _restrict_by_ties(problem, nodes, first_unit, domain)
    start, other, distance = _exclusions(problem, nodes, pairs, first_unit, domain)
    return PlacementModel(
        problem,
        files,
        first_unit,
        count,
        tuple(nodes),
        domain,
        last,
        start,
        other,
        distance,
    )


def _legal_units(problem: AllocationProblem, register_class: RegisterClass) -> NDArray[np.bool_]:
    """True at each unit that is a legal base of a class."""
    units = sorted(problem.placements.legal[register_class])
    legal = np.zeros(max(units, default=-1) + 1, np.bool_)
    legal[units] = True
    return legal


def _restrict(bases: NDArray[np.bool_], legal: NDArray[np.bool_], first: int) -> None:
    """Leaves a node, in place, the bases that put a member at a legal unit; base 0 at `first`."""
    low, end = max(first, 0), min(first + len(bases), len(legal))
    inside = np.zeros(len(bases), np.bool_)
    if low < end:
        inside[low - first : end - first] = legal[low:end]
    bases &= inside


def _restrict_by_ties(
    problem: AllocationProblem,
    nodes: list[PlacementNode],
    first_unit: int,
    domain: NDArray[np.bool_],
) -> None:
    """Restricts domains: a tie to a physical register leaves one base, an impossible tie none."""
    edges = base_distances(problem, unequal_ties(problem.function))
    for number, node in enumerate(nodes):
        offsets = dict(node.members)
        for register, offset in node.members:
            for other, distance in edges.get(register, ()):
                if other == FIXED:
                    base = distance - offset - first_unit
                    keep = domain[number, base] if 0 <= base < domain.shape[1] else False
                    domain[number] = False
                    if keep:
                        domain[number, base] = True
                elif offsets[other] != offset - distance:
                    domain[number] = False


def _lanes_of(problem: AllocationProblem, nodes: list[PlacementNode]) -> tuple[Integers, Integers]:
    """For each lane its node (-1: another group, or fixed), and its unit less the node's base."""
    liveness, classes = problem.liveness, problem.function.virtual_registers
    node_of = np.full(len(liveness.live), -1, np.int64)
    offset_of = np.zeros(len(liveness.live), np.int64)
    for number, node in enumerate(nodes):
        for register, offset in node.members:
            first, width = liveness.lane_offsets[register], classes[register].width
            node_of[first : first + width] = number
            offset_of[first : first + width] = offset + np.arange(width)
    return node_of, offset_of


def _exclusions(
    problem: AllocationProblem,
    nodes: list[PlacementNode],
    pairs: tuple[Integers, Integers],
    first_unit: int,
    domain: NDArray[np.bool_],
) -> tuple[Integers, Integers, Integers]:
    """The exclusions as (start, other, distance); exclusions by fixed lanes go into the domain."""
    count, units = domain.shape
    node_of, offset_of = _lanes_of(problem, nodes)
    a, b = np.concatenate(pairs), np.concatenate(pairs[::-1])
    mine = node_of[a] >= 0
    a, b = a[mine], b[mine]
    virtual = problem.liveness.virtual_lane_count
    first_fixed = problem.placements.first_unit
    fixed_unit = np.array(
        [first_fixed[file] + index - first_unit for file, index in problem.liveness.fixed_lanes],
        np.int64,
    )
    is_fixed = b >= virtual
    if is_fixed.any():
        base = fixed_unit[b[is_fixed] - virtual] - offset_of[a[is_fixed]]
        node = node_of[a[is_fixed]]
        inside = (base >= 0) & (base < units)
        domain[node[inside], base[inside]] = False
    a, b = a[~is_fixed], b[~is_fixed]
    mine = node_of[b] >= 0
    a, b = a[mine], b[mine]
    distance = offset_of[b] - offset_of[a]
    itself = node_of[a] == node_of[b]
    domain[node_of[a][itself & (distance == 0)]] = False
    a, b, distance = a[~itself], b[~itself], distance[~itself]
    wide = 2 * units + 1
    codes = np.unique((node_of[a] * count + node_of[b]) * wide + distance + units)
    owner, other = np.divmod(codes // wide, count)
    start = np.searchsorted(owner, np.arange(count + 1)).astype(np.int64)
    return start, other.astype(np.int64), (codes % wide - units).astype(np.int64)
