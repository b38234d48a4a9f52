"""What is asked of which model: the table that the study works through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["BASELINES", "REFERENCE", "Configuration", "configurations", "of_model"]

REFERENCE, BASELINES = "reference", "baselines"
"""Folders of the study: of the model that it is about, and of what needs none."""

SPLIT = "test"
OTHER_SPLITS = (
    "test_larger",
    "test_unseen_tile_shape",
    "test_unseen_head_dimension",
    "test_unseen_data_type",
)
OTHER_LIMIT = 15
"""So many functions of each task of the other splits."""

SAMPLES, SAMPLED_LIMIT = 10, 10
"""So many samples of so many functions of each task, where chance decides."""

_BACKTRACKS = ("--backtracks", "4000")
_GREEDY = ("--sampling", "greedy")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run of `evaluate`: what is asked, how, and of which functions.

    `folder` and `key` say where it is kept; `model` is what `--model` is given.
    """

    folder: str
    key: str
    title: str
    model: str
    arguments: tuple[str, ...] = ()
    split: str = SPLIT
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a language model is asked; `further`: other models than the reference are too."""

    key: str
    title: str
    prompt_format: str
    arguments: tuple[str, ...]
    split: str = SPLIT
    limit: int | None = None
    further: bool = False


_CONSTRAINED = ("--decoding", "constrained", *_GREEDY, *_BACKTRACKS)
_FREE = ("--decoding", "free", *_GREEDY)
# Feedback is words that the model's tokenizer does not know: it tries again instead.
_GUIDED = (
    *("--decoding", "guided", "--verifier-calls", "10", "--feedback", "resample"),
    *("--sampling", "random", "--temperature", "0.5", *_BACKTRACKS),
)
_SAMPLED = (
    *("--decoding", "free", "--sampling", "random", "--temperature", "1"),
    *("--samples", str(SAMPLES), "--k", f"1,{SAMPLES}"),
)

_ASKED = (
    _Asked(
        "candidates-constrained",
        "`candidates`, constrained",
        "candidates",
        _CONSTRAINED,
        further=True,
    ),
    _Asked("candidates-free", "`candidates`, free", "candidates", _FREE),
    _Asked("state-constrained", "`state`, constrained", "state", _CONSTRAINED, further=True),
    _Asked("state-free", "`state`, free", "state", _FREE, further=True),
    _Asked("state-guided", "`state`, guided, 10 attempts", "state", _GUIDED),
    _Asked(
        "state-sampled",
        f"`state`, free, {SAMPLES} samples",
        "state",
        _SAMPLED,
        limit=SAMPLED_LIMIT,
    ),
    *(
        _Asked(
            f"candidates-constrained-{split}",
            "`candidates`, constrained",
            "candidates",
            _CONSTRAINED,
            split,
            OTHER_LIMIT,
        )
        for split in OTHER_SPLITS
    ),
)

_PYTHON = "python:benchmarks.first_candidate"

_NO_MODEL = (
    Configuration(BASELINES, "compiler", "the compiler", "compiler"),
    Configuration(BASELINES, "linear-scan", "`linear-scan`", "linear-scan"),
    Configuration(BASELINES, "graph-coloring", "`graph-coloring`", "graph-coloring"),
    Configuration(BASELINES, "first", "always the first candidate", f"{_PYTHON}:allocator"),
    Configuration(BASELINES, "policy", "the teacher's first policy", f"{_PYTHON}:first_policy"),
    Configuration(BASELINES, "teacher", "the teacher, best of its runs", f"{_PYTHON}:teacher"),
)


def configurations(models: Mapping[str, str]) -> list[Configuration]:
    """All of them, given the models by name; of these REFERENCE is asked for more than others."""
    return [*_NO_MODEL, *(each for name, model in models.items() for each in of_model(name, model))]


def of_model(name: str, model: str) -> Iterator[Configuration]:
    """What is asked of a language model, `model` as evaluate names it."""
    asked: Iterable[_Asked] = _ASKED
    if name != REFERENCE:
        asked = (each for each in _ASKED if each.further)
    for each in asked:
        title = each.title if name == REFERENCE else f"{name}: {each.title}"
        arguments = ("--prompt-format", each.prompt_format, *each.arguments)
        yield Configuration(name, each.key, title, model, arguments, each.split, each.limit)
