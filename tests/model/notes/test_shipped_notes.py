"""The model that comes with the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.notes.notes_files import load_network
from verilocc_bench.model.shipped import shipped_folder
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.verification import Verifier

LAST = "reference-further"
"""The recipe by which it was trained last."""


def shipped() -> Path:
    found = shipped_folder("reference")
    assert found is not None
    return found


def smallest() -> list[Row]:
    """The smallest function of each architecture in mini; both families are among them."""
    found: dict[str, Row] = {}
    for row in sorted(load_rows("mini").rows, key=lambda row: row.n_virtual_registers):
        if row.track == "assign":
            found.setdefault(row.arch, row)
    assert {row.family for row in found.values()} == {"gemm", "mha"}
    return list(found.values())


def test_it_is_small_and_was_made_by_the_recipe_that_comes_along() -> None:
    folder = shipped()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000_000
    training = json.loads((folder / "training.json").read_text())
    assert training["recipe"]["name"] == LAST
    assert "base" in training
    network, _ = load_network(folder)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert parameters == training["measured"]["parameters"]
    card = (folder / "README.md").read_text()
    assert training["dataset"]["hash"] in card
    assert f"By the recipe `{LAST}` from" in card
    assert "evaluate --model reference\n" in card


@pytest.mark.slow
def test_it_allocates_the_smallest_functions_in_its_own_words() -> None:
    allocator = resolve_model("reference", LocalModelSettings(decoding=Decoding.FREE), 1)
    problems = [AllocationProblem.from_text(row.normalized) for row in smallest()]
    responses = dict(allocator.respond([Request(problem) for problem in problems]))
    assert len(responses) == len(problems)
    for place, problem in enumerate(problems):
        answer = responses[place].answer
        assert answer is not None, problem.id
        assert Verifier(problem).verify(answer).valid, problem.id
