"""Training a model that keeps notes: the same bytes twice, resumed or not; and that it learns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from verilocc_bench.cli import main
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.notes.notes_files import load_network
from verilocc_bench.model.notes.notes_network import NotesConfiguration
from verilocc_bench.training.notes import run
from verilocc_bench.training.notes.pools import pool_batches
from verilocc_bench.training.notes.recipe import NotesRecipe
from verilocc_bench.training.recipe_files import find_recipe_file, read_document


@pytest.fixture
def tiny() -> NotesRecipe:
    recipe = read_document(NotesRecipe, find_recipe_file("tiny-notes", folder="notes"))
    return replace(recipe, validation_functions=0)


def test_an_interrupted_run_gives_the_same_bytes(
    tiny: NotesRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.train_notes(tiny, "mini", tmp_path / "whole")

    def interrupted(recipe: NotesRecipe, functions: object, number: int) -> object:
        if number == 1:
            raise KeyboardInterrupt
        return pool_batches(recipe, functions, number)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(run, "pool_batches", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.train_notes(tiny, "mini", tmp_path / "resumed")
    run.train_notes(tiny, "mini", tmp_path / "resumed")
    for name in ("model.safetensors", "config.json", "log.jsonl", "README.md"):
        whole, resumed = (tmp_path / each / name for each in ("whole", "resumed"))
        assert whole.read_bytes() == resumed.read_bytes(), name
    measured = json.loads((tmp_path / "resumed" / "training.json").read_text())["measured"]
    assert measured["resumed"]
    assert measured["validation"] is None
    assert sorted(path.name for path in (tmp_path / "whole").iterdir()) == [
        "README.md",
        "config.json",
        "log.jsonl",
        "model.safetensors",
        "run.json",
        "training.json",
    ]
    assert resolve_model(str(tmp_path / "whole")).name


def test_the_command_trains_by_a_recipe_and_refuses_another_in_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "tiny-notes", "--notes", "--dataset", "mini", "--output", str(tmp_path)]
    assert main(command) == 0
    assert "the model is in" in capsys.readouterr().out
    validation = json.loads((tmp_path / "training.json").read_text())["measured"]["validation"]
    assert validation == {"functions": 2, "valid": 0, "registers_ratio": None}
    other = tmp_path / "other.yaml"
    other.write_text("name: other\ndescription: another\nsteps: 4\nsplit: test\n")
    assert main(["train", str(other), *command[2:]]) == 2
    assert main([*command, "--jobs", "2"]) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"pool_windows": 10},
        {"function_share": 1.5},
        {"base_share": -0.5},
        {"learning_rate": -1.0},
        {"gradient_norm": 0.0},
    ],
)
def test_recipes_that_cannot_be_are_refused(tiny: NotesRecipe, wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        replace(tiny, **wrong)  # type: ignore[arg-type]


def test_the_rate_rises_stays_and_falls() -> None:
    recipe = NotesRecipe("r", "", 100, learning_rate=1.0, warmup_steps=10, decay_steps=20)
    assert recipe.rate(0) == 0.1
    assert recipe.rate(50) == 1.0
    assert recipe.rate(90) == 0.5


@pytest.mark.slow
def test_a_network_learns() -> None:
    """In a hundred steps most words are right; one that guesses has one in a hundred right."""
    configuration = NotesConfiguration(hidden=64, layers=2, heads=2, head_width=32, feed_forward=64)
    recipe = NotesRecipe(
        "learns", "", 128, network=configuration, learning_rate=6e-3, decay_steps=50
    )
    learning = run.NotesRun(recipe, [], Path("nowhere"))
    while learning.pool < recipe.pools:
        learning._learn_pool()
    wrong = json.loads(learning.log[-1])["wrong"]
    assert wrong < 0.5


def test_a_base_gives_the_weights_to_begin_with(tiny: NotesRecipe, tmp_path: Path) -> None:
    base = run.train_notes(tiny, "mini", tmp_path / "base")
    recipe = replace(tiny, name="tiny-notes-further", steps=1, learning_rate=0.0, seed=5)
    further = run.train_notes(recipe, "mini", tmp_path / "on", base=str(base))
    weights = [(folder / "model.safetensors").read_bytes() for folder in (base, further)]
    assert weights[0] == weights[1]
    told = json.loads((further / "training.json").read_text())["base"]
    assert told["name"] == "base"
    card = (further / "README.md").read_text()
    assert "# tiny-notes\n" in card
    assert "By the recipe `tiny-notes-further` from the weights of `base`\n" in card
    assert f"(revision `{told['revision'][:16]}`)" in card
    learnt = run.NotesRun(replace(recipe, base_share=0.75), [], tmp_path, load_network(base)[0])
    before = {name: tensor.clone() for name, tensor in learnt.network.state_dict().items()}
    with torch.no_grad():
        for parameter in learnt.network.parameters():
            parameter.add_(1.0)
    learnt._mix_with(before)
    for name, tensor in learnt.network.state_dict().items():
        assert torch.allclose(tensor, before[name] + 0.25, atol=1e-5)
    with pytest.raises(InputError, match="expected --base"):
        run.train_notes(replace(recipe, base_share=0.75), "mini", tmp_path / "none")
    for wrong, message in (("nowhere", "expected the folder"), (str(base), "another size")):
        other = replace(tiny, network=replace(tiny.network, layers=1))
        with pytest.raises(InputError, match=message):
            run.train_notes(other, "mini", tmp_path / "no", base=wrong)
