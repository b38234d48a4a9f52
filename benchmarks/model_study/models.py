"""The models of a study: those given to it, and those trained in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.model_study.configurations import BASELINES, REFERENCE, REFERENCE_TEXT, TEXT
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.model.shipped import SHIPPED, shipped_folder
from verilocc_bench.training.card import TRAINING

MODELS = "models.json"
"""The file that names the study's models, with their values for `--model`."""

_TRAINED = "models"


def trained_folder(output: Path, name: str) -> Path:
    """The folder of a model that is trained for a study."""
    return output / _TRAINED / name


def read_models(output: Path) -> dict[str, str]:
    """The models of a study by name. Raises InputError if the folder is not a study."""
    found = read_json(output / MODELS)
    if not isinstance(found, dict) or REFERENCE not in found:
        raise InputError("expected an object of models by name", source=output / MODELS)
    return {str(name): str(model) for name, model in found.items()}


def write_models(output: Path, given: Mapping[str, str] | None = None) -> None:
    """Records the given models, and the models trained here that are to be asked."""
    known = read_models(output) if (output / MODELS).exists() else {}
    # A shipped model stands in for one that was not trained here; a trained one replaces it.
    chosen = {name: model for name, model in known.items() if model not in SHIPPED}
    along = {name: name for name in (REFERENCE, REFERENCE_TEXT)}
    models = {**along, **_trained(output), **chosen, **(given or {})}
    write_atomically(output / MODELS, json.dumps(models, indent=1) + "\n")


def _trained(output: Path) -> dict[str, str]:
    """Models whose training has ended, except those of the curves."""
    folders = [path.parent for path in sorted((output / _TRAINED).glob(f"*/{TRAINING}"))]
    return {
        folder.name: str(folder)
        for folder in folders
        if folder.name != BASELINES and not folder.name.startswith(TEXT)
    }


def model_folder(output: Path, name: str) -> Path | None:
    """The folder of a model that says how it was trained; None if it does not."""
    model = read_models(output).get(name)
    folder = trained_folder(output, name)
    if model is not None:
        folder = shipped_folder(model) or Path(model)
    return folder if (folder / TRAINING).exists() else None
