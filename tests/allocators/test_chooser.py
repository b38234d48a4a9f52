"""The learned chooser: its tree is data that fits its features, its answers are valid."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.allocators.chooser import choosing
from verilocc_bench.allocators.chooser.features import FEATURES, features_of
from verilocc_bench.allocators.chooser.tree import Tree, load_tree
from verilocc_bench.allocators.search.orders import ORDERS
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.budgets import with_budgets
from verilocc_bench.dataset import load_rows
from verilocc_bench.verify import FastVerifier

ROWS = sorted(load_rows("mini").rows, key=lambda row: row.n_virtual_registers)


def _choices(tree: Tree) -> set[str]:
    if tree.choice is not None:
        return {tree.choice}
    assert tree.yes is not None
    assert tree.no is not None
    assert 0 <= tree.feature < len(FEATURES)
    return _choices(tree.yes) | _choices(tree.no)


def test_the_tree_knows_the_features_and_the_orders() -> None:
    source = files("verilocc_bench.allocators.chooser").joinpath("tree.json")
    assert json.loads(source.read_text())["features"] == list(FEATURES)
    choices = _choices(load_tree())
    assert choices <= {*ORDERS, choosing.TABU}
    assert len(choices) > 1


def test_shares_are_shares() -> None:
    for row in ROWS[::10]:
        features = dict(
            zip(FEATURES, features_of(AllocationProblem.from_text(row.normalized)), strict=True)
        )
        assert all(0 <= features[name] <= 1 for name in FEATURES if name.startswith("share"))
        assert 0 < features["mean_span"] <= 1


@pytest.mark.parametrize("row", ROWS[:12:3], ids=lambda row: row.id)
def test_answers_are_valid(row) -> None:  # type: ignore[no-untyped-def]
    problem = AllocationProblem.from_text(row.normalized)
    answer = BUILT_IN["chooser"].allocate(Request(problem))
    assert FastVerifier(problem).verify(answer).valid  # type: ignore[arg-type]


def test_an_order_that_finds_no_place_gives_way_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "load_tree", lambda: Tree("size"))
    problem = AllocationProblem.from_text(ROWS[0].normalized)
    least = problem.pressure.maximum["vector"] + 2
    narrow = with_budgets(problem, dict.fromkeys(("v", "R"), least))
    answer = BUILT_IN["chooser"].allocate(Request(narrow))
    assert FastVerifier(narrow).verify(answer).valid  # type: ignore[arg-type]
