"""The model study's own trainings: their recipes, what is read of them, tables and picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import verilocc_bench.training.run as training_run
from benchmarks.model_study import training_tables, variants
from benchmarks.model_study.__main__ import main
from benchmarks.model_study.configurations import REFERENCE, REFERENCE_TEXT
from benchmarks.model_study.models import read_models, trained_folder, write_models
from benchmarks.model_study.scaling_plot import draw_scaling
from benchmarks.model_study.training_tables import (
    scaling_words,
    training_words,
    variant_table,
)
from benchmarks.model_study.trainings import read_trained
from benchmarks.model_study.variants import (
    BY_FUNCTIONS,
    BY_PARAMETERS,
    OF_REFERENCE,
    OF_TEXT,
    OF_WHOLE,
    VARIANTS,
    recipe_of,
    unseen_by,
)
from tests.training.small import dataset, generated
from tests.training.small import recipe as small_recipe
from verilocc_bench.errors import InputError
from verilocc_bench.targets import TARGETS
from verilocc_bench.training import Recipe, find_recipe
from verilocc_bench.training.recipe import read_recipe
from verilocc_bench.training.synthetic import synthetic_turns

RECIPES = {name: recipe_of(variant) for name, variant in VARIANTS.items()}


def differences(name: str, other: str) -> set[tuple[str, ...]]:
    """The places at which two recipes differ, but for names."""

    def leaves(value: Any, place: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
        if isinstance(value, dict):
            inner: Any = value.items()
        elif isinstance(value, list):
            inner = enumerate(value)
        else:
            return {place: value}
        return {k: v for key, each in inner for k, v in leaves(each, (*place, str(key))).items()}

    one, two = (leaves(RECIPES[each].as_json(), ()) for each in (name, other))
    found = {place for place in one | two if one.get(place) != two.get(place)}
    return {place for place in found if place[0] not in ("name", "description")}


def test_variants_differ_from_the_one_they_are_compared_with_in_one_thing() -> None:
    sizes = {
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    }
    for name, expected in (
        *((f"without-{arch}", {"archs"}) for arch in TARGETS),
        ("smaller", sizes),
        ("fewer-data", {"functions", "synthetic"}),
    ):
        keys = {
            next(k for k in reversed(x) if not k.isdigit()) for x in differences(name, "all-short")
        }
        assert keys == expected
    for group, expected in ((BY_PARAMETERS, sizes), (BY_FUNCTIONS, {"functions"})):
        for name in set(group) - {"text-short"}:
            assert {place[-1] for place in differences(name, "text-short")} == expected


def test_the_shorter_recipe_is_as_much_shorter_everywhere() -> None:
    whole, short = find_recipe(REFERENCE), RECIPES["all-short"]
    part = short.training.steps / whole.training.steps
    assert 0 < part < 1
    for own, before in zip(short.sources, whole.sources, strict=True):
        assert (own.functions or 0) == pytest.approx((before.functions or 0) * part, abs=0.5)
        assert own.synthetic == pytest.approx(before.synthetic * part, abs=0.5)
    assert RECIPES["smaller"].model.configuration == {
        **(whole.model.configuration or {}),
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }


def test_the_one_that_reads_functions_whole_has_no_other_task() -> None:
    recipe, windows = RECIPES["whole-short"], find_recipe(REFERENCE_TEXT)
    assert {source.format for source in recipe.sources} == {"whole"}
    assert {place[-1] for place in differences("whole-short", "text-short")} >= {"format"}
    assert [source.label for source in recipe.sources] == [s.label for s in windows.sources]
    configuration = recipe.model.configuration or {}
    assert configuration["max_position_embeddings"] > recipe.training.maximum_tokens


def test_an_architecture_left_out_is_in_no_example() -> None:
    for arch in TARGETS:
        assert unseen_by(f"without-{arch}") == arch
        for source in RECIPES[f"without-{arch}"].sources:
            assert set(source.archs) == set(TARGETS) - {arch}
    assert unseen_by("all-short") is unseen_by("anything") is None
    *_, synthetic = RECIPES["without-sm_80"].sources
    turns = synthetic_turns(300, "0", synthetic.archs)
    files = {word.partition("/")[0] for turn in turns for word in turn.prompt.split()[3:5]}
    assert {"v", "a", "s"} <= files
    assert not files & {"R", "UR", "P", "UP"}
    assert list(synthetic_turns(50, "0", tuple(TARGETS))) == list(synthetic_turns(50, "0"))


def test_text_models_have_the_sizes_of_the_curve() -> None:
    sizes = [RECIPES[name].model.configuration or {} for name in BY_PARAMETERS]
    keys = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    assert [tuple(size[key] for key in keys) for size in sizes] == [
        *((64, 192, 3, 2), (128, 384, 5, 4), (192, 576, 6, 6))
    ]
    assert [RECIPES[name].sources[0].functions for name in BY_FUNCTIONS] == [32, 125, 500]
    for variant in OF_TEXT:
        training = RECIPES[variant.name].training
        assert (training.steps, training.save_steps) == (600, 150)


def test_recipes_of_variants_are_recipes(tmp_path: Path) -> None:
    for recipe in RECIPES.values():
        (tmp_path / "recipe.yaml").write_text(json.dumps(recipe.as_json()))
        assert read_recipe(tmp_path / "recipe.yaml") == recipe


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What would be trained: names and processes. Folders get what says that it is done."""
    found = []

    def train(recipe: Recipe, dataset: str, output: Path, *, jobs: int) -> Path:
        assert dataset == "a/dataset"
        found.append((recipe.name, jobs))
        write_training(output, recipe)
        return output

    monkeypatch.setattr(training_run, "train", train)
    return found


def write_training(folder: Path, recipe: Recipe, parameters: int = 1000, **more: Any) -> None:
    """training.json and log.jsonl, as training leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = {
        "seconds": 12.3,
        "device": "cpu",
        "examples": 10,
        "tokens": 4567,
        "parameters": parameters,
        **more,
    }
    document = {
        "recipe": recipe.as_json(),
        "dataset": {"name": "a/dataset", "hash": "h"},
        "versions": {"torch": "2"},
        "measured": measured,
    }
    (folder / "training.json").write_text(json.dumps(document))
    entries: Sequence[dict[str, float]] = [
        {"step": 50, "loss": 3.0},
        {"step": 800, "eval_loss": 1.5 + 100 / parameters, "eval_accuracy": 0.25},
        {"step": 400, "eval_loss": 2.0, "eval_accuracy": 0.125},
        {"step": 800, "eval_loss": 1.5 + 100 / parameters, "eval_runtime": 1.0},
        {"step": 800, "eval_loss": 1.5 + 100 / parameters, "eval_accuracy": 0.25},
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


COME_ALONG = {REFERENCE: REFERENCE, REFERENCE_TEXT: REFERENCE_TEXT}


def test_all_are_trained_and_entered(trained: list[tuple[str, int]], tmp_path: Path) -> None:
    command = ["train", "--dataset", "a/dataset", "--output", str(tmp_path), "--jobs", "2"]
    assert main([*command, "--only", "without-sm_80,text-short"]) == 0
    assert trained == [("without-sm_80", 2), ("text-short", 2)]
    folder = str(trained_folder(tmp_path, "without-sm_80"))
    assert read_models(tmp_path) == {**COME_ALONG, "without-sm_80": folder}
    trained.clear()
    assert main(command) == 0
    assert [name for name, _ in trained] == list(VARIANTS)
    write_training(trained_folder(tmp_path, REFERENCE_TEXT), find_recipe(REFERENCE_TEXT))
    write_models(tmp_path, {"another": "a/folder"})
    entered = {each.name for each in (*OF_REFERENCE, OF_WHOLE)}
    found = read_models(tmp_path)
    assert found.keys() == {*COME_ALONG, "another", *entered}
    assert found[REFERENCE] == REFERENCE
    assert found[REFERENCE_TEXT] == str(trained_folder(tmp_path, REFERENCE_TEXT))


def test_an_interrupted_training_is_not_entered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(recipe: Recipe, dataset: str, output: Path, *, jobs: int) -> Path:
        if recipe.name == "smaller":
            output.mkdir(parents=True)
            raise KeyboardInterrupt
        write_training(output, recipe)
        return output

    monkeypatch.setattr(training_run, "train", train)
    command = ["train", "--dataset", "a/dataset", "--output", str(tmp_path)]
    assert main([*command, "--only", "all-short,smaller"]) == 130
    assert read_models(tmp_path).keys() == {*COME_ALONG, "all-short"}
    assert main([*command, "--only", "nothing"]) == 2
    assert "expected one of all-short" in capsys.readouterr().err


def test_a_variant_is_trained_in_earnest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the machinery as it is; and a second time it is left as it is."""
    recipe = small_recipe(tmp_path)
    monkeypatch.setattr(variants, "recipe_of", lambda _: recipe)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    rows = dataset(tmp_path / "rows", generated(6))
    command = ["train", "--dataset", str(rows), "--output", str(tmp_path / "study")]
    assert main([*command, "--only", "smaller"]) == 0
    folder = trained_folder(tmp_path / "study", "smaller")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main([*command, "--only", "smaller"]) == 0
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    (found,) = read_trained(tmp_path / "study", ["smaller"]).values()
    assert (found.steps, found.curve, found.last) == (9, (), None)
    assert f"| {found.parameters:,} | – |" in variant_table(tmp_path / "study")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with every text variant, of which the widest has most parameters."""
    write_models(tmp_path)
    for number, each in enumerate(OF_TEXT):
        folder = trained_folder(tmp_path, each.name)
        write_training(folder, RECIPES[each.name], 1000 * (1 + number), resumed=number == 1)
    return tmp_path


def test_the_curve_is_read_in_order_and_each_step_once(study: Path) -> None:
    found = read_trained(study, [each.name for each in OF_TEXT])
    assert list(found) == [each.name for each in OF_TEXT]
    assert [seen.step for seen in found["text-short"].curve] == [400, 800]
    assert found["text-short"].last == (800, 1.6, 0.25)
    log = trained_folder(study, "text-short") / "log.jsonl"
    log.write_text('{"eval_accuracy": 0.5, "eval_loss": 1.0}\n')
    with pytest.raises(InputError, match=r"log\.jsonl.*line of a training's log"):
        read_trained(study, ["text-short"])


def test_scaling_has_a_picture_and_its_figures(study: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    images = tmp_path / "docs" / "images"
    images.mkdir(parents=True)
    text = scaling_words(study, images, tmp_path / "docs" / "page.md")
    picture = images / "reference-text-scaling.svg"
    assert text.startswith("![")
    assert "](images/reference-text-scaling.svg)\n" in text
    line = next(line for line in text.splitlines() if "`text-functions-125`" in line)
    cells = [cell.strip() for cell in line.split("|")[3:-1]]
    assert cells == ["5,000", "125", "4,567", "600", "1.520", "25.0 %", "12"]
    assert text.count("12 since resumed") == 1
    names = ", ".join(f"`{each.name}`" for each in OF_TEXT)
    assert text.endswith(f": `reference-text`. Trained on `h`: {names}.")
    first = picture.read_bytes()
    assert ET.fromstring(first).tag.endswith("svg")
    scaling_words(study, images, tmp_path / "docs" / "page.md")
    assert picture.read_bytes() == first
    found = read_trained(study, ["text-short", "text-width-64"])
    draw_scaling(found, picture)  # a part of them is shown as well
    assert picture.read_bytes() != first


def test_the_whole_text_model_is_shown_with_the_others(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []
    monkeypatch.setattr(training_tables, "draw_scaling", lambda found, _: drawn.append([*found]))
    write_training(tmp_path / "text", find_recipe(REFERENCE_TEXT), 77_777)
    assert "77,777" not in training_words(study, REFERENCE_TEXT)
    assert training_words(study, "another") == ""
    write_models(study, {REFERENCE_TEXT: str(tmp_path / "text")})
    assert "77,777" in training_words(study, REFERENCE_TEXT)
    _, _, head, _, first, *_ = scaling_words(study, tmp_path, tmp_path / "page.md").splitlines()
    assert head.startswith("| model |")
    assert first.startswith("| `reference-text` | – | 77,777 | 1,300 |")
    assert drawn == [[REFERENCE_TEXT, *(each.name for each in OF_TEXT)]]


BEFORE = {
    "functions": 36,
    "valid": 35,
    "registers_ratio": 1.02,
    "share_better": 0.25,
    "share_equal": 0.5,
    "share_worse": 0.25,
    "conflicts": 1234,
    "label_conflicts": 1000,
    "conflicts_ratio": 1.1,
    "dead_ends": 7,
    "rows": [],
}
