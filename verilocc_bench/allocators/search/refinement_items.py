"""The costs of a placement beyond its registers: bank conflicts, copies, long encodings.

The items of a model are arrays. A *site* is an instruction with three different
32-bit vector sources. A *pair* is a copy whose two sides could share a register,
or an operand that would shorten its instruction in a certain register. An item
weighs ten times more for each loop around it. The cost of a site is the number of
registers that it reads from one bank beyond what the bank delivers at once (AMD:
1 for two of one bank, 2 for three; sm_80: 1 for three), by the rules of
analysis.bank_conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import DEEPEST, LOOP_WEIGHT
from verilocc_bench.ir import FixedUnits, Instruction, Operand
from verilocc_bench.settings.search import Objective

"""The largest loop depth that counts, so that sums stay small."""

NodePlace = tuple[int, int]
"""(node, unit less its base), or (-1, unit) for a physical register."""


class Weights(NamedTuple):
    """The weights of a surplus read of a bank, a remaining copy, and a long encoding.

    A weight of 0 leaves the items out.
    """

    conflict: int = 2
    copy: int = 2
    long_form: int = 1


OBJECTIVE_WEIGHTS = {
    Objective.REGISTERS: Weights(),
    Objective.BANK_CONFLICTS: Weights(2, 0, 1),
    Objective.COPIES: Weights(0, 2, 1),
    Objective.COMBINED: Weights(),
    Objective.MACHINE_CODE: Weights(conflict=8, copy=400, long_form=2),
}
"""The weights of each objective, at its number of registers.

For machine code a copy is an instruction of its own, a conflict delays one,
and a long encoding takes four bytes. Soft exclusions have weights on the same scale.
"""


class Items(NamedTuple):
    """Sites first, then pairs: item i < `site_count` is a site.

    `nodes[i]` and `offsets[i]` are the three sources of a site, or the two sides
    of a pair (the third is unused). `weights[i]` is the item's weight.
    `previous[i]` is the site just before a site, whose operands the slots may
    still hold, or -1. `writes_start`, `write_nodes`, `write_offsets` and
    `write_counts` are the writes of a site. `item_start` and `items_of` list the
    items that depend on each node. `bank[u]` is the bank of a unit, or -1.
    `ports` is the number of registers that one bank delivers at once.
    """

    site_count: int
    nodes: Integers
    offsets: Integers
    weights: Integers
    previous: Integers
    writes_start: Integers
    write_nodes: Integers
    write_offsets: Integers
    write_counts: Integers
    item_start: Integers
    items_of: Integers
    bank: Integers
    ports: int


class _Item(NamedTuple):
    places: tuple[NodePlace, ...]
    weight: int
    previous: int = -1
    writes: tuple[tuple[int, int, int], ...] = ()


def collect_items(model: PlacementModel, weights: Weights) -> Items:
    """The items of a model."""
    sites = list(_sites(model, weights.conflict)) if weights.conflict else []
    pairs = list(_copies(model, weights.copy)) if weights.copy else []
    pairs += _short_forms(model, weights.long_form) if weights.long_form else []
    return _to_arrays(model, sites, pairs)


def loop_weight(problem: AllocationProblem, block: int) -> int:
    """How many times an item of a block counts: ten times more for each loop around it."""
    return int(LOOP_WEIGHT ** min(problem.loop_depths[block], DEEPEST))


def _place(model: PlacementModel, operand: Operand) -> NodePlace | None:
    """The first unit of an operand; None for an operand of another group."""
    location = operand.location
    if isinstance(location, FixedUnits):
        if location.file not in model.files:
            return None
        first = model.problem.placements.first_unit[location.file]
        return -1, first + location.first - model.first_unit
    found = model.node_of.get(location.register)
    return None if found is None else (found[0], found[1] + location.first)


def _sites(model: PlacementModel, weight: int) -> Iterator[_Item]:
    problem = model.problem
    if not set(model.files) <= set(problem.target.vector_files):
        return
    count = 0
    for index, block in enumerate(problem.function.blocks):
        previous = -1
        for instruction in block.instructions:
            sources = _three_sources(model, instruction)
            if not sources:
                previous = -1
                continue
            writes = tuple(_writes(model, instruction)) if problem.target.reuse_slots else ()
            kept = previous if problem.target.reuse_slots else -1
            yield _Item(sources, weight * loop_weight(problem, index), kept, writes)
            previous = count
            count += 1


def _three_sources(model: PlacementModel, instruction: Instruction) -> tuple[NodePlace, ...]:
    """The sources of one unit in the group if there are three different ones, else empty."""
    found: dict[NodePlace, None] = {}
    for operand in instruction.uses:
        if not operand.implicit and operand.location.count == 1:
            place = _place(model, operand)
            if place is not None:
                found[place] = None
    return tuple(found) if len(found) == 3 else ()


def _writes(model: PlacementModel, instruction: Instruction) -> Iterator[tuple[int, int, int]]:
    for operand in instruction.definitions:
        place = _place(model, operand)
        if place is not None:
            yield *place, operand.location.count


def _copies(model: PlacementModel, weight: int) -> Iterator[_Item]:
    """The copies whose two sides a placement could put into one register."""
    problem = model.problem
    for index, block in enumerate(problem.function.blocks):
        for instruction in block.instructions:
            if instruction.opcode not in problem.target.copy_opcodes:
                continue
            if not instruction.definitions or not instruction.uses:
                continue
            sides = _place(model, instruction.definitions[0]), _place(model, instruction.uses[0])
            if sides[0] is not None and sides[1] is not None:
                places = (sides[0], sides[1])
                if _can_coincide(model, *places):
                    yield _Item(places, weight * loop_weight(problem, index))


def _short_forms(model: PlacementModel, weight: int) -> Iterator[_Item]:
    """The operands that would shorten their instruction in a certain register."""
    problem = model.problem
    for opcodes, file in problem.target.short_forms:
        if file not in model.files:
            continue
        count = problem.target.file(file).count
        wanted = -1, problem.placements.first_unit[file] - model.first_unit
        for block, _, instruction in problem.function.instructions():
            if not opcodes.fullmatch(instruction.opcode):
                continue
            for operand in instruction.definitions + instruction.uses:
                place = _place(model, operand) if operand.location.count == count else None
                if place is not None and place[0] >= 0 and _can_coincide(model, place, wanted):
                    yield _Item((place, wanted), weight * loop_weight(problem, block))


def _can_coincide(model: PlacementModel, left: NodePlace, right: NodePlace) -> bool:
    """True if some allowed bases put both sides into one unit."""
    if left[0] == right[0]:
        return False  # the distance is fixed, so they always or never coincide
    if left[0] < 0:
        left, right = right, left
    domain = model.domain[left[0]]
    if right[0] < 0:
        base = right[1] - left[1]
        return 0 <= base < model.unit_count and bool(domain[base])
    distance = right[1] - left[1]  # the base of left less the base of right
    entries = slice(model.start[left[0]], model.start[left[0] + 1])
    excluded = (model.other[entries] == right[0]) & (model.distance[entries] == distance)
    if excluded.any():
        return False
    bases = np.flatnonzero(model.domain[right[0]]) + distance
    bases = bases[(bases >= 0) & (bases < model.unit_count)]
    return bool(domain[bases].any())


def _to_arrays(model: PlacementModel, sites: Sequence[_Item], pairs: Sequence[_Item]) -> Items:
    items = [*sites, *pairs]
    nodes = np.full((len(items), 3), -1, np.int64)
    offsets = np.zeros((len(items), 3), np.int64)
    following: dict[int, int] = {}
    depends: list[set[int]] = [set() for _ in model.nodes]
    writes_start = [0]
    writes: list[tuple[int, int, int]] = []
    for number, item in enumerate(items):
        for place, (node, offset) in enumerate(item.places):
            nodes[number, place], offsets[number, place] = node, offset
        if item.previous >= 0:
            following[item.previous] = number
        writes += item.writes
        writes_start.append(len(writes))
        touched = [node for node, _ in item.places] + [node for node, _, _ in item.writes]
        for node in touched:
            if node >= 0:
                depends[node].add(number)
    for dependent in depends:
        # The operands that a site leaves in the slots affect the next site, too.
        dependent |= {following[n] for n in dependent if n in following}
    flat = [number for dependent in depends for number in sorted(dependent)]
    columns = np.ascontiguousarray(np.array(writes, np.int64).reshape(-1, 3).T)
    return Items(
        site_count=len(sites),
        nodes=nodes,
        offsets=offsets,
        weights=np.array([item.weight for item in items], np.int64),
        previous=np.array([item.previous for item in items], np.int64),
        writes_start=np.array(writes_start, np.int64),
        write_nodes=columns[0],
        write_offsets=columns[1],
        write_counts=columns[2],
        item_start=np.cumsum([0, *map(len, depends)], dtype=np.int64),
        items_of=np.array(flat, np.int64),
        bank=_banks(model),
        ports=model.problem.target.bank_ports,
    )


def _banks(model: PlacementModel) -> Integers:
    target = model.problem.target
    bank = np.full(model.unit_count, -1, np.int64)
    first_bank = 0
    for name, (first, end) in model.file_ends.items():
        if name in target.vector_files:
            banks = target.file(name).banks
            bank[first:end] = first_bank + np.arange(end - first) % banks
            first_bank += banks
    return bank
