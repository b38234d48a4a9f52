"""What is asked of which model: the table that the study works through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = [
    "BASELINES",
    "FURTHER_LIMIT",
    "MAIN",
    "REFERENCE",
    "REFERENCE_TEXT",
    "TEXT",
    "WHOLE",
    "StudyConfiguration",
    "configurations",
    "of_model",
]

REFERENCE, REFERENCE_TEXT, BASELINES = "reference", "reference-text", "baselines"
"""Folders of the study: of the models that it is about, and of what needs none."""

MAIN = (REFERENCE, REFERENCE_TEXT, BASELINES)
"""The folders that most tables are about; all others are further models."""

TEXT = "text-"
"""What the names of further models begin with that are asked in `window`."""

WHOLE = "whole-"
"""What the names of those begin with that are asked in `whole`, and have a table of their own."""

SPLIT = "test"
OTHER_SPLITS = (
    "test_larger",
    "test_unseen_tile_shape",
    "test_unseen_head_dimension",
    "test_unseen_data_type",
)
OTHER_LIMIT = 15
"""So many functions of each task of the other splits."""

FURTHER_LIMIT = 10
"""So many functions of each task are asked of further models."""

SAMPLES, SAMPLED_LIMIT = 10, 10
"""So many samples of so many functions of each task, where chance decides."""

TEXT_SAMPLES, TEXT_SAMPLED_LIMIT = 100, 2
"""The same of a model that reads text."""

WHOLE_LIMIT = 3
"""So many functions of each task are read whole and answered freely: answers may be very long."""

WIDTHS = (1, 2, 4, 8, 16)
"""So many new virtual registers a window has at most, where widths are compared."""

_BACKTRACKS = ("--backtracks", "30000")
_GREEDY = ("--sampling", "greedy")


@dataclass(frozen=True, slots=True)
class StudyConfiguration:
    """One run of `evaluate`: what is asked, how, and of which functions.

    `folder` and `key` say where it is kept; `model` is what `--model` is given.
    `width` is of windows, where it is compared with others, in a table of its own.
    """

    folder: str
    key: str
    title: str
    model: str
    arguments: tuple[str, ...] = ()
    split: str = SPLIT
    limit: int | None = None
    width: int | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a language model is asked; `further`: further models are, too."""

    key: str
    title: str
    prompt_format: str
    arguments: tuple[str, ...]
    split: str = SPLIT
    limit: int | None = None
    further: bool = False
    width: int | None = None


_FREE = ("--decoding", "free", *_GREEDY, "--backtracks", "0")
_FREE_MAKING_ROOM = ("--decoding", "free", *_GREEDY, *_BACKTRACKS)
# `window` makes no room at a dead end: it ends the sample.
_CONSTRAINED = ("--decoding", "constrained", *_GREEDY, "--backtracks", "0")
_MAKING_ROOM = ("--decoding", "constrained", *_GREEDY, *_BACKTRACKS)
# Findings are words that the models' tokenizers do not know.
_REPAIRED = ("--decoding", "guided", "--verifier-calls", "10", "--feedback", "repair")
_GUIDED = (*_REPAIRED, *_GREEDY, *_BACKTRACKS)


def _sampled(temperature: str, *ks: int) -> tuple[str, ...]:
    """As many samples as the last k needs."""
    return (
        *("--decoding", "free", "--sampling", "random", "--temperature", temperature),
        *("--samples", str(ks[-1]), "--k", ",".join(map(str, ks))),
    )


_DECISIONS = (
    _Asked(
        "candidates-constrained",
        "`candidates`, constrained",
        "candidates",
        _MAKING_ROOM,
        further=True,
    ),
    _Asked("candidates-free", "`candidates`, free", "candidates", _FREE),
    _Asked("state-constrained", "`state`, constrained", "state", _MAKING_ROOM, further=True),
    _Asked("state-free", "`state`, free", "state", _FREE),
    _Asked("state-free-room", "`state`, free, room made", "state", _FREE_MAKING_ROOM, further=True),
    _Asked("state-guided", "`state`, guided, 10 attempts", "state", _GUIDED),
    _Asked(
        "state-sampled",
        f"`state`, free, room made, {SAMPLES} samples",
        "state",
        (*_sampled("1", 1, SAMPLES), *_BACKTRACKS),
        limit=SAMPLED_LIMIT,
    ),
    *(
        _Asked(f"{key}-{split}", title, style, arguments, split, OTHER_LIMIT)
        for key, title, style, arguments in (
            ("candidates-constrained", "`candidates`, constrained", "candidates", _MAKING_ROOM),
            ("state-free-room", "`state`, free, room made", "state", _FREE_MAKING_ROOM),
        )
        for split in OTHER_SPLITS
    ),
)
"""Of a model that places one register after the other."""

_WINDOWS = (
    _Asked("window-free", "`window`, free", "window", _FREE, further=True),
    _Asked("window-constrained", "`window`, constrained", "window", _CONSTRAINED, further=True),
    _Asked(
        "window-guided",
        "`window`, guided, 10 attempts",
        "window",
        (*_REPAIRED, "--sampling", "random", "--temperature", "0.5", "--backtracks", "0"),
        limit=SAMPLED_LIMIT,
        further=True,
    ),
    _Asked(
        "window-sampled",
        f"`window`, free, {TEXT_SAMPLES} samples",
        "window",
        _sampled("0.8", 1, 10, TEXT_SAMPLES),
        limit=TEXT_SAMPLED_LIMIT,
    ),
    *(
        _Asked(
            f"window-{decoding}-{width}",
            f"`window` of at most {width} new, {decoding}",
            "window",
            (*arguments, "--window-registers", str(width)),
            limit=SAMPLED_LIMIT,
            width=width,
        )
        for decoding, arguments in (("free", _FREE), ("constrained", _CONSTRAINED))
        for width in WIDTHS
    ),
)
"""Of a model that reads text."""

_WHOLES = (
    _Asked("whole-free", "`whole`, free", "whole", _FREE, limit=WHOLE_LIMIT, further=True),
    _Asked("whole-constrained", "`whole`, constrained", "whole", _CONSTRAINED, further=True),
)
"""Of a model that reads functions as a whole, with no word of what is live where."""

_PYTHON = "python:benchmarks.first_candidate"

_NO_MODEL = (
    StudyConfiguration(BASELINES, "compiler", "the compiler", "compiler"),
    StudyConfiguration(BASELINES, "linear-scan", "`linear-scan`", "linear-scan"),
    StudyConfiguration(BASELINES, "graph-coloring", "`graph-coloring`", "graph-coloring"),
    StudyConfiguration(BASELINES, "best", "`best`, a search", "best"),
    StudyConfiguration(BASELINES, "first", "always the first candidate", f"{_PYTHON}:allocator"),
    StudyConfiguration(
        BASELINES, "policy", "the teacher's first policy", f"{_PYTHON}:first_policy"
    ),
    StudyConfiguration(BASELINES, "teacher", "the teacher, best of its runs", f"{_PYTHON}:teacher"),
)


def configurations(models: Mapping[str, str]) -> list[StudyConfiguration]:
    """All of them, given the models by name; those of MAIN are asked for more than others."""
    return [*_NO_MODEL, *(each for name, model in models.items() for each in of_model(name, model))]


def of_model(name: str, model: str) -> Iterator[StudyConfiguration]:
    """What is asked of a language model, `model` as evaluate names it.

    Its name says whether it reads text: REFERENCE_TEXT does, and what begins with TEXT or WHOLE.
    """
    asked = _DECISIONS
    if name == REFERENCE_TEXT or name.startswith(TEXT):
        asked = _WINDOWS
    elif name.startswith(WHOLE):
        asked = _WHOLES
    for each in asked:
        if each.further or name in MAIN:
            title = each.title if name == REFERENCE else f"{name}: {each.title}"
            arguments = ("--prompt-format", each.prompt_format, *each.arguments)
            limit = each.limit if name in MAIN else min(each.limit or FURTHER_LIMIT, FURTHER_LIMIT)
            of_what = each.split, limit, each.width
            yield StudyConfiguration(name, each.key, title, model, arguments, *of_what)
