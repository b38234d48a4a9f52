"""A training run: examples, steps, checkpoints, the model and its measurements.

While a run goes on, its folder holds `run.json` (recipe, dataset and versions:
what decides the weights), `examples/`, `validation/` and `checkpoints/`. At
the end it holds the model's own files, `adapter/`, `log.jsonl` and
`training.json`. An interrupted run goes on from its last checkpoint and gives
the same weights as an uninterrupted one. A finished run is left unchanged.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import file_sha256, revision_of, write_atomically
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.shipped import gguf_file, is_gguf
from verilocc_bench.model.transformers_model.model_files import find_model_folder
from verilocc_bench.model.transformers_model.network import Network
from verilocc_bench.training.card import CARD, write_card
from verilocc_bench.training.examples import Examples, make_examples, read_shards
from verilocc_bench.training.network import adapted, begin, device_name, write_model
from verilocc_bench.training.recipe import ModelRecipe, Recipe
from verilocc_bench.training.run_folder import claim_folder, data_source, versions
from verilocc_bench.training.trainers import (
    Learnt,
    Setting,
    Verdicts,
    answer_trainer,
    verdict_trainer,
)

FINISHED = "training.json"
"""The file that marks a finished run; it is written after the weights."""


class DatasetRequest(NamedTuple):
    """The dataset to read, and how many processes make examples of its rows."""

    dataset: str
    revision: str | None
    jobs: int


def train(
    recipe: Recipe,
    data: DatasetRequest,
    output: Path,
    *,
    verdicts: Verdicts | None = None,
    report_to: Sequence[str] = (),
) -> Path:
    """Trains a model by a recipe on a dataset; returns the folder with it.

    A recipe with `reward` needs `verdicts`. `report_to` names services that
    transformers logs to. Raises InputError if
    the folder holds another run, or if the recipe does not fit the dataset.
    """
    from accelerate import PartialState

    _check_services(report_to)
    rows = load_rows(data.dataset, split=recipe.split, revision=data.revision).rows
    torch.set_num_threads(recipe.training.threads)
    transformers.set_seed(recipe.seed)
    network, tokenizer, words = _begin(recipe, rows)
    # What decides the weights.
    told = {
        "recipe": recipe.as_json(),
        **_base(recipe.model),
        "dataset": data_source(data.dataset, data.revision, rows),
        "versions": versions(),
    }
    if recipe.shards is not None:
        told["shards"] = revision_of(sorted(Path(recipe.shards).glob("*.npz")))
    processes = PartialState(cpu=not torch.cuda.is_available())
    with processes.main_process_first():
        claim_folder(output, told)
        done = (output / FINISHED).exists()
        learnt = None
        if not done and recipe.reward is None:
            learnt = learnt_of(recipe, (network, tokenizer), rows, data, output)
    if not done:
        network = adapted(recipe, network, words)
        setting = Setting(recipe, network, tokenizer, output / "checkpoints", report_to)
        if learnt is None:
            assert verdicts is not None
            trainer = verdict_trainer(setting, rows, verdicts)
        else:
            trainer = answer_trainer(setting, learnt)
        measured = {**_measured(trainer, output), **_sizes(learnt)}
        if processes.is_main_process:
            merged = write_model(recipe, trainer.model, tokenizer, output)
            measured["parameters"] = merged.num_parameters()
            lines = [_line(entry) for entry in trainer.state.log_history]
            write_atomically(output / "log.jsonl", "".join(lines))
            document = {**told, "measured": measured}
            write_atomically(output / FINISHED, json.dumps(document, indent=2) + "\n")
    if processes.is_main_process:
        if recipe.sources and not (output / CARD).exists():
            write_card(output, data.dataset, revision=data.revision)
        for name in ("checkpoints", "examples", "validation"):
            shutil.rmtree(output / name, ignore_errors=True)
    return output


def _check_services(report_to: Sequence[str]) -> None:
    """Raises InputError for a service that transformers does not know, or without its package."""
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for service in report_to:
        if service not in INTEGRATION_TO_CALLBACK:
            known = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
            raise InputError(f"--report-to {service}: expected one of {known}")
        if find_spec(service) is None:
            raise InputError(f"--report-to {service}: install the package {service!r} first")


def learnt_of(
    recipe: Recipe,
    parts: tuple[Any, Any],
    rows: Sequence[Row],
    data: DatasetRequest,
    output: Path,
) -> Learnt:
    """The examples of a recipe and those it is validated on, for (network, tokenizer)."""
    network, tokenizer = parts
    if recipe.shards is not None:
        known = network.get_input_embeddings().weight.shape[0]
        examples = read_shards(Path(recipe.shards), recipe.training.maximum_tokens, known)
        learnt = Learnt(examples, None)
    else:
        examples = make_examples(recipe, tokenizer, rows, output / "examples", data.jobs)
        learnt = Learnt(examples, _validation(recipe, tokenizer, data, output))
    _check_lengths(learnt, network)
    told = f"examples: {len(examples):,}, of {len(examples.input_ids):,} tokens"
    print(f"{told}; longer than maximum_tokens and left out: {int(examples.left_out):,}")
    return learnt


def _begin(recipe: Recipe, rows: Sequence[Row]) -> tuple[Any, Any, list[int]]:
    try:
        return begin(recipe, rows)
    except InputError as error:
        raise error.located(f"recipe {recipe.name!r}") from error


def _measured(trainer: Any, output: Path) -> dict[str, Any]:
    """Trains, from the last whole checkpoint on if there is one; returns the measurements."""
    from transformers.trainer_utils import get_last_checkpoint

    started = time.perf_counter()
    for checkpoint in (output / "checkpoints").glob("checkpoint-*"):
        if not (checkpoint / "trainer_state.json").exists():  # which is written last
            shutil.rmtree(checkpoint, ignore_errors=True)
    folder = output / "checkpoints"
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    if not all(torch.isfinite(weights).all() for weights in trainer.model.parameters()):
        message = "training: the weights are not numbers any more: try a smaller learning_rate"
        raise InputError(message, source=str(output))
    has_validation = trainer.args.eval_strategy != "no"
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "resumed": last is not None,
        "device": device_name(trainer.args.device),
        "processes": trainer.args.world_size,
        "validation": trainer.evaluate() if has_validation else None,
    }


def _sizes(learnt: Learnt | None) -> dict[str, int]:
    if learnt is None:
        return {}
    examples = learnt.examples
    return {
        "examples": len(examples),
        "tokens": len(examples.input_ids),
        "left_out": int(examples.left_out),
    }


def _line(entry: Mapping[str, Any]) -> str:
    """A line of the log without infinite values: the norm of a gradient can be infinite."""
    kept = {
        name: value
        for name, value in entry.items()
        if not isinstance(value, float) or math.isfinite(value)
    }
    return json.dumps(kept, sort_keys=True) + "\n"


def _check_lengths(learnt: Learnt, network: Any) -> None:
    """Raises InputError for examples longer than the model's context."""
    context = Network(network, torch.device("cpu")).context
    parts = [part for part in learnt if part is not None]
    longest = max(int(np.diff(part.starts).max()) for part in parts)
    if context is not None and longest > context:
        raise InputError(
            f"training: maximum_tokens: there are examples of {longest} tokens, "
            f"and the model reads {context}"
        )


def _validation(
    recipe: Recipe, tokenizer: Any, data: DatasetRequest, output: Path
) -> Examples | None:
    """At most `validation_examples` examples of the validation split, from all sources.

    None if the recipe asks for none.
    """
    if recipe.validation_split is None or not recipe.validation_examples:
        return None
    rows = load_rows(data.dataset, split=recipe.validation_split, revision=data.revision).rows
    sources = []
    for source in recipe.sources:
        # With windows a function has about a hundred examples; else it is one.
        examples = 100 if get_prompt_format(source.format).has_windows else 1
        functions = max(1, recipe.validation_examples // examples // len(recipe.sources))
        sources.append(dataclasses.replace(source, functions=functions, orderings=0))
    smaller = dataclasses.replace(recipe, sources=tuple(sources))
    try:
        found = make_examples(smaller, tokenizer, rows, output / "validation", data.jobs)
    except InputError as error:
        message = f"{error.message}; 'validation_split: null' trains without validation"
        raise InputError(message, source=f"split {recipe.validation_split!r}") from None
    most = min(len(found), recipe.validation_examples)
    return found.take(np.linspace(0, len(found) - 1, most).astype(np.int64))


def _base(model: ModelRecipe) -> dict[str, Any]:
    """The name and revision of the pretrained model."""
    if is_gguf(model.pretrained):
        sha256 = file_sha256(gguf_file(model.pretrained))
        return {"base": {"name": model.pretrained, "revision": sha256}}
    _, revision = find_model_folder(model.pretrained, model.revision, with_code=False)
    return {"base": {"name": model.pretrained, "revision": revision}}
