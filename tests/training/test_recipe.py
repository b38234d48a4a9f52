"""Recipes are read strictly: each mistake is one line that names the file and the key."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.training.small import LLAMA, document, write_recipe
from verilocc_bench.errors import InputError
from verilocc_bench.training import find_recipe, read_recipe
from verilocc_bench.training.recipe import LowRank, Recipe
from verilocc_bench.training.teacher import Policy

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted(
    path
    for folder in (ROOT / "recipes", ROOT / "verilocc_bench" / "training" / "recipes")
    for path in folder.glob("*.yaml")
    if "sources" in yaml.safe_load(path.read_text())
)
"""The recipes for `train`; those of other commands have no sources."""

STATE = {"format": "state", "policies": [{}]}
NEW = {"tokenizer": "decisions", "configuration": LLAMA}


def training(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {**document()["training"], **changes}
    return {"training": found}


def source(**changes: Any) -> dict[str, Any]:
    return {"sources": [STATE, {**STATE, **changes}]}


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_every_recipe_that_comes_along_is_read(path: Path) -> None:
    found = read_recipe(path)
    assert found.name == path.stem
    assert found.description


def test_a_recipe_comes_by_its_name() -> None:
    assert find_recipe("reference").name == "reference"


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    found = read_recipe(write_recipe(tmp_path / "r.yaml", seed=7))
    assert isinstance(found, Recipe)
    assert found.seed == 7
    assert found.model.configuration == LLAMA
    assert [each.format for each in found.sources] == ["candidates", "state"]
    assert found.sources[0].policies == (Policy(conflicts=1.0, detours=0.1), Policy())
    assert found.training.learning_rate == 0.01
    assert found.validation_split is None


def test_whole_numbers_are_numbers(tmp_path: Path) -> None:
    found = read_recipe(write_recipe(tmp_path / "r.yaml", **training(learning_rate=1)))
    assert isinstance(found.training.learning_rate, float)


def test_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    shared = yaml.safe_dump({**document(), "sources": "HERE"})
    path.write_text(
        shared.replace(
            "sources: HERE",
            "sources:\n- {format: state, policies: &p [{detours: 0.5}]}\n"
            "- {format: candidates, policies: *p}",
        )
    )
    first, second = read_recipe(path).sources
    assert first.policies == second.policies == (Policy(detours=0.5),)


MISTAKES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown key": ({"steps": 3}, ("'steps'", "known: name, ")),
    "unknown key within": (training(step=3), ("training", "'step'")),
    "unknown key in a list": (source(polices=[]), ("sources 2", "'polices'")),
    "unknown key of a policy": (source(policies=[{}, {"grow": 1}]), ("policies 2", "'grow'")),
    "wrong type": (training(steps="many"), ("training: steps", "whole number", "'many'")),
    "a truth for a number": (training(steps=True), ("training: steps", "'True'")),
    "a fraction for a count": (training(steps=1.5), ("training: steps", "'1.5'")),
    "a text for a number": (training(learning_rate="2e-3"), ("learning_rate", "1.0e-3")),
    "no finite number": (training(learning_rate=float("nan")), ("learning_rate", "finite")),
    "a number for a text": ({"name": 3}, ("name", "a text")),
    "one source, no list": ({"sources": STATE}, ("sources", "a list")),
    "no section": ({"training": 3}, ("training", "names and values")),
    "nothing": ({"model": None}, ("model", "names and values")),
    "no sources": ({"sources": []}, ("sources", "at least one")),
    "both models": ({"model": {**NEW, "pretrained": "a/b"}}, ("configuration", "pretrained")),
    "no model": ({"model": {}}, ("model", "'configuration' or 'pretrained'")),
    "no model type": (
        {"model": {"tokenizer": "decisions", "configuration": {}}},
        ("configuration", "'model_type' is missing"),
    ),
    "no tokenizer": ({"model": {"configuration": LLAMA}}, ("model", "'tokenizer'")),
    "unknown tokenizer": ({"model": {**NEW, "tokenizer": "x"}}, ("tokenizer", "decisions")),
    "a second tokenizer": (
        {"model": {"pretrained": "a/b", "tokenizer": "decisions"}},
        ("model", "'tokenizer'"),
    ),
    "lora of nothing": ({"model": {**NEW, "lora": {}}}, ("model", "'lora'")),
    "revision of nothing": ({"model": {**NEW, "revision": "x"}}, ("model", "'revision'")),
    "rank 0": ({"model": {"pretrained": "a/b", "lora": {"rank": 0}}}, ("model: lora", "rank")),
    "label and policies": (source(label="best"), ("sources 2", "'label', 'policies', 'synthetic'")),
    "no answers": (
        {"sources": [{"format": "state"}]},
        ("sources 1", "'label', 'policies', 'synthetic'"),
    ),
    "unknown format": (source(format="stat"), ("sources 2", "format", "'stat'", "candidates")),
    "policies for whole": (source(format="whole"), ("sources 2", "'whole'", "policies")),
    "unknown label": (
        {"sources": [{"format": "whole", "label": "bset"}]},
        ("sources 1", "label", "'bset'", "'best'"),
    ),
    "unknown architecture": (source(archs=["gfx9"]), ("sources 2", "'gfx9'", "gfx90a")),
    "every 0": (source(every=0), ("sources 2", "every")),
    "functions 0": (source(functions=0), ("sources 2", "functions")),
    "renamings below 0": (source(renamings=-1), ("sources 2", "renamings")),
    "more than all detours": (source(policies=[{"detours": 1.5}]), ("policies 1", "detours")),
    **{
        f"{name} 0": (training(**{name: 0}), ("training", name, "at least 1"))
        for name in ("steps", "batch_tokens", "maximum_tokens", "save_steps", "log_steps")
    },
    "no threads": (training(threads=0), ("training", "threads")),
    "learning rate below 0": (training(learning_rate=-1), ("training", "learning_rate")),
    "beta 1": (training(adam_beta2=1), ("training", "adam_beta2")),
    "unknown precision": (training(precision="int4"), ("training", "precision", "'int4'")),
    "a date in the configuration": (
        {
            "model": {
                "tokenizer": "decisions",
                "configuration": {"model_type": "llama", "when": datetime.date(2026, 1, 31)},
            }
        },
        ("model", "configuration", "date", "JSON"),
    ),
    "validation below 0": ({"validation_examples": -1}, ("validation_examples",)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_about_file_and_key(mistake: str, tmp_path: Path) -> None:
    changes, said = MISTAKES[mistake]
    path = write_recipe(tmp_path / "r.yaml", **changes)
    assert_refused(path, *said)


@pytest.mark.parametrize("key", ["name", "description", "model", "sources", "training"])
def test_what_must_be_there(key: str, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in document().items() if k != key}))
    assert_refused(path, f"'{key}' is missing")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: [", "not YAML"),
        ("name: a\n\tb: c", "not YAML"),
        ("- name: x\n", "names and values"),
        ("just words", "names and values"),
        ("", "empty"),
        ("# nothing\n", "names and values"),
        ("name: !!python/object:os.system x", "not YAML"),
        ("- " * 60_000, "nested too deeply"),
        ("[" * 200_000, "more than 10,000 brackets"),
        ("name: &a [*a]\n", "nested too deeply"),
        ("name: x\n" + "# much\n" * 60_000, "more than the 262,144"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)),
            "more than 10,000 values",
        ),
    ],
)
def test_what_is_no_recipe(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    assert_refused(path, said)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(b"name: \xff\xfe")
    assert_refused(path, "UTF-8")


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"refrence: neither a file nor one of .*reference"):
        find_recipe("refrence")


def test_another_base_keeps_the_adaptation(tmp_path: Path) -> None:
    model = {"pretrained": "a/b", "revision": "main", "lora": {"rank": 4}}
    path = write_recipe(tmp_path / "r.yaml", model=model)
    assert find_recipe(str(path)).model.pretrained == "a/b"
    other = find_recipe(str(path), base="c/d").model
    assert (other.pretrained, other.revision) == ("c/d", None)
    assert other.lora == LowRank(rank=4)
    plain = find_recipe(str(write_recipe(path)), base="c/d").model
    assert (plain.pretrained, plain.configuration, plain.tokenizer) == ("c/d", None, None)


def assert_refused(path: Path, *said: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_recipe(path)
    line = str(refusal.value)
    assert line.startswith(f"{path}:")
    assert "\n" not in line
    for words in said:
        assert words in line.removeprefix(str(path))
