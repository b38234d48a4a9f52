"""Lower bounds: never above the optimum, and proved by what they carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.bounds import PARITIES, TARGETS
from tests.analysis.brute_force import fewest_registers
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import search
from verilocc_bench.analysis.lower_bounds.checking import check_certificate
from verilocc_bench.analysis.lower_bounds.records import BoundKind, LowerBound, Refutation
from verilocc_bench.analysis.lower_bounds.search import BoundSearch, lower_bound
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function


def _problem(
    body: str, target: str = "gfx942", files: str = "v:16 a:0 s:8 vcc:2=vcc_lo,vcc_hi"
) -> AllocationProblem:
    classes = "class V 1 v\nclass V2 2 v/2\n"
    if target == "sm_80":
        classes = "class R 1 R\nclass R2 2 R/2\nclass R4 4 R/4\n"
    text = f"verilocc-bench 1\ntarget {target}\nregisters {files}\n"
    if target == "sm_80":
        text += "reserved R1\n"
    return AllocationProblem(parse_function(text + classes + body, canonical=False))


PAIRS = """bb0
%0:V2=OP
%1:V2=OP
%2:V2=OP
OP %0,%1,%2
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_assignment_of_a_tiny_function_uses_fewer(target: str) -> None:
    above_pressure = {False: 0, True: 0}
    for seed in range(90):
        problem = AllocationProblem(random_function(seed, registers=6, target=target))
        fewest = fewest_registers(problem)
        for solver in above_pressure:
            bound = lower_bound(problem, solver=solver)
            assert fewest is None or bound.value <= fewest, (seed, problem.normalized)
            assert bound.value >= problem.pressure.maximum["vector"]
            above_pressure[solver] += bound.value > problem.pressure.maximum["vector"]
            check_certificate(problem, bound)
    assert min(above_pressure.values()) > 5


@pytest.mark.parametrize("group", ["s", "vcc", "P"])
def test_other_files_have_bounds_that_can_be_checked(group: str) -> None:
    for seed in range(40):
        target = "sm_80" if group == "P" else "gfx942"
        problem = AllocationProblem(random_function(seed, target=target))
        bound = lower_bound(problem, group, solver=False)
        check_certificate(problem, bound)


def test_pairs_of_which_one_lane_is_live_take_every_other_unit() -> None:
    problem = _problem(PAIRS)
    bound = lower_bound(problem, solver=False)
    assert (bound.value, bound.kind) == (6, BoundKind.PRESSURE)
    halves = PAIRS.replace(":V2=", ":V2.0!=").replace("OP %0,%1,%2", "OP %0.0,%1.0,%2.0")
    problem = _problem(halves)
    bound = lower_bound(problem, solver=False)
    # Three even units are wanted, and the last tuple ends one above the third.
    assert bound.value == fewest_registers(problem) == 6
    assert bound.kind is BoundKind.RESIDUES
    check_certificate(problem, bound)


@pytest.mark.parametrize("kind", [BoundKind.BLOCKS, BoundKind.RESIDUE_SCHEDULE])
def test_singles_cannot_be_odd_at_one_point_and_even_at_another(
    kind: BoundKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind is BoundKind.RESIDUE_SCHEDULE:
        monkeypatch.setattr(search, "refute_by_blocks", lambda *_: None)
    problem = _problem(PARITIES)
    weak, strong = lower_bound(problem, solver=False), lower_bound(problem)
    assert (weak.value, strong.value) == (4, 6)
    assert strong.kind is kind
    assert fewest_registers(problem) == 6
    assert len(strong.refutations[0].cliques) == 2
    check_certificate(problem, strong)


def test_reserved_units_count_once_something_lies_above() -> None:
    files = "R:16 UR:4 P:4 UP:2"
    problem = _problem("bb0\n%0:R2=OP\nOP %0\n", "sm_80", files)
    bound = lower_bound(problem, solver=False)
    assert bound.value == fewest_registers(problem) == 4
    problem = _problem("bb0\n%0:R=OP\n%1:R=OP\nOP %0,%1\n", "sm_80", files)
    assert lower_bound(problem, solver=False).value == fewest_registers(problem) == 3


def test_accumulators_count_in_both_shapes() -> None:
    body = "class AV2 2 v/2 a/2\nbb0\n%0:AV2=OP\n%1:V2=OP\nOP %0,%1\n"
    problem = _problem(body, files="v:2 a:8 s:8 vcc:2=vcc_lo,vcc_hi")
    bound = lower_bound(problem)
    assert bound.value == fewest_registers(problem) == 6  # four, for two VGPRs, and two AGPRs
    check_certificate(problem, bound)


def test_a_bound_of_one_more_is_not_proved() -> None:
    problem = _problem(PARITIES)
    bound = lower_bound(problem)
    with pytest.raises(InputError, match="expected one for every shape"):
        check_certificate(problem, replace(bound, value=bound.value + 1))
    larger = tuple(replace(r, shape=(("v", 7), ("a", 0))) for r in bound.refutations)
    with pytest.raises(InputError, match="fit within"):
        check_certificate(problem, replace(bound, refutations=larger))


def test_nothing_is_tried_that_some_assignment_reaches() -> None:
    bound = lower_bound(_problem(PARITIES), known=5)
    assert bound.value == 5
    check_certificate(_problem(PARITIES), bound)
    # Nor what is beyond: four lanes are live at once.
    bound = lower_bound(_problem(PARITIES), known=4)
    assert (bound.value, bound.kind) == (4, BoundKind.PRESSURE)
    assert [refutation.shape for refutation in bound.refutations] == [(("v", 3), ("a", 0))]


def test_what_may_be_elsewhere_needs_no_vector_register() -> None:
    body = "class SV 1 v s\nbb0\n%0:SV=OP\n%1:SV=OP\n%2:SV=OP\nOP %0,%1,%2\n"
    for scalars, fewest in ((8, 0), (2, 1), (1, 2)):
        problem = _problem(body, files=f"v:16 a:0 s:{scalars} vcc:2=vcc_lo,vcc_hi")
        assert problem.pressure.maximum["vector"] == 0
        for solver in (False, True):
            bound = lower_bound(problem, solver=solver)
            assert bound.value == fewest_registers(problem) == fewest
            check_certificate(problem, bound)


def test_a_bound_is_of_the_strongest_kind_that_some_shape_needs() -> None:
    search = BoundSearch(_problem(PARITIES), solver=False, schedule=False)
    ranked = list(BoundKind)
    for strong, kind in enumerate(ranked):
        refutations = [Refutation(each, (("v", 3), ("a", 0)), ()) for each in ranked[: strong + 1]]
        for some in (refutations, refutations[::-1]):
            bound = search.made(4, tuple(some))
            assert bound == LowerBound("vector", 4, kind, tuple(some))
    assert search.made(0, ()).kind is BoundKind.PRESSURE
