"""The stricter view of a problem: the same function with more conflicts."""

from __future__ import annotations

from tests.backends.nvidia.assembly import normalize
from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.allocators.search.placement_model import placement_models
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.machine_live_ranges import MachineLiveRanges, MachineProblem
from verilocc_bench.verification import Verifier


def problem() -> AllocationProblem:
    """%0 is read by the second instruction; %1 and %2 are defined after that."""
    return AllocationProblem(
        normalize(
            """
            MOV R2, 0x1
            STG.E [R4], R2
            MOV R2, 0x2
            STG.E [R4], R2
            MOV R2, 0x3
            STG.E [R4], R2
            EXIT
            """
        ).function
    )


def registers(found: AllocationProblem) -> dict[str, int]:
    """The virtual registers that the three MOVs define, in order."""
    definitions = [
        instruction.definitions[0].location.register  # type: ignore[union-attr]
        for _, _, instruction in found.function.instructions()
        if instruction.opcode == "MOV"
    ]
    return dict(zip(("first", "second", "third"), definitions, strict=True))


def lane(found: AllocationProblem, register: int) -> int:
    return found.liveness.lane_offsets[register]


def test_a_lane_in_use_is_kept_from_what_is_defined_there_alone() -> None:
    plain = problem()
    names = registers(plain)
    first, second, third = (lane(plain, names[name]) for name in ("first", "second", "third"))
    point = plain.liveness.defined[second]
    strict = MachineProblem(plain, MachineLiveRanges({first: point}, ()))
    assert strict.id == plain.id
    assert strict.normalized == plain.normalized
    state = RegisterState(strict)
    state.place(names["first"], 2)
    assert 2 not in state.legal(names["second"])
    assert 2 in state.legal(names["third"])
    assert third not in strict.ranges.in_use
    relaxed = RegisterState(plain)
    relaxed.place(names["first"], 2)
    assert 2 in relaxed.legal(names["second"])


def test_pairs_that_are_apart_collide_in_no_other_way() -> None:
    plain = problem()
    names = registers(plain)
    pair = lane(plain, names["first"]), lane(plain, names["third"])
    strict = MachineProblem(plain, MachineLiveRanges({}, (pair,)))
    assert len(strict.liveness.points) == len(plain.liveness.points) + 1
    state = RegisterState(strict)
    state.place(names["first"], 2)
    assert 2 not in state.legal(names["third"])
    assert 2 in state.legal(names["second"])
    assert strict.pressure.maximum == plain.pressure.maximum


def test_every_allocator_keeps_them_apart_and_stays_valid() -> None:
    plain = problem()
    names = registers(plain)
    first, third = names["first"], names["third"]
    ranges = MachineLiveRanges(
        {lane(plain, first): plain.liveness.defined[lane(plain, names["second"])]},
        ((lane(plain, first), lane(plain, third)),),
    )
    strict = MachineProblem(plain, ranges)
    for allocator in (linear_scan, graph_coloring):
        assert allocator(plain)[first] == allocator(plain)[third]
        found = allocator(strict)
        assert found[first] not in (found[names["second"]], found[third])
        answer = {f"%{number}": f"R{register.index}" for number, register in found.items()}
        assert Verifier(plain).verify(answer).valid
    for model in placement_models(strict):
        assert model.is_valid(model.bases(linear_scan(strict)))
        if "R" in model.files:
            assert not model.is_valid(model.bases(linear_scan(plain)))


def test_runs_of_points_become_segments() -> None:
    plain = problem()
    register = lane(plain, registers(plain)["first"])
    points = (1 << len(plain.liveness.points)) - 1 & ~plain.liveness.live[register]
    strict = MachineProblem(plain, MachineLiveRanges({register: points}, ()))
    held = strict.liveness.live[register]
    assert held == plain.liveness.live[register] | points
    covered = 0
    for each, first, last, _ in strict.liveness.segments:
        if each == register:
            run = (1 << last + 1) - (1 << first)
            assert not covered & run
            covered |= run
    assert covered == held
