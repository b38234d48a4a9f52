"""Bounds by blocks: tuples aligned to their width, over several cliques."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.brute_force import fewest_registers
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import (
    BoundKind,
    LowerBound,
    Refutation,
    Shape,
    check_certificate,
    lower_bound,
    search,
)
from verilocc_bench.analysis.lower_bounds.blocks import refute_by_blocks
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.search import BoundSearch
from verilocc_bench.analysis.lower_bounds.solve_blocks_again import no_filling_exists
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function

HEAD = """verilocc-bench 1
target sm_80
registers R:20 UR:4 P:4 UP:2
reserved R1
class R 1 R
class R2 2 R/2
class R4 4 R/4
class R3.by2 3 R/2
class R4.by2 4 R/2
"""

# What is left of %0 and %1 keeps half of two blocks each; %2 needs a third, whole.
FRAGMENTS = """bb0
%0:R4=OP
%1:R4=OP
OP %0,%1
%2:R4=OP %0.0-1,%1.2-3
OP %2,%0.0-1,%1.2-3
"""


def _problem(body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEAD + body, canonical=False))


def _straight_line(seed: int, registers: int = 6, tuples: str = "R4") -> AllocationProblem:
    """Tuples and single registers that begin and end at random, lane by lane."""
    rng = random.Random(seed)
    widths = [rng.choice((1, 1, 2, *2 * (int(tuples[1]),))) for _ in range(registers)]
    lines = ["bb0"]
    live: dict[int, set[int]] = {}
    for register, width in enumerate(widths):
        name = {1: "R", 2: "R2"}.get(width, tuples)
        read = [f"%{r}.{lane}" if widths[r] > 1 else f"%{r}" for r in live for lane in live[r]]
        lines.append(f"%{register}:{name}=OP {','.join(read)}".rstrip())
        live[register] = set(range(width))
        for lanes in live.values():
            for lane in sorted(lanes):
                if rng.random() < 0.25:
                    lanes.discard(lane)
    return _problem("\n".join([*lines, ""]))


def test_halves_of_tuples_leave_no_whole_block() -> None:
    problem = _problem(FRAGMENTS)
    weak, strong = lower_bound(problem, solver=False), lower_bound(problem)
    assert weak.value == 12
    assert strong.value == fewest_registers(problem) == 16
    assert strong.kind is BoundKind.BLOCKS
    assert len(strong.refutations[0].cliques) == 2
    check_certificate(problem, strong)
    assert lower_bound(problem, known=16) == strong


def test_what_some_assignment_uses_is_met_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """By blocks 13 to 16 are proved one after the other, or 16 alone."""
    problem = _problem(FRAGMENTS)
    asked: list[Shape] = []

    def refute(*arguments: Any) -> Refutation | None:
        asked.append(arguments[1])
        return refute_by_blocks(*arguments)

    monkeypatch.setattr(search, "refute_by_blocks", refute)
    assert lower_bound(problem, known=16).value == 16
    assert asked == [(("R", 15),)]
    asked.clear()
    assert lower_bound(problem).value == 16
    assert asked == [(("R", limit),) for limit in (12, 13, 14, 15, 16)]
    asked.clear()
    assert lower_bound(problem, known=17).value == 16
    assert asked == [(("R", limit),) for limit in (16, 12, 13, 14, 15)]
    asked.clear()
    smaller = lower_bound(problem, known=14)
    assert smaller.value == 14
    check_certificate(problem, smaller)
    asked.clear()
    # Nothing is left to prove, or nothing may be asked of a solver.
    assert lower_bound(problem, known=12).value == 12
    assert lower_bound(problem, known=16, solver=False) == lower_bound(problem, solver=False)
    assert asked == []


def test_the_weakest_kind_that_proves_a_bound_is_told() -> None:
    """Three even units: no blocks are needed to see that, wherever the search begins."""
    problem = _problem("bb0\n%0:R2.0!=A\n%1:R2.0!=A\n%2:R2.0!=A\nB %0.0,%1.0,%2.0\n")
    bound = lower_bound(problem)
    # One is beside the reserved R1.
    assert (bound.value, bound.kind) == (8, BoundKind.RESIDUES)
    assert lower_bound(problem, known=8) == bound


def test_what_no_file_has_room_for_has_no_figure() -> None:
    """Blocks show it, for every number of registers: the bound is one beyond all."""
    problem = AllocationProblem(
        parse_function(HEAD.replace("R:20", "R:12") + FRAGMENTS, canonical=False)
    )
    bound = lower_bound(problem)
    assert (bound.value, bound.kind) == (13, BoundKind.BLOCKS)
    assert fewest_registers(problem) is None
    check_certificate(problem, bound)


@pytest.mark.parametrize("tuples", ["R4", "R4.by2", "R3.by2"])
def test_no_assignment_of_a_tiny_function_uses_fewer(tuples: str) -> None:
    above_residues = 0
    for seed in range(30):
        problem = _straight_line(seed, tuples=tuples)
        fewest = fewest_registers(problem)
        if fewest is None:
            continue
        cliques = maximal_cliques(problem, ("R",))
        assert refute_by_blocks(problem, (("R", fewest),), cliques) is None, problem.normalized
        bound = lower_bound(problem, known=fewest)
        assert lower_bound(problem).value == bound.value <= fewest, (seed, problem.normalized)
        above_residues += bound.kind is BoundKind.BLOCKS
        check_certificate(problem, bound)
    assert above_residues > 0


@pytest.mark.parametrize("registers", [5, 8])
def test_guards_fixed_and_reserved_units_are_minded(registers: int) -> None:
    """Every value from the fewest on has room; what is refuted below is proved again."""
    for seed in range(25):
        problem = AllocationProblem(random_function(seed, registers=registers, target="sm_80"))
        fewest, cliques = fewest_registers(problem), maximal_cliques(problem, ("R",))
        for count in range(2, 13):
            refuted = refute_by_blocks(problem, (("R", count),), cliques)
            if refuted is None:
                continue
            assert fewest is None or count < fewest, (seed, problem.normalized)
            proved = LowerBound("vector", count + 1, BoundKind.BLOCKS, (refuted,))
            check_certificate(problem, proved)


def test_every_clique_of_a_refutation_is_needed() -> None:
    problem = _problem(FRAGMENTS)
    bound = lower_bound(problem)
    (refutation,) = bound.refutations
    for number, clique in enumerate(refutation.cliques):
        others = refutation.cliques[:number] + refutation.cliques[number + 1 :]
        for cliques in (others, (*others, replace(clique, lanes=clique.lanes[:1]))):
            changed = replace(refutation, cliques=cliques)
            with pytest.raises(InputError, match="of the blocks refutation fit within"):
                check_certificate(problem, replace(bound, refutations=(changed,)))
    wider = replace(refutation, shape=(("R", 16),))
    with pytest.raises(InputError, match="fit within"):
        check_certificate(problem, replace(bound, refutations=(wider,)))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_tuples_at_even_units_fill_blocks_by_pairs(target: str) -> None:
    """Nothing that fits by brute force is refuted; what is refuted is proved again."""
    kinds = set()
    for seed in range(40):
        problem = AllocationProblem(random_function(seed, registers=6, target=target))
        fewest, most = fewest_registers(problem), 8
        search = BoundSearch(problem, solver=False, schedule=False)
        bound = search.bound()
        while bound.value <= most and (raised := search.raised(bound)) is not None:
            bound = raised
        kinds.add(bound.kind)
        assert fewest is None or bound.value <= fewest, (seed, problem.normalized)
        check_certificate(problem, bound)
        for limit in range(1, 6):
            shape: Shape = (("v", limit), ("a", limit))
            cliques = maximal_cliques(problem, ("v", "a"))
            found = refute_by_blocks(problem, shape, cliques)
            if found is not None:
                assert no_filling_exists(problem, found)
                assert no_filling_exists(problem, replace(found, cliques=cliques))
    assert BoundKind.BLOCKS in kinds
