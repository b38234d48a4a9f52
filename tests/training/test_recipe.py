"""Recipes are read strictly: each mistake is one line that names the file and the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.training.small import TRAINING, base_model, document, write_recipe
from verilocc_bench.errors import InputError
from verilocc_bench.training.recipe import LowRank, Recipe, read_recipe

WINDOW = {"format": "window", "label": "best"}


def training(**changes: Any) -> dict[str, Any]:
    return {"training": {**TRAINING, **changes}}


def source(**changes: Any) -> dict[str, Any]:
    return {"sources": [WINDOW, {**WINDOW, **changes}]}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    found = read_recipe(write_recipe(tmp_path / "r.yaml", seed=7, **training(adam_beta2=0)))
    assert isinstance(found, Recipe)
    assert found.seed == 7
    assert found.model.pretrained == base_model()
    assert [each.format for each in found.sources] == ["window", "whole"]
    assert found.sources[0].new_registers == (4, 2)
    assert found.training.learning_rate == 0.01
    assert isinstance(found.training.adam_beta2, float)  # a whole number is a number
    assert found.validation_split is None


def test_anchors_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    shared = yaml.safe_dump({**document(), "sources": "HERE"})
    path.write_text(
        shared.replace(
            "sources: HERE",
            "sources:\n- {format: window, label: best, archs: &a [sm_80]}\n"
            "- {format: whole, label: best, archs: *a}",
        )
    )
    first, second = read_recipe(path).sources
    assert first.archs == second.archs == ("sm_80",)


MISTAKES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown key": ({"steps": 3}, ("'steps'", "known: name, ")),
    "unknown key within": (training(step=3), ("training", "'step'")),
    "unknown key in a list": (source(lable="best"), ("sources 2", "'lable'")),
    "wrong type": (training(steps="many"), ("training: steps", "whole number", "'many'")),
    "a truth for a number": (training(steps=True), ("training: steps", "'True'")),
    "a fraction for a count": (training(steps=1.5), ("training: steps", "'1.5'")),
    "a text for a number": (training(learning_rate="2e-3"), ("learning_rate", "1.0e-3")),
    "no finite number": (training(learning_rate=float("nan")), ("learning_rate", "finite")),
    "a number for a text": ({"name": 3}, ("name", "a text")),
    "one source, no list": ({"sources": WINDOW}, ("sources", "a list")),
    "no section": ({"training": 3}, ("training", "names and values")),
    "nothing": ({"model": None}, ("model", "names and values")),
    "no sources": ({"sources": []}, ("sources", "at least one")),
    "two kinds": ({"shards": "here"}, ("one of sources", "shards", "reward")),
    "a reward of windows": ({"reward": {"format": "window"}, "sources": []}, ("reward", "whole")),
    "one generation": ({"reward": {"generations": 1}, "sources": []}, ("reward", "at least 2")),
    "no functions": ({"reward": {"functions": 0}, "sources": []}, ("reward", "functions")),
    "no heat": ({"reward": {"temperature": 0.0}, "sources": []}, ("reward", "above 0")),
    "an arch": ({"reward": {"archs": ["gfx90"]}, "sources": []}, ("reward", "'gfx90'")),
    "no model": ({"model": {}}, ("model", "'pretrained'")),
    "a new model": ({"model": {"configuration": {}}}, ("model", "'configuration'")),
    "rank 0": ({"model": {"pretrained": "a/b", "lora": {"rank": 0}}}, ("model: lora", "rank")),
    "no answers": ({"sources": [{"format": "window"}]}, ("sources 1", "'label'")),
    "unknown format": (source(format="stat"), ("sources 2", "format", "'stat'", "window")),
    "orderings below 0": (source(orderings=-1), ("sources 2", "orderings")),
    "unknown label": (
        {"sources": [{"format": "whole", "label": "bset"}]},
        ("sources 1", "label", "'bset'", "'best'"),
    ),
    "unknown architecture": (source(archs=["gfx9"]), ("sources 2", "'gfx9'", "gfx90a")),
    "functions 0": (source(functions=0), ("sources 2", "functions")),
    "renamings below 0": (source(renamings=-1), ("sources 2", "renamings")),
    **{
        f"{name} 0": (training(**{name: 0}), ("training", name, "at least 1"))
        for name in ("steps", "batch", "accumulation", "maximum_tokens", "save_steps", "log_steps")
    },
    "no threads": (training(threads=0), ("training", "threads")),
    "learning rate below 0": (training(learning_rate=-1), ("training", "learning_rate")),
    "beta 1": (training(adam_beta2=1), ("training", "adam_beta2")),
    "unknown precision": (training(precision="int4"), ("training", "precision", "'int4'")),
    "validation below 0": ({"validation_examples": -1}, ("validation_examples",)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_about_file_and_key(mistake: str, tmp_path: Path) -> None:
    changes, said = MISTAKES[mistake]
    path = write_recipe(tmp_path / "r.yaml", **changes)
    assert_refused(path, *said)


@pytest.mark.parametrize("key", ["name", "description", "model", "training"])
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
        ("name: \xff\xfe", "UTF-8"),
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
    path.write_bytes(text.encode("latin-1"))
    assert_refused(path, said)


def test_another_base_keeps_the_adaptation(tmp_path: Path) -> None:
    model = {"pretrained": "a/b", "revision": "main", "lora": {"rank": 4}}
    path = write_recipe(tmp_path / "r.yaml", model=model)
    assert read_recipe(path).model.pretrained == "a/b"
    other = read_recipe(path, base="c/d").model
    assert (other.pretrained, other.revision) == ("c/d", None)
    assert other.lora == LowRank(rank=4)


def assert_refused(path: Path, *said: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_recipe(path)
    line = str(refusal.value)
    assert line.startswith(f"{path}:")
    assert "\n" not in line
    for words in said:
        assert words in line.removeprefix(str(path))
