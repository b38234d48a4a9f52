"""Each kind of refutation against trying everything, on small generated functions."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from ortools.sat.python import cp_model

from tests.analysis.bounds import TARGETS, numbers, problems
from tests.analysis.brute_force import fewest_registers
from verilocc_bench.analysis import VECTOR, AllocationProblem, iterate_bits
from verilocc_bench.analysis.lower_bounds import residue_schedule, residues
from verilocc_bench.analysis.lower_bounds.block_program import are_nested, solve_blocks
from verilocc_bench.analysis.lower_bounds.blocks import refute_by_blocks
from verilocc_bench.analysis.lower_bounds.checking import _has_matching
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques, other_pairs
from verilocc_bench.analysis.lower_bounds.demands import Demands, units_of_kind
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, Refutation, Shape
from verilocc_bench.analysis.lower_bounds.residue_schedule import (
    ScheduleResult,
    UnitTypes,
    refute_by_schedule,
    solve_schedule,
)
from verilocc_bench.analysis.lower_bounds.residues import refute_by_residues
from verilocc_bench.analysis.lower_bounds.shapes import file_group, most_registers, shapes_of_value
from verilocc_bench.analysis.lower_bounds.solve_again import no_placement_exists, no_schedule_exists
from verilocc_bench.analysis.lower_bounds.solve_blocks_again import no_filling_exists
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function

# Residues, by Hall's condition and by matchings.


@pytest.mark.parametrize("target", TARGETS)
def test_halls_condition_fails_where_a_clique_has_no_matching(target: str) -> None:
    refuted = 0
    for problem in problems(30, target, registers=10):
        files = file_group(problem.function, problem.target, VECTOR)
        demands, cliques = Demands.of(problem, files), maximal_cliques(problem, files)
        top = most_registers(problem, VECTOR)
        for value in range(top + 1):
            for shape in shapes_of_value(problem, VECTOR, value):
                found = refute_by_residues(demands, shape)
                fit = all(_has_matching(problem, clique, shape) for clique in cliques)
                assert (found is None) == fit, (value, shape, problem.normalized)
                if found is None:
                    continue
                refuted += 1
                assert (found.shape, found.solver, len(found.cliques)) == (shape, "", 1)
                (clique,) = found.cliques
                assert not _has_matching(problem, clique, shape)
                every = numbers(problem, clique) == set(iterate_bits(demands.rows[clique.point]))
                places = set().union(*(units_of_kind(problem, k, shape) for k in demands.kinds))
                lanes = len(clique.lanes) + len(clique.fixed)
                if found.kind is BoundKind.PRESSURE:
                    assert every
                    assert lanes > len(places)
                else:
                    assert found.kind is BoundKind.RESIDUES
                    hottest = max(bin(row).count("1") for row in demands.rows)
                    assert hottest <= len(places)
    assert refuted > 10


def halves_elsewhere() -> AllocationProblem:
    """Three pairs of which the even unit is live; elsewhere a single VGPR and an AGPR."""
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:8 a:4 s:8 vcc:2=vcc_lo,vcc_hi\n"
        "class V 1 v\nclass V2 2 v/2\nclass A 1 a\nbb0\n%0:V2.0!=A\n%1:V2.0!=A\n%2:V2.0!=A\n"
        "USE %0.0,%1.0,%2.0\n%3:V=A\n%4:A=A\nUSE %3,%4\n"
    )
    return AllocationProblem(parse_function(text, canonical=False))


def test_alignment_counts_where_some_lanes_must_be_in_another_file() -> None:
    """Four VGPRs are enough for three lanes, but they have two even units."""
    problem = halves_elsewhere()
    demands = Demands.of(problem, ("v", "a"))
    found = refute_by_residues(demands, (("v", 4), ("a", 4)))
    assert found is not None
    assert found.kind is BoundKind.RESIDUES
    assert found.cliques[0].lanes == ((0, 0), (1, 0), (2, 0))
    assert refute_by_residues(demands, (("v", 6), ("a", 4))) is None


def test_lanes_of_one_file_are_too_many_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever unions of kinds are looked at: the lanes are fewer than all units of all files."""
    monkeypatch.setattr(residues, "MOST_UNIONS", 1)
    demands = Demands.of(halves_elsewhere(), ("v", "a"))
    found = refute_by_residues(demands, (("v", 2), ("a", 4)))
    assert found is not None
    assert found.kind is BoundKind.RESIDUES
    assert found.cliques[0].lanes == ((0, 0), (1, 0), (2, 0))
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    assert refute_by_residues(Demands.of(problem, ("s",)), (("s", 8),)) is None


def test_files_are_looked_at_first_where_they_divide_the_lanes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They do where some lanes must be in AGPRs; not where all may be in VGPRs, or have no room."""
    asked: list[str] = []
    for name in ("_unions", "_unions_of_files"):
        real = getattr(residues, name)

        def made(*arguments: Any, name: str = name, real: Any = real) -> Any:
            asked.append(name)
            return real(*arguments)

        monkeypatch.setattr(residues, name, made)
    divided = Demands.of(halves_elsewhere(), ("v", "a"))
    crossed = AllocationProblem(parse_function(CROSSED, canonical=False))
    together = Demands.of(crossed, ("v", "a"))
    for demands, shape in ((divided, (("v", 6), ("a", 4))), (together, (("v", 6), ("a", 0)))):
        assert refute_by_residues(demands, shape) is None
    assert asked == ["_unions_of_files", "_unions", "_unions", "_unions_of_files"]
    asked.clear()
    assert refute_by_residues(together, (("v", 0), ("a", 0))) is not None
    assert asked == ["_unions"]


def test_unions_of_kinds_are_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of few units are joined first; the whole is always there, and is the last."""
    units = [0b1110, 0b10000, 0b1110, 0b100000]
    unions = residues._unions(units, units)
    assert sorted(unions.sizes) == [0, 1, 1, 2, 3, 4, 4, 5]
    assert unions.sizes[-1] == 5
    assert unions.within[-1].tolist() == [1, 1, 1, 1]
    monkeypatch.setattr(residues, "MOST_UNIONS", 4)
    unions = residues._unions(units, units)
    found = sorted(zip(unions.sizes, unions.within.tolist(), strict=True))
    assert found == [
        (0, [0, 0, 0, 0]), (1, [0, 0, 0, 1]), (1, [0, 1, 0, 0]), (2, [0, 1, 0, 1]),
        (5, [1, 1, 1, 1]),
    ]  # fmt: skip
    assert unions.sizes[-1] == 5
    assert unions.within.dtype == np.int64


def test_unions_of_files_have_the_units_that_kinds_have_there() -> None:
    problem = halves_elsewhere()
    shape: Shape = (("v", 3), ("a", 2))
    assert residues._mask_of_file(problem, "v", 3) == 0b111
    assert residues._mask_of_file(problem, "a", 2) == 0b11 << 256
    assert residues._mask_of_file(problem, "a", 0) == 0
    either = 0b10 | 0b10 << 256
    units = [0b110, 0b10 << 256, either]
    unions = residues._unions_of_files(problem, shape, units, units)
    assert unions.sizes == (2, 1, 3)
    assert unions.within.tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 1]]


# Schedules of residues.


def schedules(problem: AllocationProblem, shape: Shape, cliques: tuple[Clique, ...]) -> bool:
    """Whether some choice of residues leaves room at every clique, by trying all."""
    classes, placements = problem.function.virtual_registers, problem.placements
    modulus = max((r.step for c in set(classes) for r in c.ranges), default=1)
    limits = {placements.first_unit[file]: (file, limit) for file, limit in shape}

    def kind(unit: int) -> tuple[str, int] | None:
        for first, (file, limit) in limits.items():
            if first <= unit < first + limit:
                return file, (unit - first) % modulus
        return None

    registers = sorted({r for c in cliques for r, _ in c.lanes})
    choices = []
    for register in registers:
        width = classes[register].width
        patterns = {
            tuple(kind(base + lane) for lane in range(width))
            for base in placements.legal[classes[register]]
        }
        choices.append([p for p in patterns if None not in p])
    for chosen in itertools.product(*choices):
        pattern = dict(zip(registers, chosen, strict=True))
        for clique in cliques:
            wanted = [pattern[register][lane] for register, lane in clique.lanes]
            taken = {placements.first_unit[f] + n for f, n in clique.fixed} | placements.reserved
            free = [
                kind(first + n)
                for first, (_, limit) in limits.items()
                for n in range(limit)
                if first + n not in taken
            ]
            if any(wanted.count(each) > free.count(each) for each in set(wanted)):
                break
        else:
            return True
    return False


def check_schedule(
    problem: AllocationProblem, found: Refutation, cliques: tuple[Clique, ...]
) -> None:
    """No clique more than are needed, and these from the largest on."""
    assert found.kind is BoundKind.RESIDUE_SCHEDULE
    assert re.fullmatch(r"cp-sat \d+\.\d+\.\d+", found.solver)
    assert found.deterministic_time >= 0
    assert set(found.cliques) <= set(cliques)
    assert not schedules(problem, found.shape, found.cliques)
    for clique in found.cliques if len(found.cliques) > 1 else ():
        others = tuple(c for c in found.cliques if c is not clique)
        assert schedules(problem, found.shape, others)


@pytest.mark.parametrize("target", TARGETS)
def test_residues_of_several_cliques_together(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = set()
    for problem in problems(30, target, registers=5):
        files = file_group(problem.function, problem.target, VECTOR)
        cliques = maximal_cliques(problem, files)[:5]
        if not cliques:
            continue
        for limit in (2, 4, 6):
            shape = tuple((file, min(limit, 4) if file == "a" else limit) for file in files)
            expected = schedules(problem, shape, cliques)
            types = UnitTypes.within(problem, shape)
            result = solve_schedule(types, cliques, 5.0)
            assert result.feasible is expected
            assert expected or result.patterns == {}
            assert result.deterministic_time >= 0
            refutation = Refutation(BoundKind.RESIDUE_SCHEDULE, shape, cliques)
            assert no_schedule_exists(problem, refutation) == (not expected)
            outcomes.add(expected)
            if expected:
                assert result.patterns.keys() == {r for c in cliques for r, _ in c.lanes}
            for first in (24, 2, 1):
                monkeypatch.setattr(residue_schedule, "FIRST_CLIQUES", first)
                monkeypatch.setattr(residue_schedule, "ADDED_CLIQUES", 1)
                found = refute_by_schedule(problem, shape, cliques, 5.0)
                assert (found is None) == expected
                if found is not None:
                    check_schedule(problem, found, cliques)
    assert outcomes == {False, True}


def test_types_are_files_and_residues() -> None:
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:8 a:4 s:8 vcc:2=vcc_lo,vcc_hi\n"
        "reserved v1 v4 a3\nclass AV2 2 v/2 a/2\nclass V 1 v\nbb0\n%0:AV2=A\n%1:V=A\n"
    )
    problem = AllocationProblem(parse_function(text, canonical=False))
    types = UnitTypes.within(problem, (("v", 5), ("a", 4)))
    assert types.of == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 256: 2, 257: 3, 258: 2, 259: 3}
    assert types.capacity == (2, 1, 2, 1)
    pair, single = problem.function.virtual_registers
    assert types.patterns(pair) == ((0, 1), (2, 3))
    assert types.patterns(single) == ((0,), (1,))
    assert (types.problem, types.shape) == (problem, (("v", 5), ("a", 4)))
    assert UnitTypes.within(problem, (("v", 1), ("a", 0))).patterns(pair) == ()
    empty = AllocationProblem(parse_function(text[: text.index("class")] + "bb0\nA\n"))
    assert set(UnitTypes.within(empty, (("v", 3),)).of.values()) == {0}


CROSSED = """verilocc-bench 1
target gfx942
registers v:8 a:0 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
bb0(v2)
%0:V2.0!=A
%1:V2.0!=A
USE %0.0,%1.0,v2
"""


def test_units_of_the_function_itself_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even units are v0, v2 and v4; v2 holds a value of the function's own."""
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    cliques = maximal_cliques(problem, ("v", "a"))
    assert any(clique.fixed for clique in cliques)
    for limit, fit in ((4, False), (6, True)):
        shape: Shape = (("v", limit), ("a", 0))
        types = UnitTypes.within(problem, shape)
        assert solve_schedule(types, cliques, 5.0).feasible is fit
        found = refute_by_schedule(problem, shape, cliques, 5.0)
        assert (found is None) == fit
        assert no_schedule_exists(problem, Refutation(BoundKind.RESIDUES, shape, cliques)) != fit
    reserved = CROSSED.replace("class V ", "reserved v2\nclass V ", 1)
    other = AllocationProblem(parse_function(reserved, canonical=False))
    taken = residue_schedule._taken(types, cliques[-1])
    assert taken == {0: 1}
    types = UnitTypes.within(other, (("v", 6), ("a", 0)))
    assert residue_schedule._taken(types, maximal_cliques(other, ("v", "a"))[-1]) == {}
    assert types.capacity == (2, 3)

    real = residue_schedule.solve_interruptibly

    def undecided(solver: Any, model: Any) -> Any:
        real(solver, model)
        return cp_model.UNKNOWN

    monkeypatch.setattr(residue_schedule, "solve_interruptibly", undecided)
    result = solve_schedule(types, cliques, 5.0)
    assert (result.feasible, result.patterns) == (None, {})
    assert result.deterministic_time >= 0
    assert refute_by_schedule(problem, (("v", 4), ("a", 0)), cliques, 5.0) is None


def test_the_largest_cliques_are_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    small = Clique(0, 0, -1, ((0, 0),), ())
    large = Clique(1, 0, 0, ((0, 0), (1, 0)), ())
    mixed = Clique(2, 0, 1, ((0, 0),), (("v", 2), ("v", 0)))
    asked: list[tuple[Clique, ...]] = []

    def solve(types: UnitTypes, cliques: list[Clique], time: float) -> ScheduleResult:
        asked.append(tuple(cliques))
        return ScheduleResult(True, {0: (0, 1)}, 0.0)

    monkeypatch.setattr(residue_schedule, "solve_schedule", solve)
    monkeypatch.setattr(residue_schedule, "FIRST_CLIQUES", 1)
    monkeypatch.setattr(residue_schedule, "ADDED_CLIQUES", 1)
    shape: Shape = (("v", 4), ("a", 0))
    # %1 has no pattern yet: its clique is added. That of %0 alone has room.
    assert refute_by_schedule(problem, shape, (small, large, mixed), 5.0) is None
    assert asked == [(mixed,), (mixed, large)]
    asked.clear()
    assert refute_by_schedule(problem, shape, (small, small, small), 5.0) is None
    assert asked == [(small,)]
    asked.clear()
    monkeypatch.setattr(residue_schedule, "FIRST_CLIQUES", 2)
    assert refute_by_schedule(problem, shape, (small, large, mixed), 5.0) is None
    assert asked == [(mixed, large)]


def test_what_a_choice_of_residues_leaves_open_is_told() -> None:
    """Of five units, v0, v2 and v4 are even and v1 and v3 odd."""
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    types = UnitTypes.within(problem, (("v", 5), ("a", 0)))
    assert types.capacity == (3, 2)

    def shortage(lanes: int, fixed: tuple[int, ...], patterns: dict[int, int]) -> tuple[int, int]:
        clique = Clique(
            0, 0, 0, tuple((n, 0) for n in range(lanes)), tuple(("v", n) for n in fixed)
        )
        return residue_schedule._shortage(types, clique, {r: (p,) for r, p in patterns.items()})

    assert shortage(2, (), {0: 1, 1: 1}) == (0, 0)
    assert shortage(3, (), {0: 1, 1: 1, 2: 1}) == (-1, 0)
    assert shortage(4, (), dict.fromkeys(range(4), 1)) == (-2, 0)
    assert shortage(3, (), {0: 1, 1: 1, 2: 0}) == (0, 0)
    assert shortage(3, (1, 3), {0: 1, 1: 0}) == (-1, -1)
    assert shortage(3, (0, 1, 2), {}) == (0, -3)
    assert shortage(7, (1,), dict.fromkeys(range(3), 1) | dict.fromkeys(range(3, 7), 0)) == (-3, 0)


def test_cliques_are_dropped_by_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each half two questions at most; the last is of what is left, and tells the time."""
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    types = UnitTypes.within(problem, (("v", 4), ("a", 0)))

    def reduced(count: int, needed: set[int]) -> tuple[set[int], int]:
        asked = []

        def solve(_: UnitTypes, cliques: list[Clique], time: float) -> ScheduleResult:
            asked.append(len(cliques))
            fits = not needed <= {clique.point for clique in cliques}
            return ScheduleResult(fits, {}, 0.25 * len(cliques))

        monkeypatch.setattr(residue_schedule, "solve_schedule", solve)
        cliques = [Clique(point, 0, point, ((0, 0),), ()) for point in range(count)]
        found = residue_schedule._reduced(types, cliques, 5.0)
        assert (found.kind, found.shape) == (BoundKind.RESIDUE_SCHEDULE, types.shape)
        assert found.deterministic_time == 0.25 * len(found.cliques)
        return {clique.point for clique in found.cliques}, len(asked)

    assert reduced(32, {0}) == ({0}, 2 * 5 + 1)
    assert reduced(8, {0}) == ({0}, 2 * 3 + 1)
    assert reduced(3, {0}) == ({0}, 3 + 1)
    assert reduced(2, {0, 1}) == ({0, 1}, 2 + 1)
    assert reduced(1, {0}) == ({0}, 1)
    assert reduced(9, {1, 7})[0] == {1, 7}


# Blocks.

ALIGNED = """verilocc-bench 1
target sm_80
registers R:12 UR:4 P:4 UP:2
reserved R1
class R 1 R
class R2 2 R/2
class R4 4 R/4
"""


@pytest.mark.parametrize("registers", [4, 6])
def test_fillings_of_blocks_are_counted_twice_alike(registers: int) -> None:
    outcomes = set()
    for seed in range(30):
        function = random_function(seed, registers=registers, blocks=3, target="sm_80")
        problem = AllocationProblem(function)
        cliques = maximal_cliques(problem, ("R",))
        if not cliques:
            continue
        fewest = fewest_registers(problem)
        for limit in (2, 3, 4, 5, 6):
            shape: Shape = (("R", limit),)
            for chosen in (cliques[:2], cliques):
                result = solve_blocks(problem, shape, chosen, 1.0)
                refutation = Refutation(BoundKind.BLOCKS, shape, tuple(chosen))
                assert result.infeasible == no_filling_exists(problem, refutation)
                assert result.variables > 0 or not any(clique.lanes for clique in chosen)
                assert not (result.infeasible and fewest is not None and fewest <= limit)
                outcomes.add(result.infeasible)
            found = refute_by_blocks(problem, shape, cliques)
            if found is not None:
                assert (found.kind, found.shape) == (BoundKind.BLOCKS, shape)
                assert re.fullmatch(r"cp-sat \d+\.\d+\.\d+", found.solver)
                assert no_filling_exists(problem, found)
    assert outcomes == {False, True}


@pytest.mark.parametrize(
    ("classes", "files", "nested"),
    [
        ("class R4 4 R/4\nclass R 1 R\nbb0\n%0:R4=A\n%1:R=A\n", ("R",), True),
        ("class R 1 R\nclass P 1 P\nbb0\n%0:R=A\n%1:P=A\n", ("P",), True),
        ("class R 1 R\nbb0\n%0:R=A\n", ("R", "UR"), False),
        ("class R 1 R\nbb0\n%0:R=A\n", ("P",), False),
        ("class R4 4 R/4\nclass R2.by1 2 R\nbb0\n%0:R4=A\n%1:R2.by1=A\n", ("R",), False),
    ],
)
def test_registers_are_nested_where_all_are_aligned(
    classes: str, files: tuple[str, ...], nested: bool
) -> None:
    head = ALIGNED[: ALIGNED.index("class")]
    problem = AllocationProblem(parse_function(head + classes, canonical=False))
    assert are_nested(problem, files) == nested


def placements(problem: AllocationProblem, shape: Shape, cliques: tuple[Clique, ...]) -> bool:
    """Whether some choice of bases keeps the lanes of each clique apart, by trying all."""
    classes, places = problem.function.virtual_registers, problem.placements
    inside = {places.first_unit[file] + n for file, limit in shape for n in range(limit)}
    registers = sorted({r for c in cliques for r, _ in c.lanes})
    own = [{places.first_unit[f] + n for f, n in c.fixed} for c in cliques]

    def place(chosen: int, taken: list[set[int]]) -> bool:
        if chosen == len(registers):
            return True
        register = registers[chosen]
        width = classes[register].width
        for base in places.legal[classes[register]]:
            if not set(range(base, base + width)) <= inside:
                continue
            lanes = [
                {base + lane for r, lane in clique.lanes if r == register} for clique in cliques
            ]
            if all(not new & held for new, held in zip(lanes, taken, strict=True)):
                both = [new | held for new, held in zip(lanes, taken, strict=True)]
                if place(chosen + 1, both):
                    return True
        return False

    return place(0, own)


def test_units_of_the_function_itself_are_no_place() -> None:
    problem = AllocationProblem(parse_function(CROSSED, canonical=False))
    cliques = maximal_cliques(problem, ("v", "a"))
    for limit in (2, 3, 4, 5):
        shape: Shape = (("v", limit), ("a", 0))
        assert no_placement_exists(problem, Refutation(BoundKind.PLACEMENT, shape, cliques))
    shape = (("v", 6), ("a", 0))
    assert not no_placement_exists(problem, Refutation(BoundKind.PLACEMENT, shape, cliques))


def test_reserved_units_are_those_of_their_file() -> None:
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:8 a:8 s:8 vcc:2=vcc_lo,vcc_hi\n"
        "reserved a1\nclass A 1 a\nclass AV 1 v a\nbb0\n%0:A=A\n%1:A=A\n%2:AV=A\n"
        "USE %0,%1,%2\n"
    )
    problem = AllocationProblem(parse_function(text, canonical=False))
    (clique,) = maximal_cliques(problem, ("a",))
    assert len(clique.lanes) == 3
    for limits, fit in (((0, 3), False), ((0, 4), True), ((1, 2), False), ((1, 3), True)):
        shape = tuple(zip(("v", "a"), limits, strict=True))
        refutation = Refutation(BoundKind.RESIDUE_SCHEDULE, shape, (clique,))
        assert no_schedule_exists(problem, refutation) != fit
    # In a file that the shape leaves out there are no units at all.
    alone = Clique(clique.point, clique.block, clique.instruction, ((2, 0),), ())
    for limit, fit in ((0, False), (1, True)):
        refutation = Refutation(BoundKind.RESIDUE_SCHEDULE, (("v", limit),), (alone,))
        assert no_schedule_exists(problem, refutation) != fit


@pytest.mark.parametrize("target", TARGETS)
def test_placements_are_those_of_brute_force(target: str) -> None:
    outcomes = set()
    for problem in problems(20, target, registers=6):
        files = file_group(problem.function, problem.target, VECTOR)
        cliques = (*maximal_cliques(problem, files), *other_pairs(problem, files))
        for limit in (1, 2, 4, 6):
            shape = tuple((file, min(limit, 4) if file == "a" else limit) for file in files)
            fits_in = placements(problem, shape, cliques)
            refutation = Refutation(BoundKind.PLACEMENT, shape, cliques)
            if cliques:
                assert no_placement_exists(problem, refutation, 5.0) != fits_in
                outcomes.add(fits_in)
    assert outcomes == {False, True}
