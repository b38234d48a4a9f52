"""The models that come with the package: small, offline, honest about their data, able to place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from verilocc_bench.allocators import (
    Request,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.evaluation import resolve_model
from verilocc_bench.model.shipped import SHIPPED, shipped_folder
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.training.card import CARD, read_training
from verilocc_bench.training.recipe import RETIRED, find_recipe, read_recipe
from verilocc_bench.verification import Verifier

NAMES = sorted(name for name in SHIPPED if not name.endswith("-notes"))
"""Those of transformers; of the other one see tests/model/notes/test_shipped_notes.py."""
MOST_BYTES, MOST_PARAMETERS = 40_000_000, 20_000_000


def folder_of(name: str) -> Path:
    folder = shipped_folder(name)
    assert folder is not None
    return folder


def smallest() -> list[Row]:
    """The smallest function of each architecture in mini; both families are among them."""
    found: dict[str, Row] = {}
    for row in sorted(load_rows("mini").rows, key=lambda row: row.n_virtual_registers):
        found.setdefault(row.arch, row)
    assert {row.family for row in found.values()} == {"gemm", "mha"}
    return list(found.values())


def test_there_are_four() -> None:
    notes = {"reference-notes", "reference-text-notes"}
    assert SHIPPED.keys() == {"reference", "reference-text"} | notes
    text = (folder_of("reference-text") / CARD).read_text()
    assert "it is asked about 1 at a time" in text


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_and_loads_without_a_network(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    transformers = pytest.importorskip("transformers")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    assert network.num_parameters() <= MOST_PARAMETERS
    assert network.num_parameters() == read_training(folder).measured["parameters"]
    transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


@pytest.mark.parametrize("name", NAMES)
def test_it_was_made_by_the_recipe_that_comes_along(name: str, tmp_path: Path) -> None:
    training = read_training(folder_of(name))
    recipe = find_recipe(name)
    recorded = {key: value for key, value in training.recipe.items() if key not in RETIRED}
    assert json.loads(json.dumps(recipe.as_json())) == recorded
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(training.recipe))
    assert read_recipe(path) == recipe
    advice = json.loads((folder_of(name) / "config.json").read_text())["verilocc_bench"]
    source = recipe.sources[0]
    assert advice["prompt_format"] == source.format
    assert advice.get("window_registers") == next(iter(source.new_registers), None)


@pytest.mark.parametrize("name", NAMES)
def test_its_card_says_what_it_was_trained_on_and_that_no_test_row_was(name: str) -> None:
    folder = folder_of(name)
    text = (folder / CARD).read_text()
    training = read_training(folder)
    assert training.dataset["hash"] in text
    part = text.split("## Leakage")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if re.match(r"\| `\w+`", line)]
    splits = [line.split("|")[1].strip(" `") for line in lines]
    assert "test" in splits
    for line in lines:
        counts = [int(cell.replace(",", "")) for cell in line.split("|")[3:7]]
        assert counts == [0, 0, 0, 0], line


@pytest.mark.parametrize("name", NAMES)
def test_it_places_the_smallest_functions(name: str) -> None:
    pytest.importorskip("torch")
    allocator = resolve_model(name, LocalModelSettings(decoding=Decoding.CONSTRAINED), 1)
    problems = [AllocationProblem.from_text(row.normalized) for row in smallest()]
    responses = dict(allocator.respond([Request(problem) for problem in problems]))
    assert len(responses) == len(problems)
    for place, problem in enumerate(problems):
        answer = responses[place].answer
        assert answer is not None, problem.id
        assert Verifier(problem).verify(answer).valid, problem.id
