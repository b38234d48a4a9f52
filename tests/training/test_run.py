"""Runs: the same bytes each time, whether interrupted or not; and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import verilocc_bench.training.run as run_module
import verilocc_bench.training.trainer as trainer_module
from tests.training.small import (
    base_model,
    dataset,
    document,
    generated,
    recipe,
    smallest,
    write_recipe,
)
from verilocc_bench.cli import build_parser, main
from verilocc_bench.dataset.rows import BEST_COLUMNS
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import RunConfiguration
from verilocc_bench.model.allocator import language_model_allocator
from verilocc_bench.settings.command_line import read_settings
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.training.batches import IGNORED, Batches
from verilocc_bench.training.examples import make_examples
from verilocc_bench.training.network import begin
from verilocc_bench.training.recipe import ModelRecipe
from verilocc_bench.training.run import train
from verilocc_bench.training.run_folder import data_source
from verilocc_bench.training.trainer import CompletionTrainer, Learnt, make_trainer

MODEL = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture(scope="module")
def rows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dataset(tmp_path_factory.mktemp("rows"), generated(6))


@pytest.fixture(scope="module")
def finished(rows_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was not interrupted."""
    home = tmp_path_factory.mktemp("finished")
    return train(recipe(home), str(rows_folder), home / "run")


def model_bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in MODEL}


def losses(folder: Path) -> list[float]:
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [entry["loss"] for entry in entries if "loss" in entry]


def interrupt_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Ctrl-C in the computation of that step."""
    plain: Callable[..., Any] = CompletionTrainer.compute_loss
    steps = []

    def compute_loss(*arguments: Any, **options: Any) -> Any:
        steps.append(1)
        if len(steps) == step:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    patch.setattr(CompletionTrainer, "compute_loss", compute_loss)


def test_two_runs_give_the_same_weights(finished: Path, rows_folder: Path, tmp_path: Path) -> None:
    again = train(recipe(tmp_path), str(rows_folder), tmp_path / "again")
    assert model_bytes(again) == model_bytes(finished)
    assert losses(again) == losses(finished)


def test_an_interrupted_run_goes_on_to_the_same_weights(
    finished: Path, rows_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            train(recipe(tmp_path), str(rows_folder), folder)
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["checkpoint-3"]
    assert not (folder / "training.json").exists()
    train(recipe(tmp_path), str(rows_folder), folder)
    assert model_bytes(folder) == model_bytes(finished)
    assert losses(folder) == losses(finished)
    assert json.loads((folder / "training.json").read_text())["measured"]["resumed"] is True
    assert not (folder / "checkpoints").exists()


def test_a_finished_run_is_left_as_it_is(finished: Path, rows_folder: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}
    train(recipe(finished.parent), str(rows_folder), finished)
    assert {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()} == before


def test_a_card_that_was_not_written_is_written(finished: Path, rows_folder: Path) -> None:
    card = finished / "README.md"
    text = card.read_text()
    card.unlink()
    train(recipe(finished.parent), str(rows_folder), finished)
    assert card.read_text() == text


def test_an_output_that_is_no_folder(
    rows_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = write_recipe(tmp_path / "r.yaml"), tmp_path / "file"
    output.write_text("mine")
    for given, said in (
        (output, "expected a folder"),
        (output / "deeper", f"{output / 'deeper'}: expected a folder that can be written"),
        (tmp_path / ("n" * 300), "File name too long"),
    ):
        try:
            status = main(["train", str(path), "--dataset", str(rows_folder), "-o", str(given)])
        except SystemExit as end:  # found by the parser
            status = end.code  # type: ignore[assignment]
        assert status == 2
        assert said in capsys.readouterr().err.strip().splitlines()[-1]
    assert output.read_text() == "mine"


def test_a_dataset_with_other_better_labels_is_another(tmp_path: Path) -> None:
    rows = [replace(row, **dict.fromkeys(BEST_COLUMNS)) for row in generated(3)]
    better = [replace(row, best_registers_used=9) for row in rows]
    plain, told = (data_source("a/b", None, each) for each in (rows, better))
    assert plain.keys() == {"name", "revision", "hash"}
    assert told.pop("best_hash")
    assert told == plain
    other = [replace(row, best_registers_used=8) for row in rows]
    assert data_source("a/b", None, other) != data_source("a/b", None, better)
    assert data_source("a/b", None, better[::-1]) == data_source("a/b", None, better)


def test_a_step_is_one_batch_however_many_gpus_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = recipe(tmp_path)
    network, tokenizer = begin(wanted.model)
    learnt = Learnt(make_examples(wanted, tokenizer, generated(2), tmp_path / "examples"), None)
    plain = transformers.TrainingArguments

    made: list[Any] = []

    class TwoGpus(plain):  # type: ignore[misc, valid-type]
        @property
        def device(self) -> torch.device:
            self._n_gpu = 2
            return torch.device("cuda")

    class Made(Exception):
        pass

    def stop(**options: Any) -> None:
        made.append(options["args"])
        raise Made

    monkeypatch.setattr(transformers, "TrainingArguments", TwoGpus)
    monkeypatch.setattr(trainer_module, "CompletionTrainer", stop)
    with pytest.raises(Made):
        make_trainer(wanted, network, 0, learnt, tmp_path / "checkpoints")
    assert made[0].train_batch_size == 1


@pytest.mark.parametrize("kind", ["another recipe", "other things"])
def test_another_folder_is_refused(
    kind: str,
    finished: Path,
    rows_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = finished
    if kind == "other things":
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    path = write_recipe(tmp_path / "r.yaml", seed=1)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    assert main(["train", str(path), "--dataset", str(rows_folder), "-o", str(folder)]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith(f"verilocc-bench train: {folder}: the folder ")
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


def test_the_loss_falls_and_validation_is_measured(rows_folder: Path, tmp_path: Path) -> None:
    options = {**document()["training"], "steps": 60, "save_steps": 30}
    wanted = recipe(tmp_path, training=options, validation_split="test", validation_examples=900)
    folder = train(wanted, str(rows_folder), tmp_path / "run")
    found = losses(folder)
    assert sum(found[-5:]) < 0.7 * sum(found[:5])
    measured = json.loads((folder / "training.json").read_text())["measured"]
    assert 0 <= measured["validation"]["eval_accuracy"] <= 1
    assert measured["validation"]["eval_loss"] < found[0]


class Stopped(Exception):
    """Instead of a training."""


def whole_functions(
    rows_folder: Path, tmp_path: Path, patch: pytest.MonkeyPatch, **more: Any
) -> Any:
    """What a run in `whole` would learn from, and be measured on."""
    made: list[Learnt] = []

    def stop(_recipe: Any, _network: Any, _padding: int, learnt: Learnt, _folder: Path) -> None:
        made.append(learnt)
        raise Stopped

    patch.setattr(run_module, "make_trainer", stop)
    wanted = recipe(
        tmp_path,
        sources=[{"format": "whole", "label": "compiler"}],
        validation_split="test",
        training={**document()["training"], "maximum_tokens": 2048},
        **more,
    )
    with pytest.raises(Stopped):
        train(wanted, str(rows_folder), tmp_path / "run")
    return made[0]


@pytest.mark.parametrize(("wanted", "found"), [(4, 4), (2_000, 6)])
def test_functions_are_counted_as_examples_where_they_are_shown_whole(
    wanted: int,
    found: int,
    rows_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnt = whole_functions(rows_folder, tmp_path, monkeypatch, validation_examples=wanted)
    assert (len(learnt.examples), len(learnt.validation)) == (6, found)


def test_a_validation_split_without_any_example_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = dataset(tmp_path / "rows", generated(6))
    dataset(folder, smallest(1), split="validation")
    path = write_recipe(
        tmp_path / "r.yaml",
        sources=[{"format": "whole", "label": "compiler"}],
        validation_split="validation",
        training={**document()["training"], "maximum_tokens": 2048},
    )
    assert main(["train", str(path), "--dataset", str(folder), "-o", str(tmp_path / "run")]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "split 'validation': the recipe's sources find nothing to learn" in line
    assert "at most 2048 tokens ('maximum_tokens'); 'validation_split: null' trains without" in line


def test_a_training_that_diverges_leaves_no_model(
    rows_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = {**document()["training"], "learning_rate": 1e38, "gradient_norm": 1e38}
    path = write_recipe(tmp_path / "r.yaml", training=wild)
    command = ["train", str(path), "--dataset", str(rows_folder), "-o", str(tmp_path / "run")]
    for _ in range(2):
        assert main(command) == 2
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert "try a smaller learning_rate" in line
    assert not (tmp_path / "run" / "training.json").exists()


def test_the_log_leaves_out_what_is_no_number(
    rows_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = run_module._measured

    def noting(trainer: CompletionTrainer, *more: Any) -> dict[str, Any]:
        found = measured(trainer, *more)
        trainer.state.log_history.append({"step": 1, "loss": 1.0, "grad_norm": float("inf")})
        return found

    monkeypatch.setattr(run_module, "_measured", noting)
    folder = train(recipe(tmp_path), str(rows_folder), tmp_path / "run")
    assert json.loads((folder / "log.jsonl").read_text().splitlines()[-1]) == {"loss": 1, "step": 1}


def test_the_result_is_a_plain_model_that_knows_its_format(finished: Path) -> None:
    found = transformers.AutoModelForCausalLM.from_pretrained(finished, local_files_only=True)
    assert found.config.verilocc_bench == {
        "prompt_format": "window",
        "sampling": "greedy",
        "window_registers": 4,
    }
    told = json.loads((finished / "training.json").read_text())
    assert told["measured"]["parameters"] == found.num_parameters()
    assert told == {**json.loads((finished / "run.json").read_text()), **told}


def test_it_is_evaluated_in_its_own_format(finished: Path, tmp_path: Path) -> None:
    kernels = dataset(tmp_path / "kernels", smallest(1))
    arguments = ["evaluate", "--model", str(finished), "--dataset", str(kernels)]
    arguments += ["--decoding", "constrained", "--device", "cpu", "--dtype", "float32"]
    assert main([*arguments, "--output-path", str(tmp_path / "results")]) == 0
    (path,) = (tmp_path / "results").rglob("results.json")
    found = json.loads(path.read_text())
    assert found["config"]["options"]["prompt_format"] == "window"
    assert found["config"]["options"]["strategy"] == "greedy"
    assert [kernel["valid"] for kernel in found["kernels"]] == [1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "greedy"),
        (("--sampling", "random"), "random"),
        (("--temperature", "0.5"), "random"),
        (("--samples", "2"), "random"),
        (("--decoding", "guided"), "random"),
    ],
)
def test_a_single_answer_is_its_likeliest_unless_something_else_is_said(
    finished: Path, arguments: tuple[str, ...], expected: str
) -> None:
    parsed = build_parser().parse_args(["evaluate", "--model", str(finished), *arguments])
    settings = read_settings(parsed, LocalModelSettings)
    asked = RunConfiguration(str(finished), settings, samples=parsed.samples).asked_settings()
    assert isinstance(asked, LocalModelSettings)
    allocator = language_model_allocator(str(finished), asked)
    assert allocator.settings.described()["strategy"] == expected


# The loss


@pytest.fixture
def trainer(tmp_path: Path) -> tuple[Any, Any]:
    """A trainer of a new model, and its batches."""
    wanted = recipe(tmp_path)
    transformers.set_seed(0)
    network, tokenizer = begin(wanted.model)
    examples = make_examples(wanted, tokenizer, generated(4), tmp_path / "examples")
    padding = tokenizer.pad_token_id
    made = make_trainer(wanted, network, padding, Learnt(examples, None), tmp_path / "steps")
    return made, Batches(examples, 8192, padding, 0)


def test_the_loss_is_that_of_transformers_on_each_example_alone(
    trainer: tuple[Any, Batches],
) -> None:
    made, batches = trainer
    network = made.model.eval()
    padded = 0
    for number in range(min(3, len(batches))):
        batch = batches[number]
        padded += int((batch["attention_mask"] == 0).sum())
        total, learnt = 0.0, 0
        for ids, mask, labels in zip(
            batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True
        ):
            real = mask.bool()
            count = int((labels != IGNORED).sum())
            with torch.no_grad():
                alone = network(input_ids=ids[real][None], labels=labels[real][None]).loss
            total += float(alone) * count
            learnt += count
        with torch.no_grad():
            loss = float(made.compute_loss(network, batch))
        assert loss == pytest.approx(total / learnt, abs=1e-5)
    assert padded


# What cannot be trained


def test_examples_longer_than_the_model_reads(rows_folder: Path, tmp_path: Path) -> None:
    wanted = recipe(tmp_path, model={"pretrained": base_model(context=16)})
    with pytest.raises(InputError, match=r"maximum_tokens.*reads 16"):
        train(wanted, str(rows_folder), tmp_path / "run")


def test_a_base_that_is_no_model(rows_folder: Path, tmp_path: Path) -> None:
    wanted = replace(recipe(tmp_path), model=ModelRecipe(pretrained=str(tmp_path)))
    with pytest.raises(InputError, match=r"config\.json"):
        train(wanted, str(rows_folder), tmp_path / "run")
