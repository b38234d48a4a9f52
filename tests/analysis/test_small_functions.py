"""The analyses of small generated functions against plain walks and definitions."""

from __future__ import annotations

import itertools

import pytest

from tests.generated import random_function
from tests.verification.test_small_functions import KINDS
from verilocc_bench.analysis import VECTOR, AllocationProblem, iterate_bits, loop_depths
from verilocc_bench.analysis.interference import interference_sets, live_spans
from verilocc_bench.ir import Block, FixedUnits, Function, Instruction, VirtualLanes, print_function
from verilocc_bench.selftest.oracle import Oracle

PORTION = 8


def lane_names(problem: AllocationProblem) -> list[tuple[object, int]]:
    """The lanes in liveness's order, as the walk over paths names them."""
    classes = problem.function.virtual_registers
    names: list[tuple[object, int]] = [
        (n, i) for n, c in enumerate(classes) for i in range(c.width)
    ]
    return names + list(problem.liveness.fixed_lanes)


def lanes_of(location: FixedUnits | VirtualLanes) -> list[tuple[object, int]]:
    owner = location.file if isinstance(location, FixedUnits) else location.register
    return [(owner, location.first + n) for n in range(location.count)]


@pytest.mark.parametrize("start", range(0, 6 * PORTION, PORTION))
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_collide_where_a_path_destroys_one(kind: str, start: int) -> None:
    for seed in range(start, start + PORTION):
        function = random_function(seed, registers=7, blocks=4, **KINDS[kind])
        problem, oracle = AllocationProblem(function), Oracle(function)
        liveness, names = problem.liveness, lane_names(problem)
        for (a, first), (b, second) in itertools.combinations(enumerate(names), 2):
            if first[0] == second[0] or isinstance(first[0], str):
                continue
            collide = bool(
                liveness.defined[a] & liveness.live[b] or liveness.live[a] & liveness.defined[b]
            )
            assert collide == oracle.collide(first, second), (
                f"seed {seed}: {first} and {second}\n{print_function(function)}"
            )


@pytest.mark.parametrize("kind", KINDS)
def test_points_segments_and_sets_say_the_same(kind: str) -> None:
    for seed in range(40):
        function = random_function(seed, registers=8, blocks=5, **KINDS[kind])
        problem = AllocationProblem(function)
        liveness = problem.liveness
        points = [(0, -1)]
        for block, index, instruction in function.instructions():
            early = any(d.early_clobber for d in instruction.definitions)
            points += [(block, index)] * (1 + early)
        assert list(liveness.points) == points
        last = {place: point for point, place in enumerate(points)}
        assert [list(after) for after in liveness.after] == [
            [last[number, index] for index in range(len(block.instructions))]
            for number, block in enumerate(function.blocks)
        ]
        live = [0] * len(liveness.live)
        for lane, first, end, _ in liveness.segments:
            assert 0 <= first <= end < len(points)
            for point in range(first, end + 1):
                assert not live[lane] >> point & 1
                live[lane] |= 1 << point
        assert tuple(live) == liveness.live
        assert all(not d & ~held for d, held in zip(liveness.defined, liveness.live, strict=True))
        assert liveness.virtual_lane_count == sum(c.width for c in function.virtual_registers)
        assert len(liveness.live) == liveness.virtual_lane_count + len(liveness.fixed_lanes)
        assert defined_points(problem) == liveness.defined
        units: list[FixedUnits | VirtualLanes] = list(function.live_ins)
        for _, _, instruction in function.instructions():
            units += [instruction.guard.location] if instruction.guard else []
            units += [o.location for o in instruction.definitions + instruction.uses]
        named = [lane for u in units if isinstance(u, FixedUnits) for lane in lanes_of(u)]
        assert liveness.named_units == tuple(dict.fromkeys(named))
        assert set(liveness.fixed_lanes) - set(named) == unnamed_destroyed(function)
        assert len(set(liveness.fixed_lanes)) == len(liveness.fixed_lanes)


def destroyed(instruction: Instruction) -> set[tuple[object, int]]:
    """The units that an instruction destroys and does not define."""
    gone = {lane for units in instruction.destroys for lane in lanes_of(units)}
    return gone - {
        lane for operand in instruction.definitions for lane in lanes_of(operand.location)
    }


def unnamed_destroyed(function: Function) -> set[tuple[object, int]]:
    """The units in masks that a register may have and that the function does not name."""
    budgets = {file.name: file.count for file in function.files}
    closed = {lane for u in (*function.reserved, *function.live_ins) for lane in lanes_of(u)}
    found = set()
    for _, _, instruction in function.instructions():
        for operand in instruction.definitions + instruction.uses:
            closed.update(lanes_of(operand.location))
        found |= {lane for units in instruction.destroys for lane in lanes_of(units)}
    return {unit for unit in found - closed if unit[1] < budgets[unit[0]]}


def defined_points(problem: AllocationProblem) -> tuple[int, ...]:
    """Where each lane is defined, read off the text; at the entry as liveness says."""
    liveness, function = problem.liveness, problem.function
    lanes = {name: lane for lane, name in enumerate(lane_names(problem))}
    found = [mask & 1 for mask in liveness.defined]
    for block, index, instruction in function.instructions():
        point = liveness.after[block][index]
        for operand in instruction.definitions:
            for lane in lanes_of(operand.location):
                found[lanes[lane]] |= 1 << point
                if operand.early_clobber:
                    found[lanes[lane]] |= 1 << point - 1
        for unit in destroyed(instruction) & lanes.keys():
            found[lanes[unit]] |= 1 << point
    return tuple(found)


def certain(function: Function, problem: AllocationProblem) -> list[int]:
    """For each point the lanes that are defined there, or live and defined on all paths to it.

    Of functions without guards, by naive iteration over sets.
    """
    liveness = problem.liveness
    lanes = {name: lane for lane, name in enumerate(lane_names(problem))}
    everything = (1 << len(lanes)) - 1

    def mask(instruction: Instruction, *, early: bool = False) -> int:
        return sum(
            {
                1 << lanes[lane]
                for operand in instruction.definitions
                if operand.early_clobber or not early
                for lane in lanes_of(operand.location)
            }
        )

    def ended(instruction: Instruction) -> int:
        gone = {
            1 << lanes[operand.location.register, number]
            for operand in instruction.definitions
            if operand.undef and not isinstance(operand.location, FixedUnits)
            for number in range(function.virtual_registers[operand.location.register].width)
        }
        gone |= {1 << lanes[unit] for unit in destroyed(instruction) & lanes.keys()}
        return sum(gone) & ~mask(instruction)

    entry = sum(1 << lane for lane, points in enumerate(liveness.defined) if points & 1)
    surely: list[int | None] = [None] * len(function.blocks)
    surely[0] = entry
    changed = True
    while changed:
        changed = False
        for number, block in enumerate(function.blocks):
            held = surely[number]
            if held is None:
                continue
            for instruction in block.instructions:
                held = held & ~ended(instruction) | mask(instruction)
            for successor in block.successors:
                before = surely[successor]
                after = held if before is None else held & before
                if after != before:
                    surely[successor], changed = after, True
    found = [entry]
    for number, block in enumerate(function.blocks):
        held = surely[number]
        for instruction in block.instructions:
            early, now = mask(instruction, early=True), mask(instruction)
            if early:
                found.append(early if held is None else held | early)
            if held is not None:
                held = held & ~ended(instruction) | now
            now |= sum(1 << lanes[unit] for unit in destroyed(instruction) & lanes.keys())
            found.append(now if held is None else held | now)
    return [
        sum(
            1 << lane
            for lane in iterate_bits(each & everything)
            if liveness.live[lane] >> point & 1
        )
        for point, each in enumerate(found)
    ]


@pytest.mark.parametrize("kind", ["plain", "gfx942", "gfx942 calls"])
def test_what_is_counted_is_live_and_defined_on_every_path(kind: str) -> None:
    for seed in range(60):
        function = random_function(seed, registers=7, blocks=5, **KINDS[kind])
        problem = AllocationProblem(function)
        counted = [0] * len(problem.liveness.points)
        for lane, first, last, surely in problem.liveness.segments:
            for point in range(first, last + 1):
                counted[point] |= surely << lane
        assert counted == certain(function, problem), f"seed {seed}\n{print_function(function)}"


@pytest.mark.parametrize("kind", KINDS)
def test_pressure_counts_lanes_of_each_group(kind: str) -> None:
    for seed in range(40):
        function = random_function(seed, registers=8, blocks=5, **KINDS[kind])
        problem = AllocationProblem(function)
        target, pressure = problem.target, problem.pressure
        files = [c.files[0] for c in function.virtual_registers for _ in range(c.width)]
        files += [file for file, _ in problem.liveness.named_units]
        files += ["none"] * (len(problem.liveness.live) - len(files))
        groups = [VECTOR if file in target.vector_files else file for file in files]
        names = {VECTOR if f.name in target.vector_files else f.name for f in target.files}
        assert pressure.curves.keys() == pressure.maximum.keys() == pressure.peak.keys() == names
        for group in names:
            curve = [0] * len(problem.liveness.points)
            for lane, first, last, surely in problem.liveness.segments:
                if surely and groups[lane] == group:
                    for point in range(first, last + 1):
                        curve[point] += 1
            assert pressure.curves[group] == tuple(curve)
            assert pressure.maximum[group] == max(curve)
            assert pressure.peak[group] == curve.index(max(curve))


@pytest.mark.parametrize("kind", KINDS)
def test_interference_and_spans_follow_from_lanes(kind: str) -> None:
    for seed in range(30):
        function = random_function(seed, registers=9, blocks=4, **KINDS[kind])
        problem = AllocationProblem(function)
        liveness = problem.liveness
        lanes = [
            range(first, first + c.width)
            for first, c in zip(liveness.lane_offsets, function.virtual_registers, strict=True)
        ]
        sets = interference_sets(liveness)
        for a, b in itertools.product(range(len(lanes)), repeat=2):
            expected = a != b and any(
                liveness.defined[x] & liveness.live[y] or liveness.live[x] & liveness.defined[y]
                for x in lanes[a]
                for y in lanes[b]
            )
            assert bool(sets[a] >> b & 1) == expected
        spans = []
        for each in lanes:
            points = [point for lane in each for point in iterate_bits(liveness.live[lane])]
            spans.append((min(points), max(points), len(points)) if points else (0, 0, 0))
        assert live_spans(liveness) == spans


def depths(function: Function) -> tuple[int, ...]:
    """Natural loops by definition: a block dominates another if none reaches that without it."""
    blocks = range(len(function.blocks))

    def reached(without: int | None) -> set[int]:
        found, pending = set(), [0]
        while pending:
            block = pending.pop()
            if block != without and block not in found:
                found.add(block)
                pending += function.blocks[block].successors
        return found

    everywhere = reached(None)
    loops: dict[int, set[int]] = {}
    for head in everywhere:
        dominated = everywhere - reached(head)
        for tail in dominated:
            if head in function.blocks[tail].successors:
                body, pending = loops.setdefault(head, {head}), [tail]
                while pending:
                    block = pending.pop()
                    if block not in body:
                        body.add(block)
                        pending += [b for b in everywhere if block in function.blocks[b].successors]
    return tuple(sum(block in body for body in loops.values()) for block in blocks)


def graph(*successors: tuple[int, ...]) -> Function:
    function = random_function(0)
    blocks = tuple(Block((), each) for each in successors)
    return Function(function.target, function.files, (), (), (), blocks)


def depths_of_loops(function: Function) -> tuple[int, ...]:
    return loop_depths([block.successors for block in function.blocks])


def test_loop_depths_are_those_of_natural_loops() -> None:
    for seed in range(200):
        function = random_function(seed, blocks=9)
        assert depths_of_loops(function) == depths(function), print_function(function)
    choices = [(), *((a,) for a in range(4)), *itertools.permutations(range(4), 2)]
    for number, successors in enumerate(itertools.product(choices, repeat=3)):
        if number % 11 == 0:
            function = graph((1, 2), *successors)
            assert depths_of_loops(function) == depths(function), successors


def test_loops_within_loops() -> None:
    nested = graph((1,), (2,), (3,), (3, 4), (2, 5), (1, 6), ())
    assert depths_of_loops(nested) == (0, 1, 2, 3, 2, 1, 0)
    two_tails = graph((1,), (2, 3), (1,), (1, 4), ())
    assert depths_of_loops(two_tails) == (0, 1, 1, 1, 0)
    assert depths_of_loops(graph((0,), (1,))) == (1, 0)


def test_bits_come_in_order() -> None:
    for width in (0, 1, 5, 8, 9, 40):
        for start in (0, 1, 63):
            for step in (1, 3):
                bits = [start + step * n for n in range(width)]
                assert list(iterate_bits(sum(1 << bit for bit in bits))) == bits
