"""The results of trainings, read from the folders of their models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.model_study.models import model_folder
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_text
from verilocc_bench.training.card import read_training

__all__ = ["Trained", "Validation", "read_trained"]

LOG = "log.jsonl"


class Validation(NamedTuple):
    """A validation after some steps: loss in nats a token, and the share of fully right answers."""

    step: int
    loss: float
    right: float


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training.

    `functions`: the most functions of each source. `tokens`: of all examples,
    read or not. `resumed`: `seconds` count from the last interruption.
    `dataset_hash`: of the training split. `curve` has one validation for each
    step with one; it is empty without a validation split.
    """

    name: str
    dataset_hash: str
    parameters: int
    functions: tuple[int, ...]
    tokens: int
    steps: int
    seconds: float
    resumed: bool
    curve: tuple[Validation, ...]

    @property
    def last(self) -> Validation | None:
        """The last validation."""
        return self.curve[-1] if self.curve else None


def read_trained(output: Path, names: Iterable[str]) -> dict[str, Trained]:
    """The finished trainings among these models of a study, by name.

    Raises InputError for folders with files of another form.
    """
    folders = {name: model_folder(output, name) for name in names}
    return {name: _read(name, folder) for name, folder in folders.items() if folder is not None}


def _read(name: str, folder: Path) -> Trained:
    found = read_training(folder)
    measured, sources = found.measured, found.recipe["sources"]
    return Trained(
        name,
        found.dataset["hash"],
        measured["parameters"],
        tuple(source["functions"] for source in sources if source.get("functions")),
        measured["tokens"],
        found.recipe["training"]["steps"],
        measured["seconds"],
        bool(measured.get("resumed")),
        _curve(folder / LOG),
    )


def _curve(path: Path) -> tuple[Validation, ...]:
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        entry = parse_json(line, path, number)
        try:
            if "eval_accuracy" in entry:
                seen = Validation(entry["step"], entry["eval_loss"], entry["eval_accuracy"])
                found[seen.step] = seen
        except (KeyError, TypeError):
            message = "expected a line of a training's log"
            raise InputError(message, source=path, line=number) from None
    return tuple(found[step] for step in sorted(found))
