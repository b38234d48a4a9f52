"""The questions to each model: the table that the study works through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

REFERENCE, REFERENCE_TEXT, BASELINES = "reference", "reference-text", "baselines"
"""Folders of the study: of the two reference models, and of baselines without a model."""

MAIN = (REFERENCE, REFERENCE_TEXT, BASELINES)
"""The folders that most tables are about; the others are further models."""

TEXT = "text-"
"""The prefix of further models that are asked in `window`."""

WHOLE = "whole-"
"""The prefix of further models that are asked in `whole`, and have a table of their own."""

SPLIT = "test"
OTHER_SPLITS = (
    "test_larger",
    "test_unseen_tile_shape",
    "test_unseen_head_dimension",
    "test_unseen_data_type",
)
OTHER_LIMIT = 15
"""The number of functions of each task in the other splits."""

FURTHER_LIMIT = 10
"""The number of functions of each task that further models are asked about."""

SAMPLES, SAMPLED_LIMIT = 10, 10
"""The numbers of samples, and of functions of each task, in configurations with chance."""

TEXT_SAMPLES, TEXT_SAMPLED_LIMIT = 100, 2
"""The same numbers for a model that reads text."""

WHOLE_LIMIT = 3
"""The number of functions of each task that are read whole and answered freely, at length."""

WIDTHS = (1, 2, 4, 8, 16)
"""The most new virtual registers of a window, where widths are compared."""

_BACKTRACKS = ("--backtracks", "30000")
_GREEDY = ("--sampling", "greedy")


@dataclass(frozen=True, slots=True)
class StudyConfiguration:
    """One run of `evaluate`: the question, the options, and the functions.

    `folder` and `key` name its place in the study; `model` is the value of
    `--model`. `width` is the width of windows, if it is compared with others in
    a table of its own.
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
    """The options for a language model; `further`: further models are asked, too."""

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
# `window` does not make room at a dead end: the sample ends.
_CONSTRAINED = ("--decoding", "constrained", *_GREEDY, "--backtracks", "0")
_MAKING_ROOM = ("--decoding", "constrained", *_GREEDY, *_BACKTRACKS)
# The models' tokenizers do not know the words of findings.
_REPAIRED = ("--decoding", "guided", "--verifier-calls", "10", "--feedback", "repair")
_GUIDED = (*_REPAIRED, *_GREEDY, *_BACKTRACKS)


def _sampled(temperature: str, *ks: int) -> tuple[str, ...]:
    """Options for as many samples as the last k needs."""
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
"""The questions to a model that places one register after the other."""

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
"""The questions to a model that reads text."""

_WHOLES = (
    _Asked("whole-free", "`whole`, free", "whole", _FREE, limit=WHOLE_LIMIT, further=True),
    _Asked("whole-constrained", "`whole`, constrained", "whole", _CONSTRAINED, further=True),
)
"""The questions to a model that reads whole functions, without any word about liveness."""

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
    """All configurations, given the models by name. Those of MAIN are asked more than others."""
    return [*_NO_MODEL, *(each for name, model in models.items() for each in of_model(name, model))]


def of_model(name: str, model: str) -> Iterator[StudyConfiguration]:
    """The configurations of a language model; `model` is the value of `--model`.

    Its name tells what it reads: REFERENCE_TEXT and names that begin with TEXT
    or WHOLE read text.
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
