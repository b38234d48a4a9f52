"""The search for bounds as a whole, what is told of it, and what checking refuses."""

from __future__ import annotations

import json
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.bounds import TARGETS, groups
from tests.analysis.brute_force import fewest_registers
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds.checking import check_certificate
from verilocc_bench.analysis.lower_bounds.cliques import maximal_cliques
from verilocc_bench.analysis.lower_bounds.infeasibility import (
    describe_place,
    describe_shape,
    proves_infeasible,
    why_infeasible,
)
from verilocc_bench.analysis.lower_bounds.json_form import to_json
from verilocc_bench.analysis.lower_bounds.records import BoundKind, Clique, LowerBound, Refutation
from verilocc_bench.analysis.lower_bounds.search import lower_bound
from verilocc_bench.analysis.lower_bounds.solver import (
    load_cp_model,
    new_solver,
    solve_interruptibly,
)
from verilocc_bench.errors import MissingExtraError
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function

GOLDEN = Path(__file__).with_name("golden_bounds.txt")


# The whole search, as it was last looked at.


def _bounds(problem: AllocationProblem) -> list[str]:
    lines = []
    for group in groups(problem):
        document = to_json(lower_bound(problem, group, solver=False))
        lines.append(f"{group}: {json.dumps(document)}")
    document = to_json(lower_bound(problem))
    lines.append(f"solver: {re.sub(r'cp-sat [0-9.]+', 'cp-sat', json.dumps(document))}")
    known = fewest_registers(problem)
    document = to_json(lower_bound(problem, known=known, schedule=False))
    lines.append(f"known: {re.sub(r'cp-sat [0-9.]+', 'cp-sat', json.dumps(document))}")
    return lines


def _cases() -> list[tuple[str, list[str]]]:
    found = []
    for case in GOLDEN.read_text().rstrip("\n").split("\n\n"):
        lines = case.splitlines()
        end = next(n for n, line in enumerate(lines) if line.startswith("vector: "))
        found.append(("\n".join(lines[:end]) + "\n", lines[end:]))
    return found


@pytest.mark.parametrize("case", range(12))
def test_bounds_are_what_they_were(case: int) -> None:
    text, said = _cases()[case]
    assert _bounds(AllocationProblem(parse_function(text, canonical=False))) == said


# What nothing can meet.

CROWDED = """verilocc-bench 1
target gfx942
registers v:4 a:0 s:8 vcc:2=vcc_lo,vcc_hi
class V2 2 v/2
bb0
%0=A
%1=B
%2=C
USE %0,%1,%2
S_ENDPGM
"""


@pytest.mark.parametrize("solver", [False, True])
def test_what_cannot_fit_is_told_by_its_lanes(solver: bool) -> None:
    problem = AllocationProblem(parse_function(CROWDED))
    bound = lower_bound(problem, solver=solver)
    check_certificate(problem, bound)
    assert proves_infeasible(problem, bound)
    assert not proves_infeasible(problem, replace(bound, value=4))
    assert proves_infeasible(problem, replace(bound, value=5))
    assert why_infeasible(problem, bound) == (
        "6 lanes that cannot share registers after bb0 instruction 2 (C) "
        "do not fit into v 4, a 0 (pressure)"
    )
    refutation = bound.refutations[0]
    smaller = Clique(1, 0, 0, ((0, 0),), (("v", 3),))
    many = replace(refutation, cliques=(smaller, *refutation.cliques, smaller))
    assert why_infeasible(problem, replace(bound, refutations=(many, refutation))) == (
        "6 lanes that cannot share registers after bb0 instruction 2 (C), with those at 2 other "
        "points, do not fit into v 4, a 0 (pressure)"
    )
    fixed = Clique(0, 0, -1, ((0, 0),), tuple(("v", n) for n in range(9)))
    first = replace(bound.refutations[0], cliques=(*refutation.cliques, fixed))
    assert why_infeasible(problem, replace(bound, refutations=(first,))).startswith(
        "10 lanes that cannot share registers at the entry, with those at 1 other points,"
    )
    assert describe_shape((("v", 16), ("a", 8))) == "v 16, a 8"
    assert describe_place(problem, smaller) == "after bb0 instruction 0 (A)"


# Solvers that are interrupted.


class _Solver:
    def __init__(self, solve: Any) -> None:
        self.solve, self.stopped = solve, False
        self.parameters = type("Parameters", (), {"catch_sigint_signal": True})()

    def stop_search(self) -> None:
        self.stopped = True


def test_a_solver_says_what_it_found_and_what_failed() -> None:
    seen: list[Any] = []

    def solve(model: Any) -> str:
        seen.append((model, threading.current_thread().daemon))
        return "optimal"

    solver: Any = _Solver(solve)
    assert solve_interruptibly(solver, "model") == "optimal"  # type: ignore[arg-type]
    assert seen == [("model", True)]
    assert solver.parameters.catch_sigint_signal is False

    def fails(_: Any) -> str:
        raise MemoryError("too large")

    with pytest.raises(MemoryError, match="too large"):
        solve_interruptibly(_Solver(fails), "model")  # type: ignore[arg-type]


def test_an_interrupt_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping does nothing before the solver begins, so it is asked again until it ends."""
    ended = threading.Event()
    solver: Any = _Solver(lambda _: ended.wait(10))
    joined: list[bool] = []
    real = threading.Thread.join

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        joined.append(solver.stopped)
        solver.stopped = False
        if len(joined) == 1:
            raise KeyboardInterrupt
        if len(joined) == 3:
            ended.set()
        real(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)
    with pytest.raises(KeyboardInterrupt):
        solve_interruptibly(solver, "model")  # type: ignore[arg-type]
    assert joined[:3] == [False, True, True]
    assert ended.is_set()


def test_a_solver_has_one_worker_and_so_much_time() -> None:
    parameters = new_solver(2.5, 7).parameters
    assert parameters.num_workers == 1  # more would answer what comes first
    assert parameters.max_deterministic_time == 2.5
    assert parameters.random_seed == 7


def test_proofs_without_the_solver_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(MissingExtraError, match=r"'ortools'.*'verilocc-bench\[exact\]'"):
        load_cp_model()


# What checking refuses.


def refused(problem: AllocationProblem, bound: LowerBound) -> str:
    from verilocc_bench.errors import InputError

    with pytest.raises(InputError) as caught:
        check_certificate(problem, bound)
    assert caught.value.source == f"bound of {problem.id}"
    return caught.value.message


def test_certificates_that_prove_nothing_are_told_why() -> None:
    problem = AllocationProblem(parse_function(CROWDED.replace("v:4 a:0", "v:8 a:2")))
    bound = lower_bound(problem, solver=False)
    check_certificate(problem, bound)
    assert bound.value == 6
    (refutation,) = bound.refutations
    assert refutation.shape == (("v", 5), ("a", 0))
    (clique,) = refutation.cliques

    def changed(**fields: Any) -> LowerBound:
        return replace(bound, refutations=(replace(refutation, **fields),))

    assert refused(problem, replace(bound, refutations=())).startswith(
        "no refutation covers {'v': 0, 'a': 0, 's': 0, 'vcc': 0}, which is less than 6"
    )
    assert "the shape v 5 does not" in refused(problem, changed(shape=(("v", 5),)))
    assert refused(problem, changed(shape=())).startswith("the shape without limits does not")
    twice = (("v", 5), ("a", 0), ("v", 5))
    assert "the shape v 5, a 0, v 5 does not" in refused(problem, changed(shape=twice))
    assert refused(problem, changed(shape=(("v", 6), ("a", 0)))).startswith(
        "the lanes of the pressure refutation fit within {'v': 6, 'a': 0}"
    )
    for lanes, message in (
        (((0, 2),), "there is no lane 2 of %0"),
        (((0, -1),), "there is no lane -1 of %0"),
        (((3, 0),), "there is no lane 0 of %3"),
        (((-1, 0),), "there is no lane 0 of %-1"),
        (((0, 0), (0, 0)), "a clique names a lane twice"),
    ):
        assert refused(problem, changed(cliques=(replace(clique, lanes=lanes),))) == message
    fixed = replace(clique, fixed=(("v", 1),))
    assert refused(problem, changed(cliques=(fixed,))) == "the function does not name v1"


def test_lanes_of_files_that_a_shape_leaves_out_prove_nothing() -> None:
    text = CROWDED.replace("v:4", "v:8").replace("class V2 2 v/2", "class S2 2 s/2 vcc/2")
    problem = AllocationProblem(parse_function(text))
    bound = lower_bound(problem, "s", solver=False)
    check_certificate(problem, bound)
    lanes = replace(bound.refutations[0], shape=(("v", 5), ("a", 0)))
    assert refused(problem, LowerBound(VECTOR, 0, BoundKind.PRESSURE, (lanes,))) == (
        "%0 may be in s or vcc, the shape limits a, v: expected lanes of these files alone"
    )


def test_lanes_that_can_share_are_no_clique() -> None:
    text = CROWDED.replace("%1=B\n", "USE %0\n%1=B\n").replace("USE %0,%1,%2", "USE %1,%2")
    problem = AllocationProblem(parse_function(text))
    clique = Clique(1, 0, 0, ((0, 0), (1, 0)), ())
    bound = LowerBound(
        VECTOR, 1, BoundKind.PRESSURE,
        (Refutation(BoundKind.PRESSURE, (("v", 0), ("a", 0)), (clique,)),),
    )  # fmt: skip
    assert refused(problem, bound) == "lanes of %0 and %1 can share a unit: expected a clique"


if __name__ == "__main__":
    made = []
    for seed in range(400):
        for target in TARGETS:
            function = random_function(seed, registers=8, blocks=3, target=target)
            drawn = AllocationProblem(function)
            if len(drawn.normalized) < 330 and len(made) < 12:
                bounds = _bounds(drawn)
                kinds = {line.split('"kind": "')[1].split('"')[0] for line in bounds}
                if len(made) % 2 or kinds & {"residues", "blocks", "residue_schedule"}:
                    made.append("\n".join([drawn.normalized.rstrip("\n"), *bounds]))
    GOLDEN.write_text("\n\n".join(made) + "\n")


def test_fixed_units_are_no_lanes_of_a_register() -> None:
    text = CROWDED.replace("v:4", "v:8").replace("%1=B", "v7=B").replace("%0,%1,%2", "v7")
    text = text.replace("%0=A\n", "%0=A\nUSE %0\n").replace("%2", "%1")
    problem = AllocationProblem(parse_function(text))
    shape = (("v", 0), ("a", 0))
    for lane in (0, 1):
        clique = Clique(1, 0, 0, ((0, lane),), (("v", 7),))
        bound = LowerBound(
            VECTOR, 1, BoundKind.PRESSURE, (Refutation(BoundKind.PRESSURE, shape, (clique,)),)
        )
        assert refused(problem, bound) == "lanes of %0 and %-5 can share a unit: expected a clique"


def test_a_placement_that_is_impossible_proves_a_bound() -> None:
    problem = AllocationProblem(parse_function(CROWDED.replace("v:4", "v:8")))
    cliques = maximal_cliques(problem, ("v", "a"))
    refutations = tuple(
        Refutation(BoundKind.PLACEMENT, (("v", limit), ("a", 0)), cliques) for limit in (5, 6)
    )
    check_certificate(problem, LowerBound(VECTOR, 6, BoundKind.PLACEMENT, refutations[:1]))
    assert refused(problem, LowerBound(VECTOR, 7, BoundKind.PLACEMENT, refutations[1:])) == (
        "the lanes of the placement refutation fit within {'v': 6, 'a': 0}: "
        "expected a contradiction"
    )
