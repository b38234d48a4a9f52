"""The card of a trained model: what it says follows from files, and changes with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.report.documents import make_document
from verilocc_bench.dataset import Row, load_rows, write_parquet
from verilocc_bench.dataset.rows import rows_hash
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.results import versions
from verilocc_bench.model.transformers_model.model_files import folder_revision
from verilocc_bench.training.card import read_training, write_card
from verilocc_bench.training.overlap import find_overlaps
from verilocc_bench.training.recipe import ExampleSource, ModelRecipe, Optimization, Recipe

MINI = load_rows("mini").rows
SMALL = sorted(MINI, key=lambda row: row.n_virtual_registers)
TRAIN, TEST = SMALL[:6], SMALL[6:9]


def write_dataset(folder: Path, splits: dict[str, list[Row]]) -> Path:
    for split, rows in splits.items():
        for arch, family in sorted({(row.arch, row.family) for row in rows}):
            own = [row for row in rows if (row.arch, row.family) == (arch, family)]
            path = folder / "data" / arch / family / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(own, path)
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    train = [replace(row, group=f"g{n}", cluster=f"c{n}") for n, row in enumerate(TRAIN)]
    test = [replace(row, group=f"h{n}", cluster=f"d{n}") for n, row in enumerate(TEST)]
    folder = write_dataset(tmp_path / "dataset", {"train": train, "test": test})
    entries = [
        {"id": row.id, "split": "test", "nearest": TRAIN[0].id, "distance": 0.25 * (n + 1)}
        for n, row in enumerate(TEST)
    ]
    (folder / "leakage.json").write_text(json.dumps({"rows": entries}))
    return folder


def recipe(**changes: Any) -> Recipe:
    kept = Recipe(
        "tiny",
        "a tiny model: for tests",
        ModelRecipe("owner/base"),
        Optimization(steps=1234),
        (
            ExampleSource("window", "best", functions=4, renamings=3, new_registers=(2, 8)),
            ExampleSource("whole", "compiler", archs=("sm_80",)),
        ),
    )
    return replace(kept, **changes)


def training_document(dataset: Path, of: Recipe) -> dict[str, Any]:
    rows = load_rows(str(dataset), split="train").rows
    return {
        "recipe": of.as_json(),
        "dataset": {"name": dataset.name, "revision": None, "hash": rows_hash(rows)},
        "versions": {"verilocc-bench": "0.1.0", "torch": "9.8.7"},
        "measured": {
            "seconds": 3456.7,
            "resumed": True,
            "device": "a device",
            "examples": 11_111,
            "tokens": 2_222_222,
            "parameters": 33_333,
            "validation": {"eval_loss": 0.12345, "eval_mean_token_accuracy": 0.98765},
        },
    }


def describe(folder: Path, document: Any) -> None:
    (folder / "training.json").write_text(json.dumps(document))


@pytest.fixture
def folder(tmp_path: Path, dataset: Path) -> Path:
    found = tmp_path / "model"
    found.mkdir()
    (found / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 4321}))
    (found / "model.safetensors").write_bytes(b"weights")
    describe(found, training_document(dataset, recipe()))
    return found


def test_the_card_says_what_the_files_say(folder: Path, dataset: Path) -> None:
    text = write_card(folder, str(dataset)).read_text()
    _, header, body = text.split("---\n", 2)
    assert yaml.safe_load(header) == {
        "base_model": "owner/base",
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["register-allocation", "compilers", "gpu", "code", "verilocc-bench"],
    }
    assert "assign track of `dataset`, a dataset that is not on the Hub; the hash" in body
    for said in ("33,333", "11,111", "2,222,222", "3,457 since", "a device", "1,234", "4,321"):
        assert said in body, said
    assert "0.1235" in body or "0.1234" in body
    assert "98.77 %" in body or "98.76 %" in body
    assert "torch 9.8.7" in body
    assert "A tiny model: for tests." in body
    assert "--prompt-format window" in body
    assert "begun with `owner/base`" in body
    assert "it is asked about 2 at a time" in body
    assert "`window` was shown with other names of physical registers 3 times more." in body
    said = body.split("```yaml\n")[1].split("```")[0]
    assert yaml.safe_load(said) == json.loads(json.dumps(recipe().as_json()))
    assert str(dataset) not in body
    assert write_card(folder, str(dataset)).read_text() == text
    nvidia = str(sum(row.arch == "sm_80" for row in TRAIN))
    lines = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()]
    assert ["`window`", "best", "all", "4", "6"] in lines
    assert ["`whole`", "compiler", "sm_80", nvidia, nvidia] in lines


def test_the_card_names_the_dataset_it_was_trained_on(
    tmp_path: Path, folder: Path, dataset: Path
) -> None:
    copy = dataset.rename(tmp_path / "regalloc")
    describe(folder, training_document(copy, recipe()))
    _, header, body = write_card(folder, str(copy)).read_text().split("---\n", 2)
    assert yaml.safe_load(header)["datasets"] == ["verilocc/regalloc"]
    assert "of [verilocc/regalloc](https://huggingface.co/datasets/verilocc/regalloc); the" in body
    document = training_document(copy, recipe(split="test"))
    document["dataset"] = {"name": "mini", "revision": None, "hash": rows_hash(MINI)}
    describe(folder, document)
    _, header, body = write_card(folder, "mini").read_text().split("---\n", 2)
    assert "datasets" not in yaml.safe_load(header)
    assert "of `mini`, which comes with the package; the" in body


def test_nothing_is_shared_and_distances_are_the_datasets(folder: Path, dataset: Path) -> None:
    rows = load_rows(str(dataset), split="train").rows
    (found,) = find_overlaps(dataset, rows, "train")
    assert (found.split, found.rows, found.shared) == ("test", 3, 0)
    assert (found.nearest, found.median) == (0.25, 0.5)
    text = write_card(folder, str(dataset)).read_text()
    assert "No row of any other split is in the training data" in text
    (found,) = find_overlaps(dataset, load_rows(str(dataset), split="test").rows, "test")
    assert (found.split, found.nearest) == ("train", None)  # of that there are no distances


def test_what_is_shared_is_found(dataset: Path, folder: Path) -> None:
    train = load_rows(str(dataset), split="train").rows
    other = [
        train[0],
        replace(TEST[0], group=train[1].group, cluster="x"),
        replace(TEST[1], group="y", cluster=train[2].cluster),
        replace(train[3], group="z", cluster="z"),
    ]
    write_dataset(dataset, {"test_other": other})
    clean, shared = find_overlaps(dataset, train, "train")
    assert clean.shared == 0
    assert (shared.ids, shared.texts, shared.groups, shared.clusters) == (2, 2, 2, 2)
    assert shared.nearest is None  # not of every row is a distance known
    text = write_card(folder, str(dataset)).read_text()
    assert "Rows of `test_other` have something in common" in text
    assert "No row of any other split" not in text


def test_what_is_refused_is_one_line(folder: Path, dataset: Path) -> None:
    leakage, document = dataset / "leakage.json", json.loads((folder / "training.json").read_text())
    leakage.write_text('{"rows": [{"id": "x"}]}')
    with pytest.raises(InputError, match=r"leakage\.json: expected"):
        write_card(folder, str(dataset))
    document["recipe"]["split"] = "test"
    describe(folder, document)
    with pytest.raises(InputError, match="another dataset"):
        write_card(folder, "mini")
    for wrong in ({}, [], {"recipe": {}, "dataset": {}, "versions": {}, "measured": {}}):
        describe(folder, wrong)
        with pytest.raises(InputError, match=r"training\.json: expected what"):
            read_training(folder)


def test_results_of_this_model_are_shown_and_of_another_refused(
    folder: Path, dataset: Path, tmp_path: Path
) -> None:
    path, document = tmp_path / "results.json", make_document()
    document["config"]["prompt"] = None  # of no language model

    def card() -> str:
        path.write_text(json.dumps(document))
        return write_card(folder, str(dataset), [path]).read_text()

    overall, text = document["results"]["overall"], card()
    assert f"{overall['registers_ratio']:.3f}" in text
    assert f"{overall['bank_conflicts']:,}" in text
    document["config"] |= {
        "revision": folder_revision(folder),
        "prompt": {"format": "window", "version": 3, "hash": "0", "few_shot": 0},
        "options": {"strategy": "greedy"},
    }
    document["versions"] = versions(language_model=True)
    assert "`window`, free, greedy" in card()
    document["config"]["options"]["window_registers"] = 4
    assert "`window` of 4, free, greedy" in card()
    guided = make_document(decoding="guided")
    document |= {key: guided[key] for key in ("results", "groups", "kernels")}
    options = {"verifier_calls": 7, "feedback": "repair", "strategy": "random", "temperature": 0.5}
    document["config"] |= {"decoding": "guided", "options": options}
    assert "`window`, guided (repair, 7 attempts), temperature 0.5 " in card()
    (folder / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(InputError, match="another model"):
        card()


def test_a_base_in_a_folder_is_not_named_on_the_hub(
    folder: Path, dataset: Path, tmp_path: Path
) -> None:
    document = training_document(dataset, recipe(model=ModelRecipe(str(tmp_path))))
    describe(folder, document)
    header = yaml.safe_load(write_card(folder, str(dataset)).read_text().split("---\n")[1])
    assert "base_model" not in header
