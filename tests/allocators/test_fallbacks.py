"""Where search finds nothing: every other way to an answer, and the compiler's own at last."""

from __future__ import annotations

import numpy as np
import pytest

from tests.allocators.vector_registers import vector_registers
from verilocc_bench.allocators import BUILT_IN, LabelUse, Request, SearchAllocator
from verilocc_bench.allocators.protocol import Response
from verilocc_bench.allocators.registry import ANSWER_ALONE
from verilocc_bench.allocators.search import fallbacks, portfolio
from verilocc_bench.allocators.search.first_fit_orders import first_fit_loop, node_orders
from verilocc_bench.allocators.search.options import SearchOptions
from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed, ContradictionError, InputError
from verilocc_bench.selftest.generate import random_function

TEXT = """verilocc-bench 1
target gfx942
registers v:6 a:0 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
bb0
%0=A
%1:V2=B %0
%2=C %0
D %1,%2
"""
LABEL = {"%0": "v2", "%1": "v0", "%2": "v2"}
WAYS = ["linear-scan", "graph-coloring", "ejection", "cp-sat"]


@pytest.fixture
def problem() -> AllocationProblem:
    return AllocationProblem.from_text(TEXT)


def _find_nothing(monkeypatch: pytest.MonkeyPatch, *ways: str) -> None:
    """Search finds no first placement, and these ways none either."""
    minimize = portfolio.minimize

    def from_a_start(model, shapes, bound, budget, report, **others):  # type: ignore[no-untyped-def]
        if budget.start is None and "v" in model.files:
            return None
        return minimize(model, shapes, bound, budget, report, **others)

    monkeypatch.setattr(portfolio, "minimize", from_a_start)
    for name in ways:
        monkeypatch.setitem(fallbacks._FALLBACKS, name, lambda *_: None)


def _stop_high(problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search from no start finds six registers of VGPRs, and no solver is asked."""
    minimize = portfolio.minimize

    def high(model, shapes, bound, budget, report, **others):  # type: ignore[no-untyped-def]
        if budget.start is not None or "v" not in model.files:
            return minimize(model, shapes, bound, budget, report, **others)
        bases = model.bases({n: problem.placements.register(u) for n, u in enumerate((5, 2, 4))})
        report(bases)
        return bases

    monkeypatch.setattr(portfolio, "minimize", high)
    monkeypatch.setattr(portfolio, "MOST_NODES_EXACTLY", 0)


def _best(request: Request, name: str = "best") -> Response:
    allocator = BUILT_IN[name]
    assert isinstance(allocator, SearchAllocator)
    return allocator.respond_to(request)


@pytest.mark.parametrize("failing", range(len(WAYS)))
def test_the_ways_are_tried_one_after_the_other(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    _find_nothing(monkeypatch, *WAYS[:failing])
    found = _best(Request(problem))
    assert found.details["source"] == WAYS[failing]
    assert vector_registers(problem, found.answer) == 3  # search goes on from what was found


def test_the_compilers_own_assignment_is_the_last_way(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    _find_nothing(monkeypatch, *WAYS)
    with pytest.raises(AllocationFailed, match=r"unknown: .* in v .*live-range-splitting"):
        _best(Request(problem))
    found = _best(Request(problem, label=LABEL))
    assert found.details["source"] == "compiler"
    assert vector_registers(problem, found.answer) == 3
    for wrong in ({**LABEL, "%2": "v1"}, {"%0": "v0"}, {**LABEL, "%1": "v1"}, {"%0": "no"}):
        with pytest.raises(AllocationFailed):
            _best(Request(problem, label=wrong))


def test_relatives_of_best_do_without(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    _find_nothing(monkeypatch)
    with pytest.raises(AllocationFailed, match="unknown"):
        _best(Request(problem, label=LABEL), "tabu-search")


def test_a_label_of_fewer_registers_is_taken(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where search stops above the label, what is found is the label, or better yet."""
    found = _best(Request(problem, label=LABEL))
    assert (found.details["source"], found.details["label_taken"]) == ("search", 0)
    assert vector_registers(problem, found.answer) == 3
    assert found.answer is not None
    label = found.answer.assignment
    _stop_high(problem, monkeypatch)
    monkeypatch.setattr(portfolio, "place_by_orders", lambda _: [])
    assert vector_registers(problem, _best(Request(problem)).answer) == 6
    found = _best(Request(problem, label=label))
    assert found.details["source"] == "compiler"
    assert vector_registers(problem, found.answer) == 3


def test_what_linear_scan_finds_is_never_missed(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stop_high(problem, monkeypatch)
    found = _best(Request(problem))
    assert found.details["source"] == "linear-scan"
    assert vector_registers(problem, found.answer) == 3


def test_every_way_gives_valid_placements_or_none() -> None:
    found = dict.fromkeys(WAYS, 0)
    for seed in range(24):
        target = ("gfx90a", "gfx942", "sm_80")[seed % 3]
        problem = AllocationProblem(random_function(seed, target=target, varied=True))
        try:
            models = placement_models(problem)
        except InputError:
            continue
        for model in models:
            for name in WAYS:
                try:
                    bases = fallbacks._FALLBACKS[name](model, SearchOptions())
                except AllocationFailed:
                    assert name == "cp-sat"
                    continue
                if bases is not None:
                    assert model.is_valid(bases), (seed, name)
                    found[name] += 1
    assert min(found.values()) > 10, found
    assert found["ejection"] >= found["linear-scan"]


def test_ejection_makes_room_where_first_fit_fails() -> None:
    rescued = 0
    for seed in (9, 225, 539, 608, 721, 806):
        function = random_function(seed, registers=14, target="gfx942", varied=True)
        problem = AllocationProblem(function)
        for model in placement_models(problem):
            if model.files[0] != "v" or any(_fits(model, order) for order in node_orders(model)):
                continue
            bases = fallbacks._FALLBACKS["ejection"](model, SearchOptions())
            if bases is not None:
                assert model.is_valid(bases)
                rescued += 1
    assert rescued > 3


def _fits(model: PlacementModel, order: np.ndarray) -> bool:
    return bool((first_fit_loop(order, model.within({})) >= 0).all())


def test_a_proof_that_an_answer_contradicts_is_no_failure_of_the_allocator(
    problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "proves_infeasible", lambda *_: True)
    monkeypatch.setattr(portfolio, "why_infeasible", lambda *_: "nothing fits")
    for name in ("best", "tabu-search", "first-fit-orders"):
        with pytest.raises(ContradictionError, match="nothing fits; yet linear-scan has a valid"):
            BUILT_IN[name].allocate(Request(problem))
    monkeypatch.setattr(portfolio, "linear_scan", portfolio.graph_coloring)
    with pytest.raises(ContradictionError, match="yet the compiler has a valid answer"):
        _best(Request(problem, label=LABEL), "best-or-compiler")


def test_best_is_shown_labels_and_does_without() -> None:
    assert [name for name, each in BUILT_IN.items() if each.label_use is not LabelUse.NONE] == [
        "compiler",
        "llvm-basic",
        "best",
        "best-or-compiler",
    ]
    assert set(BUILT_IN) - set(ANSWER_ALONE) == {"compiler", "llvm-basic", "best-or-compiler"}
