"""The program of blocks and its windows, on cases by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import block_program, blocks, solve_blocks_again
from verilocc_bench.analysis.lower_bounds.block_program import (
    BlockResult,
    _fillings,
    cut,
    solve_blocks,
)
from verilocc_bench.analysis.lower_bounds.blocks import LEVELS, _levels, refute_by_blocks, windows
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, Refutation, Shape
from verilocc_bench.analysis.lower_bounds.solve_blocks_again import (
    BlockPlace,
    PieceKind,
    _cut,
    _pieces,
    no_filling_exists,
)
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function

HEAD = """verilocc-bench 1
target sm_80
registers R:16 UR:4 P:4 UP:2
class R 1 R
class R2 2 R/2
class R4 4 R/4
"""
PAIRS = "bb0\n%0:R2=A\n%1:R2=A\n%2:R2=A\nB %0,%1,%2\n"
HALVES = "bb0\n%0:R2.0!=A\n%1:R2.0!=A\n%2:R2.0!=A\nB %0.0,%1.0,%2.0\n"
SINGLES = "bb0\n%0:R=A\n%1:R=A\n%2:R=A\nB %0,%1,%2\n%3:R=A\nB %3,R0\n"
MIXED = "bb0\n%0:R4=A\n%1:R2=A\n%2:R=A\n%3:R=A\nB %0.0-1,%1,%2,%3\n%4:R2=A\nB %4,%0.3,%2\n"
FIXED = "bb0(R2)\n%0:R2=A R2\n%1:R=A R2\nB %0,%1,R2\nC %0,R2\n"


def problem(body: str, head: str = HEAD) -> AllocationProblem:
    return AllocationProblem(parse_function(head + body, canonical=False))


def solved(body: str, limit: int, head: str = HEAD) -> tuple[bool, int]:
    each = problem(body, head)
    shape: Shape = (("R", limit),)
    cliques = maximal_cliques(each, ("R",))
    result = solve_blocks(each, shape, cliques, 1.0)
    assert result.deterministic_time >= 0
    again = no_filling_exists(each, Refutation(BoundKind.BLOCKS, shape, cliques))
    assert again == result.infeasible
    return result.infeasible, result.variables


@pytest.mark.parametrize(
    ("body", "fewest"),
    [(PAIRS, 6), (HALVES, 6), (SINGLES, 3), (MIXED, 7), (FIXED, 4)],
)
def test_registers_fit_from_so_many_units_on(body: str, fewest: int) -> None:
    for limit in range(1, 12):
        assert solved(body, limit)[0] == (limit < fewest), limit


def test_reserved_units_hold_nothing() -> None:
    head = HEAD.replace("class R ", "reserved R1 R[4:5]\nclass R ", 1)
    for limit in range(1, 12):
        assert solved(PAIRS, limit, head)[0] == (limit < 10)
        assert solved(SINGLES, limit, head)[0] == (limit < 4)


def test_programs_have_so_many_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = (PAIRS, HALVES, SINGLES, MIXED, FIXED)
    assert [solved(body, 8)[1] for body in bodies] == VARIABLES
    for body, count in zip(bodies, VARIABLES, strict=True):
        each = problem(body)
        cliques = maximal_cliques(each, ("R",))
        monkeypatch.setattr(block_program, "MOST_VARIABLES", count)
        assert solve_blocks(each, (("R", 2),), cliques, 1.0).infeasible
        assert solve_blocks(each, (("R", 8),), cliques, 1.0).variables == count
        for fewer in range(1, count):
            monkeypatch.setattr(block_program, "MOST_VARIABLES", fewer)
            result = solve_blocks(each, (("R", 8),), cliques, 1.0)
            assert fewer < result.variables <= count
            assert result == BlockResult(False, result.variables, 0.0)


VARIABLES = [2, 2, 2, 14, 4]


def three_pairs() -> tuple[AllocationProblem, list[Clique]]:
    """Cliques of one pair each.

    Two may be in R0 and R1, of which the function names one in the first clique: four ways.
    Three may be in R2 and R3: eight ways.
    """
    each = problem("bb0(R0)\n%0:R2=A\n%1:R2=A\n%2:R2=A\nB %0,%1,%2,R0\n")
    pairs = [((register, 0), (register, 1)) for register in range(3)]
    cliques = [Clique(0, 0, 0, pairs[0], (("R", 0),))]
    return each, cliques + [Clique(0, 0, 0, pair, ()) for pair in pairs[1:]]


def test_programs_beyond_the_bound_are_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    each, cliques = three_pairs()
    shape: Shape = (("R", 4),)
    assert solve_blocks(each, shape, cliques, 1.0).variables == 12
    for most, variables in ((12, 12), (11, 12), (5, 6), (4, 5), (3, 4), (0, 1)):
        monkeypatch.setattr(block_program, "MOST_VARIABLES", most)
        assert solve_blocks(each, shape, cliques, 1.0).variables == variables


def test_a_unit_is_taken_in_each_clique_that_names_it() -> None:
    each = problem("bb0(R0)\n%0:R=A\nB %0,R0\n")
    both = (Clique(0, 0, 0, ((0, 0),), (("R", 0),)), Clique(0, 0, 0, (), (("R", 0),)))
    for cliques in (both, both[::-1]):
        assert solve_blocks(each, (("R", 1),), cliques, 1.0).infeasible
        assert not solve_blocks(each, (("R", 2),), cliques, 1.0).infeasible


def test_no_cliques_make_no_program() -> None:
    result = solve_blocks(problem(SINGLES), (("R", 4),), (), 1.0)
    assert (result.infeasible, result.variables) == (False, 0)


@pytest.mark.parametrize("module", [block_program, solve_blocks_again])
def test_an_interrupt_is_left_to_python(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that takes the signal for itself stops, and the program goes on."""
    made: list[Any] = []
    real = module.new_solver

    def new_solver(*arguments: Any, **options: Any) -> Any:
        made.append(real(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(module, "new_solver", new_solver)
    assert solved(PAIRS, 4) == (True, 2)
    assert [solver.parameters.catch_sigint_signal for solver in made] == [False]


def test_places_are_cut_into_halves_numbered_from_0() -> None:
    pair, single = PieceKind(2, ("R",)), PieceKind(1, ("R",))
    starts = {(pair, 0), (pair, 2), (single, 0), (single, 1), (single, 3)}
    place = BlockPlace(4, frozenset(starts), frozenset({(0, 0), (1, 7), (2, 7), (3, 1)}))
    assert list(place.halves()) == [
        BlockPlace(
            2, frozenset({(pair, 0), (single, 0), (single, 1)}), frozenset({(0, 0), (1, 7)})
        ),
        BlockPlace(2, frozenset({(pair, 0), (single, 1)}), frozenset({(0, 7), (1, 1)})),
    ]  # fmt: skip


def test_places_are_filled_in_every_way_once() -> None:
    pair = PieceKind(2, ("R",))
    place = BlockPlace(2, frozenset({(pair, 0)}), frozenset({(0, 9)}))
    low, high, other, taken = (
        (pair, frozenset(cells)) for cells in ({(0, 0)}, {(1, 0)}, {(0, 0), (1, 1)}, {(0, 9)})
    )
    found = [held for held, _ in place.fillings([low, high, other, taken])]
    assert sorted(found, key=len) == [(), (low,), (high,), (other,), (low, high), (high, other)]
    fullest = dict(place.fillings([low, high]))[low, high]
    assert fullest == BlockPlace(2, place.starts, frozenset({(0, 9), (0, 0), (1, 0)}))


def test_other_files_have_places_of_their_own() -> None:
    head = HEAD.replace("class R 1 R", "class P 1 P", 1)
    each = problem("bb0\n%0:P=A\n%1:P=A\n%2:P=A\nB %0,%1,%2\n", head)
    cliques = maximal_cliques(each, ("P",))
    for limit in range(1, 5):
        shape: Shape = (("P", limit),)
        assert solve_blocks(each, shape, cliques, 1.0).infeasible == (limit < 3)
        assert no_filling_exists(each, Refutation(BoundKind.BLOCKS, shape, cliques)) == (limit < 3)


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("R4.by2 4 R/2", [(0, 2), (2, 2)]),
        ("R4.by8 4 R/8", [(0, 4)]),
        ("R3 3 R/4", [(0, 2), (2, 1)]),
        ("R7 7 R/4", [(0, 4), (4, 2), (6, 1)]),
        ("R3.by1 3 R", [(0, 1), (1, 1), (2, 1)]),
        ("R2.to1.by1 2 R[0-1]", [(0, 1), (1, 1)]),
        ("R.by2 1 R/2", [(0, 1)]),
    ],
)
def test_registers_are_cut_into_aligned_pieces(kind: str, pieces: list[tuple[int, int]]) -> None:
    each = problem(f"bb0\n%0:{kind.split(maxsplit=1)[0]}=A\nB %0\n", f"{HEAD}class {kind}\n")
    (register_class,) = each.function.virtual_registers
    assert [(lanes.start, len(lanes)) for lanes in cut(register_class)] == pieces
    assert list(_cut(each, register_class)) == pieces
    whole = Refutation(BoundKind.BLOCKS, (("R", 16),), maximal_cliques(each, ("R",)))
    held = _pieces(each, whole, {register_class: tuple(pieces)}).elements()
    wanted = [(length, [(lane, 0) for lane in range(length)]) for _, length in pieces]
    assert sorted((kind.length, sorted(cells)) for kind, cells in held) == sorted(wanted)


def test_pieces_may_be_apart_but_not_across_places() -> None:
    """Tuples of four at even units are two pairs each; a unit beside one is left to others."""
    head = f"{HEAD}class R4.by2 4 R/2\n"
    for lanes, fewest in (("", 8), (".0", 8), (".0-1", 8)):
        body = f"bb0\n%0:R4.by2=A\n%1:R4.by2=A\nB %0,%1{lanes}\n"
        for limit in range(1, 12):
            assert solved(body, limit, head)[0] == (limit < fewest), (lanes, limit)


def test_ways_to_fill_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the program: four ways for R0 and R1, eight for R2 and R3."""
    each, cliques = three_pairs()
    refutation = Refutation(BoundKind.BLOCKS, (("R", 4),), tuple(cliques))
    monkeypatch.setattr(solve_blocks_again, "MOST_FILLINGS", 12)
    assert not no_filling_exists(each, refutation)
    monkeypatch.setattr(solve_blocks_again, "MOST_FILLINGS", 11)
    with pytest.raises(InputError) as caught:
        no_filling_exists(each, refutation)
    assert caught.value.message == (
        "there are too many ways to fill blocks: expected fewer cliques"
    )


def test_fillings_are_registers_in_order_each_once() -> None:
    free = (0b1111, 0b1011)
    one, two, three = (0b0010, 0), (0b0100, 0b0010), (0b1000, 0b1000)
    found = _fillings(free, [one, two, three], 99)
    assert sorted(found) == sorted(
        [
            ((), free),
            ((one,), (0b1101, 0b1011)),
            ((two,), (0b1011, 0b1001)),
            ((three,), (0b0111, 0b0011)),
            ((one, two), (0b1001, 0b1001)),
            ((one, three), (0b0101, 0b0011)),
            ((two, three), (0b0011, 0b0001)),
            ((one, two, three), (0b0001, 0b0001)),
        ]
    )
    assert len(_fillings(free, [one, two, three], 3)) == 4
    assert len(_fillings(free, [one, two, three], 7)) == 8
    assert _fillings((0b1110, 0b1011), [one], 99) == [((), (0b1110, 0b1011))]
    assert _fillings((0b1111, 0b0001), [three], 99) == [((), (0b1111, 0b0001))]


def stubs(*lanes: int) -> list[Clique]:
    """Cliques of so many lanes, every second one a unit of the function's own."""
    return [
        Clique(
            number,
            0,
            number,
            tuple((n, 0) for n in range((count + 1) // 2)),
            tuple(("R", n) for n in range(count // 2)),
        )
        for number, count in enumerate(lanes)
    ]


@pytest.mark.parametrize(
    ("lanes", "level", "found"),
    [
        ((1,), (4, 1), [[0]]),
        ((1, 2, 3, 4), (4, 1), [[0, 1, 2, 3]]),
        ((1, 2, 3, 4, 9), (4, 1), [[2, 3, 4], [0, 1, 2, 3]]),
        ((9, 2, 3, 4, 1), (4, 1), [[0, 1, 2, 3], [2, 3, 4]]),
        ((9, 2, 3, 4, 1), (8, 1), [[0, 1, 2, 3, 4]]),
        ((1, 2, 9, 4, 1, 1, 1), (4, 1), [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6]]),
        ((1, 2, 3, 3, 1), (4, 2), [[1, 2, 4]]),
        ((1, 2, 4, 3, 1, 1, 2, 5, 1), (4, 2), [[1, 2, 4, 7], [4, 7, 8]]),
    ],
)
def test_windows_are_of_the_crowded_ones(
    lanes: tuple[int, ...], level: tuple[int, int], found: list[list[int]]
) -> None:
    points = [[clique.point for clique in each] for each in windows(stubs(*lanes), *level)]
    assert points == found


def test_windows_of_a_level_are_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(windows(stubs(*range(1, 25)), 4, 1)) == 11
    assert len(windows(stubs(*range(1, 99)), 4, 1)) == 12
    monkeypatch.setattr(blocks, "MOST_WINDOWS", 3)
    assert [w[0].point for w in windows(stubs(*range(1, 25)), 4, 1)] == [20, 18, 16]


def test_levels_hold_more_than_smaller_ones() -> None:
    assert _levels(0) == []
    assert _levels(1) == _levels(4) == [(4, 1)]
    assert _levels(5) == _levels(8) == [(4, 1), (8, 1)]
    assert _levels(9) == [(4, 1), (8, 1), (8, 2), (16, 1)]
    assert _levels(17) == list(dict.fromkeys(each for each in LEVELS if each != (8, 8)))
    assert _levels(33) == list(LEVELS)


def faked(monkeypatch: pytest.MonkeyPatch, needed: set[int], variables: int = 7) -> list[list[int]]:
    """What is asked, where programs that have all the needed cliques are infeasible."""
    asked: list[list[int]] = []

    def solve(_: Any, shape: Shape, cliques: Sequence[Clique], time: float) -> BlockResult:
        assert (shape, time) == ((("R", 8),), 0.1)
        asked.append([clique.point for clique in cliques])
        return BlockResult(needed <= set(asked[-1]), variables, float(len(cliques)))

    monkeypatch.setattr(blocks, "solve_blocks", solve)
    return asked


def test_cliques_that_are_not_needed_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    cliques = stubs(1, 1, 1, 1, 1, 1)
    each = problem(PAIRS)
    for needed in ({0}, {3}, {0, 3}, {1, 2, 3}, {4, 5}, {0, 5}):
        faked(monkeypatch, needed)
        found = refute_by_blocks(each, (("R", 8),), cliques)
        assert found is not None
        assert {clique.point for clique in found.cliques} == needed
        assert (found.kind, found.shape) == (BoundKind.BLOCKS, (("R", 8),))
        assert found.deterministic_time == len(needed)
    faked(monkeypatch, {9})
    assert refute_by_blocks(each, (("R", 8),), cliques) is None
    assert refute_by_blocks(each, (("R", 8),), []) is None


def test_effort_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level ends where the programs so far exceed its share; the next one may use the rest."""
    cliques = stubs(*range(1, 30))
    each = problem(PAIRS)
    every = [len(windows(cliques, *level)) for level in _levels(29)]
    for most, asked in ((10**6, sum(every)), (0, 1), (26, 7), (27, 8), (53, 12), (54, 13)):
        monkeypatch.setattr(blocks, "LEVEL_EFFORT", most)
        calls = faked(monkeypatch, {99})
        assert refute_by_blocks(each, (("R", 8),), cliques) is None
        assert len(calls) == asked, most


def test_likely_cliques_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cliques = stubs(*range(1, 30))
    calls = faked(monkeypatch, {3, 20})
    found = refute_by_blocks(problem(PAIRS), (("R", 8),), cliques, [cliques[3], cliques[20]])
    assert found is not None
    assert {clique.point for clique in found.cliques} == {3, 20}
    assert calls[0] == [3, 20]
