"""Writes the tables of a document between its markers, and leaves the rest as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.model_study.configurations import REFERENCE
from benchmarks.model_study.records import Run, read_runs
from benchmarks.model_study.running import read_models
from benchmarks.model_study.tables import TABLES
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_text, write_atomically
from verilocc_bench.model.shipped import shipped_folder
from verilocc_bench.training.card import (
    TRAINING,
    Training,
    read_training,
    training_table,
    version_words,
)

__all__ = ["render"]

_BEGIN = "<!-- begin "
_BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

UNKNOWN = "Not measured."


def render(output: Path, document: Path) -> None:
    """Puts what a study has measured into a document.

    A block is `<!-- begin NAME -->`, lines, `<!-- end -->`, each marker on a
    line of its own. Raises InputError for a document with other names, or
    with a block that does not end.
    """
    runs = read_runs(output)
    blocks = _blocks(output)
    text = read_text(document)
    found = _BLOCK.findall(text)
    if not found or len(found) != text.count(_BEGIN) or len(found) != text.count("<!-- end -->"):
        message = "expected blocks, each '<!-- begin NAME -->', lines, '<!-- end -->'"
        raise InputError(message, source=document)
    for _, name in found:
        if name not in blocks:
            known = ", ".join(blocks)
            raise InputError(f"there is no block {name!r}; known: {known}", source=document)
    write_atomically(document, _BLOCK.sub(lambda m: f"{m[1]}\n{blocks[m[2]](runs)}\n\n", text))


def _blocks(output: Path) -> Mapping[str, Callable[[Sequence[Run]], str]]:
    return {
        **{name: _shown(table) for name, table in TABLES.items()},
        "asked": asked_words,
        "training": lambda _: _training_words(output),
    }


def _shown(table: Callable[[Sequence[Run]], str]) -> Callable[[Sequence[Run]], str]:
    """A table, or that there is nothing to show."""

    def show(runs: Sequence[Run]) -> str:
        text = table(runs)
        return text if text.count("\n") > 1 else UNKNOWN

    return show


def asked_words(runs: Sequence[Run]) -> str:
    """Of what and with what the study was made."""
    first = runs[0]
    splits: dict[str, int] = {}
    for run in runs:
        split = run.configuration.split
        splits[split] = max(len(run.kernels), splits.get(split, 0))
    asked = ", ".join(f"`{split}` ({count:,} kernels)" for split, count in splits.items())
    sentences = [f"Splits: {asked}. Hash of `{first.configuration.split}`: `{first.dataset_hash}`."]
    models = [run for run in runs if run.prompt is not None]
    for folder in dict.fromkeys(run.configuration.folder for run in models):
        own = next(run for run in models if run.configuration.folder == folder)
        sentences.append(f"Weights of `{folder}`: `{own.revision}`.")
    prompts = {run.prompt["format"]: run.prompt for run in models if run.prompt is not None}
    for name, prompt in sorted(prompts.items()):
        sentences.append(f"Prompts of `{name}`: version {prompt['version']}, `{prompt['hash']}`.")
    if models:
        options = models[0].options
        batch = f"batches of {options['batch_size']}, {options['dtype']}"
        sentences.append(f"On {options['device'] or 'the first device there is'}, {batch}.")
        first = models[0]
    told = ", ".join(f"{name} {version}" for name, version in first.versions.items() if version)
    return " ".join([*sentences, f"Versions: {told}."])


def _training_words(output: Path) -> str:
    """The model and what training took, from the training.json of the reference model."""
    name = read_models(output)[REFERENCE]
    folder = shipped_folder(name) or Path(name)
    if not (folder / TRAINING).exists():
        return "The folder of the model does not say how it was trained."
    training: Training = read_training(folder)
    return f"{training_table(training)}\n\n{version_words(training)}"
