"""The results of trainings, as tables and pictures of the document."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.allocation_study.tables import markdown
from benchmarks.model_study.configurations import REFERENCE, REFERENCE_TEXT
from benchmarks.model_study.models import model_folder, read_models
from benchmarks.model_study.scaling_plot import SCALING, draw_scaling
from benchmarks.model_study.trainings import (
    Trained,
    read_trained,
)
from benchmarks.model_study.variants import OF_REFERENCE, OF_TEXT, VARIANTS
from verilocc_bench.evaluation.table import NONE, number, percent
from verilocc_bench.training.card import read_training, training_table, version_words

__all__ = [
    "scaling_words",
    "training_words",
    "variant_table",
]

UNTOLD = "The folder of the model does not say how it was trained."


def training_words(output: Path, name: str) -> str:
    """A model and the cost of its training; empty if the study lacks the model."""
    if name not in read_models(output):
        return ""
    folder = model_folder(output, name)
    if folder is None:
        return UNTOLD
    training = read_training(folder)
    return f"{training_table(training)}\n\n{version_words(training)}"


def variant_table(output: Path) -> str:
    """The results of the variants of the reference model; empty without any."""
    names = [each.name for each in OF_REFERENCE]
    return _table(read_trained(output, names), read_trained(output, [REFERENCE]))


def scaling_words(output: Path, images: Path, document: Path) -> str:
    """Draws the curves of the text models into `images`; the picture's link and its figures.

    Empty if no text model was trained for the study.
    """
    found = read_trained(output, [each.name for each in OF_TEXT])
    if not found:
        return ""
    usual = read_trained(output, [REFERENCE_TEXT])
    draw_scaling({**usual, **found}, images / SCALING)
    place = os.path.relpath(images / SCALING, document.parent)
    picture = f"![Validation loss and answers by steps, parameters and functions]({place})"
    return f"{picture}\n\n{_table(found, usual)}"


_HEADERS = (
    *("model", "what is different", "parameters", "functions", "tokens of examples", "steps"),
    *("validation loss", "answers wholly right", "seconds"),
)


def _table(found: Mapping[str, Trained], usual: Mapping[str, Trained]) -> str:
    """The usual model, then the others; empty without others."""
    if not found:
        return ""
    table = markdown(_HEADERS, map(_row, (*usual.values(), *found.values())), 2)
    return f"{table}\n\n{_trained_on((*usual.values(), *found.values()))}"


def _trained_on(trained: Iterable[Trained]) -> str:
    """The models that were trained on one split, identified by its hash."""
    names: dict[str, list[str]] = {}
    for each in trained:
        names.setdefault(each.dataset_hash, []).append(f"`{each.name}`")
    return " ".join(f"Trained on `{key}`: {', '.join(own)}." for key, own in names.items())


def _row(each: Trained) -> tuple[str, ...]:
    seen = each.last
    return (
        f"`{each.name}`",
        VARIANTS[each.name].words if each.name in VARIANTS else NONE,
        f"{each.parameters:,}",
        " + ".join(f"{count:,}" for count in each.functions) or NONE,
        f"{each.tokens:,}",
        f"{each.steps:,}",
        number(seen and seen.loss, 3),
        percent(seen and seen.right),
        f"{each.seconds:,.0f}" + (" since resumed" if each.resumed else ""),
    )
