"""Shapes, cliques and demands of lower bounds against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.analysis.bounds import TARGETS, groups, numbers, problems
from tests.generated import random_function
from verilocc_bench.analysis import VECTOR, AllocationProblem, iterate_bits
from verilocc_bench.analysis.lower_bounds.cliques import (
    _grown,
    lanes_apart,
    maximal_cliques,
    other_pairs,
)
from verilocc_bench.analysis.lower_bounds.demands import Demands, units_of_kind
from verilocc_bench.analysis.lower_bounds.records import Shape
from verilocc_bench.analysis.lower_bounds.shapes import (
    file_group,
    fits,
    most_registers,
    shapes_of_value,
)
from verilocc_bench.ir import FixedUnits, parse_function
from verilocc_bench.targets import Target

# Shapes.


@pytest.mark.parametrize("target", TARGETS)
def test_groups_are_closed_under_classes_of_several_files(target: str) -> None:
    for problem in problems(30, target):
        function = problem.function
        for group in groups(problem):
            found = set(problem.target.vector_files) if group == VECTOR else {group}
            for _ in problem.target.files:
                for c in function.virtual_registers:
                    if found & set(c.files):
                        found |= set(c.files)
            order = [file.name for file in problem.target.files if file.name in found]
            assert list(file_group(function, problem.target, group)) == order


def own_ends(problem: AllocationProblem) -> tuple[dict[str, int], dict[str, int]]:
    """What the function names of each file, and what any assignment could."""
    ends = {file.name: 0 for file in problem.function.files}
    units = list(problem.function.live_ins)
    for _, _, i in problem.function.instructions():
        locations = [o.location for o in i.definitions + i.uses]
        locations += [i.guard.location] if i.guard else []
        units += [location for location in locations if isinstance(location, FixedUnits)]
    for u in units:
        ends[u.file] = max(ends[u.file], u.first + u.count)
    most = dict(ends)
    for c in problem.function.virtual_registers:
        for r in c.ranges:
            most[r.file] = max(most[r.file], r.last + c.width)
    return ends, most


@pytest.mark.parametrize("target", TARGETS)
def test_shapes_of_a_value_are_all_that_use_no_more(target: str) -> None:
    for problem in problems(25, target):
        function, machine = problem.function, problem.target
        ends, most = own_ends(problem)
        assert problem.fixed_ends == ends
        for group in groups(problem):
            counted = machine.vector_files if group == VECTOR else (group,)

            def use(used: dict[str, int], group: str = group, machine: Target = machine) -> int:
                return machine.vector_use(used) if group == VECTOR else used[group]

            files = file_group(function, machine, group)
            everything = [
                {**most, **dict(zip(counted, limits, strict=True))}
                for limits in itertools.product(*(range(ends[f], most[f] + 1) for f in counted))
            ]
            assert most_registers(problem, group) == use({f: most[f] for f in counted})
            for value in range(-1, max(map(use, everything)) + 2):
                shapes = shapes_of_value(problem, group, value)
                for shape in shapes:
                    assert [file for file, _ in shape] == sorted(
                        files,
                        key=lambda f: (group == VECTOR and f not in counted, files.index(f)),
                    )
                    limits = dict(shape)
                    assert use({f: limits[f] for f in counted}) <= max(value, 0)
                    assert all(limits[f] == most[f] for f in files if f not in counted)
                    assert all(ends[f] <= limits[f] <= most[f] for f in files)
                for used in everything:
                    covered = any(
                        all(used[f] <= limit for f, limit in shape if f in counted)
                        for shape in shapes
                    )
                    assert covered == (use({f: used[f] for f in counted}) <= value)
                for one, other in itertools.permutations(shapes, 2):
                    assert not all(dict(one)[f] <= dict(other)[f] for f in files)
                assert len(set(shapes)) == len(shapes)


def test_files_belong_together_by_way_of_others() -> None:
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:8 a:8 s:8 vcc:2=vcc_lo,vcc_hi\n"
        "class AV 1 v a\nclass AS 1 a s\nclass S 1 s vcc\nbb0\n%0:AV=A\n%1:AS=A\n%2:S=A\n"
    )
    problem = AllocationProblem(parse_function(text, canonical=False))
    for group in ("v", "a", "s", "vcc", VECTOR):
        assert file_group(problem.function, problem.target, group) == ("v", "a", "s", "vcc")


def test_an_allocation_fits_within_its_limits() -> None:
    shape: Shape = (("v", 4), ("a", 2))
    assert fits(shape, {"v": 4, "a": 2, "s": 99})
    assert fits(shape, {})
    assert not fits(shape, {"v": 5})
    assert not fits(shape, {"v": 1, "a": 3})
    assert fits((("v", 4), ("a", 0)), {"v": 4})


# Cliques and demands.


def collisions(problem: AllocationProblem) -> list[set[int]]:
    liveness = problem.liveness
    lanes = range(len(liveness.live))
    return [
        {
            b
            for b in lanes
            if a != b
            and (liveness.defined[a] & liveness.live[b] or liveness.live[a] & liveness.defined[b])
        }
        for a in lanes
    ]


def own_lanes(problem: AllocationProblem, files: tuple[str, ...]) -> set[int]:
    classes = problem.function.virtual_registers
    drawn = [set(c.files) & set(files) for c in classes for _ in range(c.width)]
    drawn += [{file} & set(files) for file, _ in problem.liveness.fixed_lanes]
    return {lane for lane, each in enumerate(drawn) if each}


@pytest.mark.parametrize("target", TARGETS)
def test_cliques_hold_what_is_together_and_all_that_fits(target: str) -> None:
    for problem in problems(40, target):
        liveness, apart = problem.liveness, collisions(problem)
        for group in groups(problem):
            files = file_group(problem.function, problem.target, group)
            own = own_lanes(problem, files)
            surely = [set[int]() for _ in liveness.points]
            live = [set[int]() for _ in liveness.points]
            for lane, first, last, sure in liveness.segments:
                for point in range(first, last + 1):
                    live[point] |= {lane} & own
                    surely[point] |= {lane} & own if sure else set()
            rows = [set(iterate_bits(row)) for row in lanes_apart(problem, files)]
            for row, least, most in zip(rows, surely, live, strict=True):
                assert least <= row <= most
                for lane in most - row:  # each of the others can share with one of the clique
                    assert any(other not in apart[lane] for other in row)
                for lane in row - least:
                    assert row - {lane} <= apart[lane]
            kept = maximal_cliques(problem, files)
            sets = [numbers(problem, clique) for clique in kept]
            assert [c.point for c in kept] == sorted(c.point for c in kept)
            for clique, each in zip(kept, sets, strict=True):
                assert each == rows[clique.point]
                assert liveness.points[clique.point] == (clique.block, clique.instruction)
                assert rows.index(each) == clique.point
                assert not any(each < other for other in sets)
                assert list(clique.lanes) == sorted(clique.lanes)
            assert all(any(row <= each for each in sets) for row in rows if row)
            pairs = other_pairs(problem, files)
            told = set()
            for clique in pairs:
                a, b = sorted(numbers(problem, clique))
                assert b in apart[a]
                assert {a, b} <= own
                assert {a, b} <= live[clique.point]
                defined = liveness.defined[a] | liveness.defined[b]
                assert defined >> clique.point & 1
                told.add((a, b))
            for a, b in itertools.combinations(sorted(own), 2):
                if b in apart[a] and not any({a, b} <= row for row in rows):
                    assert (a, b) in told


@pytest.mark.parametrize("target", TARGETS)
def test_demands_count_lanes_by_kind(target: str) -> None:
    for problem in problems(30, target):
        classes = problem.function.virtual_registers
        kinds = [(c, lane) for c in classes for lane in range(c.width)]
        kinds += problem.liveness.fixed_lanes
        for group in groups(problem):
            files = file_group(problem.function, problem.target, group)
            own = own_lanes(problem, files)
            demands = Demands.of(problem, files)
            assert demands.rows == tuple(lanes_apart(problem, files))
            assert demands.files == files
            assert demands.problem is problem
            in_order = dict.fromkeys(kinds[lane] for lane in sorted(own))
            assert demands.kinds == tuple(in_order)
            counts = np.zeros((len(demands.kinds), len(demands.rows)), np.int64)
            for point, row in enumerate(demands.rows):
                for lane in iterate_bits(row):
                    counts[demands.kinds.index(kinds[lane]), point] += 1
            assert (demands.counts == counts).all()
            columns = [tuple(column) for column in counts.T]
            hottest = [int(point) for point in demands.hottest]
            chosen = [columns[point] for point in hottest]
            assert len(set(chosen)) == len(chosen)
            for column, point in zip(chosen, hottest, strict=True):
                assert columns.index(column) == point
                assert not any(
                    column != other and all(x <= y for x, y in zip(column, other, strict=True))
                    for other in columns
                )
            for column in columns:
                assert any(
                    all(x <= y for x, y in zip(column, other, strict=True)) for other in chosen
                )
            sums = [sum(column) for column in chosen]
            assert sums == sorted(sums, reverse=True)
            for point in hottest:
                every = demands.clique(point)
                assert numbers(problem, every) == set(iterate_bits(demands.rows[point]))
                assert (every.point, every.block, every.instruction) == (
                    point, *problem.liveness.points[point],
                )  # fmt: skip
                some = frozenset(range(0, len(demands.kinds), 2))
                part = demands.clique(point, some)
                assert numbers(problem, part) == {
                    lane
                    for lane in iterate_bits(demands.rows[point])
                    if demands.kinds.index(kinds[lane]) in some
                }


@pytest.mark.parametrize("target", TARGETS)
def test_units_of_a_kind_are_where_legal_bases_put_its_lane(target: str) -> None:
    for problem in problems(15, target):
        first = problem.placements.first_unit
        files = file_group(problem.function, problem.target, VECTOR)
        for limit in (0, 1, 3, 4, 12):
            shape = tuple((file, limit) for file in files)
            inside = {first[file] + n for file in files for n in range(limit)}
            for c in set(problem.function.virtual_registers):
                for lane in range(c.width):
                    expected = {
                        base + lane
                        for base in problem.placements.legal[c]
                        if set(range(base, base + c.width)) <= inside
                    }
                    assert units_of_kind(problem, (c, lane), shape) == expected
            for file, unit in problem.liveness.fixed_lanes:
                own = {first[file] + unit} if file in files and unit < limit else set()
                assert units_of_kind(problem, (file, unit), shape) == own


EXCLUSIVE = """verilocc-bench 1
target sm_80
registers R:16 UR:4 P:4 UP:2
class P 1 P
class R 1 R
bb0
%0:R=A
%1:P=P
@%1 %2:R=A
@%1 %3:R=A
@!%1 %4:R=A
%5:R=C
R7=C
@%1 USE %2,%3
@!%1 USE %4
USE %0,%5,R7
"""


def test_pairs_that_no_state_has_all_of_are_told_apart() -> None:
    """%4 lives where %2 and %3 do not: the cliques have these two, with what is there always."""
    problem = AllocationProblem(parse_function(EXCLUSIVE, canonical=False))
    (clique,) = maximal_cliques(problem, ("R",))[-1:]
    assert clique.lanes == ((0, 0), (2, 0), (3, 0), (5, 0))
    assert clique.fixed == (("R", 7),)
    pairs = other_pairs(problem, ("R",))
    assert [(pair.lanes, pair.fixed, pair.instruction) for pair in pairs] == [
        (((4, 0), (5, 0)), (), 5),
        (((4, 0),), (("R", 7),), 6),
    ]
    assert other_pairs(problem, ("P",)) == ()


def test_lanes_that_never_meet_are_in_no_clique_together() -> None:
    """%0 lives anew where %1 holds, %3 where it does not; with %2 the first are more."""
    text = EXCLUSIVE[: EXCLUSIVE.index("bb0")] + (
        "bb0\n%0:R=A\nB %0\n%1:P=A\n@%1 %0=A\n@%1 %2:P=A\n@!%1 %3:R=A\nNOP\n"
        "@%1 USE %0,%2\n@!%1 USE %3\n"
    )
    problem = AllocationProblem(parse_function(text, canonical=False))
    rows = lanes_apart(problem, ("R",))
    first, other = 1 << 0, 1 << 3
    assert rows == [0, first, 0, 0, first, first, other, first, 0, 0]
    assert other_pairs(problem, ("R",)) == ()


def mutual(*sets: tuple[int, ...]) -> list[int]:
    """Masks of the lanes that each of 12 is apart from: those in one of these sets with it."""
    return [
        sum(1 << other for other in range(12) if any(lane != other and {lane, other} <= set(each)
            for each in sets))
        for lane in range(12)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("clique", "others", "apart", "grown"),
    [
        ((), (0, 1, 2, 3), mutual((0, 1, 2)), (0, 1, 2)),
        ((), (0, 1, 2, 3), mutual((1, 2, 3)), (1, 2, 3)),
        ((), (0, 1, 2, 3, 4), mutual((1, 2, 3), (0, 4)), (1, 2, 3)),
        # Of equals the first.
        ((), (0, 1, 2, 3, 4, 5), mutual((0, 1, 2), (3, 4, 5)), (0, 1, 2)),
        # Only those count that are still to join.
        ((), (0, 1, 4, 6), mutual((0, 1), (2, 6), (5, 6), (7, 6), (9, 6)), (0, 1)),
        ((8,), (0, 1, 2, 3), mutual((8, 0, 1), (2, 3), (3, 8)), (0, 1, 8)),
        ((8,), (), mutual((8, 0, 1)), (8,)),
    ],
)
def test_those_that_fit_most_others_join_a_clique_first(
    clique: tuple[int, ...], others: tuple[int, ...], apart: list[int], grown: tuple[int, ...]
) -> None:
    def mask(lanes: tuple[int, ...]) -> int:
        return sum(1 << lane for lane in lanes)

    assert _grown(mask(clique), mask(others), apart) == mask(grown)


def test_fixed_units_of_files_that_a_shape_leaves_out_have_no_place() -> None:
    text = EXCLUSIVE.replace("R7", "R0")
    problem = AllocationProblem(parse_function(text, canonical=False))
    assert units_of_kind(problem, ("R", 0), (("R", 1),)) == {0}
    assert units_of_kind(problem, ("R", 0), (("UR", 4),)) == set()
    assert units_of_kind(problem, ("R", 0), (("R", 0),)) == set()


HEAD = EXCLUSIVE[: EXCLUSIVE.index("class P")]
# Two lanes each, of two classes that cannot be told by their sums.
OF_CLASSES = "class R 1 R\nclass R2 2 R/2\nclass R4 4 R/4\nclass R8 8 R/4\nbb0\n" + "".join(
    f"%{n}:{'R2' if n % 3 else 'R'}=A\nUSE %{n}\n" for n in range(60)
)
# Units that the function names, one after the other, now and then two.
OF_UNITS = "bb0\n" + "".join(
    f"R{n}=A\nUSE R{n}\n" if n % 7 else f"R{n},R0=A\nUSE R{n},R0\n" for n in range(60)
)


@pytest.mark.parametrize(("body", "count"), [(OF_CLASSES, 2), (OF_UNITS, 59)])
def test_points_of_as_many_lanes_come_in_one_order(body: str, count: int) -> None:
    problem = AllocationProblem(parse_function(HEAD + body, canonical=False))
    demands = Demands.of(problem, ("R",))
    assert demands.counts.dtype == demands.hottest.dtype == np.int64
    columns = [tuple(column) for column in demands.counts.T]
    chosen = [columns[point] for point in demands.hottest]
    assert len(chosen) == count
    assert chosen == sorted(chosen, key=lambda column: (-sum(column), column))


@pytest.mark.parametrize("target", ["gfx90a", "sm_80"])
def test_no_maximal_clique_contains_another_and_none_is_missing(target: str) -> None:
    contained = 0
    for seed in range(40):
        problem = AllocationProblem(random_function(seed, registers=14, blocks=5, target=target))
        for register_class in problem.function.virtual_registers[:3]:
            files = tuple(register_class.files)
            rows = lanes_apart(problem, files)
            largest = {
                mask
                for mask in rows
                if mask and not any(mask != other and mask & ~other == 0 for other in rows)
            }
            contained += len(set(rows) - {0}) - len(largest)
            found = maximal_cliques(problem, files)
            points = [clique.point for clique in found]
            assert points == sorted({rows.index(mask) for mask in largest})
    assert contained > 100
