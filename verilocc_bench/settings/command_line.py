"""The settings of all kinds on one command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import Field, fields
from typing import Any, TypeVar

from verilocc_bench.errors import InputError
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding
from verilocc_bench.settings.flags import flag_of
from verilocc_bench.settings.language_model import (
    EndpointSettings,
    LanguageModelSettings,
    LocalModelSettings,
    SamplingStrategy,
)
from verilocc_bench.settings.program import ProgramSettings
from verilocc_bench.settings.search import PlacementSettings, SearchSettings

_KINDS: tuple[type[AllocatorSettings], ...] = (
    AllocatorSettings,
    ProgramSettings,
    PlacementSettings,
    SearchSettings,
    LanguageModelSettings,
    LocalModelSettings,
    EndpointSettings,
)

Settings = TypeVar("Settings", bound=AllocatorSettings)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of all kinds to a command; each is None where it is not given."""
    groups: dict[str, Any] = {}
    added = set[str]()
    for kind in _KINDS:
        if kind.FLAG_GROUP not in groups:
            groups[kind.FLAG_GROUP] = parser.add_argument_group(kind.FLAG_GROUP)
        for each in fields(kind):
            if each.name not in added:
                added.add(each.name)
                flag = flag_of(each)
                groups[kind.FLAG_GROUP].add_argument(flag.name, dest=each.name, **flag.arguments)


def check_flags(
    options: argparse.Namespace, models: Sequence[str], kinds: Sequence[type[AllocatorSettings]]
) -> None:
    """Raises InputError for flags that contradict each other, or mean nothing to any model.

    `kinds` are the records of settings of the models.
    """
    given = {each.name: flag_of(each).name for each in _given(options)}
    if options.decoding is not Decoding.GUIDED and given.keys() & {"verifier_calls", "feedback"}:
        raise InputError("--verifier-calls and --feedback are for --decoding guided")
    if options.strategy not in (None, SamplingStrategy.RANDOM) and (
        given.keys() & {"temperature", "top_p"}
    ):
        raise InputError("--temperature and --top-p are for --sampling random")
    used = {each.name for kind in kinds for each in fields(kind)}
    for name, flag in given.items():
        # A flag that asks for nothing (`--few-shot 0`, `--no-chat`) does no harm.
        if name not in used and getattr(options, name):
            raise InputError(f"{flag} means nothing to {' or '.join(models)}")


def read_settings(options: argparse.Namespace, kind: type[Settings]) -> Settings:
    """The settings of one kind of allocator, as the flags say.

    A temperature or a top-p asks for random sampling.
    """
    names = {each.name for each in fields(kind)}
    given = {each.name: getattr(options, each.name) for each in _given(options)}
    if given.keys() & {"temperature", "top_p"}:
        given.setdefault("strategy", SamplingStrategy.RANDOM)
    return kind(**{name: value for name, value in given.items() if name in names})


def _given(options: argparse.Namespace) -> Iterator[Field[Any]]:
    """The fields whose flags are on the command line, each once."""
    seen = set[str]()
    for kind in _KINDS:
        for each in fields(kind):
            if each.name not in seen and getattr(options, each.name) is not None:
                seen.add(each.name)
                yield each
