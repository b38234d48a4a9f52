"""VGPRs and AGPRs that no class draws on both of: apart in search, together in the score."""

from __future__ import annotations

import re

import pytest

from tests.allocators.vector_registers import vector_registers
from tests.analysis.brute_force import fewest_registers
from tests.sampling import some_of
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.selftest.generate import random_function

HEADER = "verilocc-bench 1\ntarget gfx942\nregisters v:{v} a:{a} s:102 vcc:2=vcc_lo,vcc_hi\n"

WIDE = (
    HEADER.format(v=256, a=256)
    + """class A32 32 a/2
class V 1 v
bb0(v0)
%0:V=COPY v0
%1=LOAD %0
STORE %0,%1
S_ENDPGM
"""
)
FULL = (
    HEADER.format(v=16, a=16)
    + """class A8 8 a/2
class V8 8 v/2
bb0
%0:V8=LOAD
%1=LOAD
%2=LOAD
STORE %0,%1,%2
S_ENDPGM
"""
)
MIXED = (
    HEADER.format(v=16, a=16)
    + """class V 1 v
class A4 4 a/2
class AV2 2 v/2 a/2
bb0
%0:A4=LOAD
%1=LOAD
%2:AV2=LOAD
%3=LOAD
STORE %0,%1,%2,%3
S_ENDPGM
"""
)
SEARCHING = [
    "first-fit-orders",
    "annealed-orders",
    "tabu-search",
    "best",
    "best-or-compiler",
    "cp-sat",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize(
    ("text", "fewest"), [pytest.param(WIDE, 36, marks=pytest.mark.exhaustive), (FULL, 24)]
)
def test_every_search_finds_the_fewest(name: str, text: str, fewest: int) -> None:
    problem = AllocationProblem.from_text(text)
    assert vector_registers(problem, BUILT_IN[name].allocate(Request(problem))) == fewest


def test_of_files_that_a_class_joins_the_least_sum_is_looked_for() -> None:
    """Two VGPRs, four AGPRs, and two registers that fit beside the VGPRs: 4 + 4."""
    problem = AllocationProblem.from_text(MIXED)
    assert [model.files for model in placement_models(problem)] == [("v", "a")]
    for name in ("tabu-search", "best", "cp-sat"):
        assert vector_registers(problem, BUILT_IN[name].allocate(Request(problem))) == 8, name


@pytest.mark.slow
@pytest.mark.parametrize("seeds", some_of([range(175), range(175, 700)]))
def test_search_finds_the_fewest_of_both_files(seeds: range) -> None:
    """On functions of every mix of VGPRs, AGPRs and classes of both."""
    separate = joined = impossible = 0
    for seed in seeds:
        function = random_function(seed, registers=5, target="gfx942", varied=True)
        problem = AllocationProblem(function)
        files = {file for c in function.virtual_registers for file in c.files}
        choices = 1
        for register_class in function.virtual_registers:
            choices *= max(len(problem.placements.legal[register_class]), 1)
        if not {"v", "a"} <= files or choices > 20_000:
            continue
        fewest = fewest_registers(problem)
        try:
            found = Search(problem, SearchOptions(), Means.PORTFOLIO).run()
        except AllocationFailed as error:
            reason = error.message
            # Or it is the scalar registers that run out.
            if fewest is None or re.search(r"\b(in|into) (s|vcc)\b", reason):
                impossible += 1
                continue
            raise
        assert found.registers == fewest, seed
        assert found.bound.value <= found.registers
        if any(len(model.files) > 1 for model in placement_models(problem) if "v" in model.files):
            joined += 1
        else:
            separate += 1
    assert min(separate, joined) > 4
    assert impossible > 0


def test_accumulators_alone_are_placed_too() -> None:
    text = HEADER.format(v=8, a=8) + "class A4 4 a/2\nbb0\n%0=LOAD\n%1=LOAD\nSTORE %0,%1\n"
    problem = AllocationProblem.from_text(text)
    assert vector_registers(problem, BUILT_IN["best"].allocate(Request(problem))) == 8


def test_objectives_keep_the_occupancy_of_both_files() -> None:
    problem = AllocationProblem.from_text(WIDE.replace("256", "64"))
    for objective in ("registers", "bank-conflicts", "copies", "combined"):
        options = SearchOptions(objective=type(SearchOptions().objective)(objective))
        found = Search(problem, options, Means.TABU).run()
        used = {"v": 0, "a": 0}
        for register, base in found.assignment.items():
            width = problem.function.virtual_registers[register].width
            used[base.file] = max(used[base.file], base.index + width)
        assert problem.target.occupancy(used) == 8
