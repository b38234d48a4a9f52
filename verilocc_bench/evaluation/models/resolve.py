"""From what `--model` says to an allocator."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import BUILT_IN, Allocator
from verilocc_bench.errors import InputError, did_you_mean
from verilocc_bench.evaluation.models.command import command_allocator
from verilocc_bench.evaluation.models.predictions import read_predictions
from verilocc_bench.evaluation.models.python_code import from_plug_in, from_python
from verilocc_bench.model.reading.reading_allocator import BESIDE, ReadingAllocator
from verilocc_bench.model.shipped import PACKAGED, SHIPPED, is_gguf, is_shipped, shipped_folder
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding, FeedbackKind
from verilocc_bench.settings.language_model import EndpointSettings, LocalModelSettings
from verilocc_bench.settings.program import ProgramSettings

PLUG_IN_GROUP = "verilocc_bench.allocators"

OWN = {**BUILT_IN, **BESIDE}
"""The allocators of this package that are not language models, by name."""

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def settings_kind(name: str) -> type[AllocatorSettings]:
    """The record of settings that the allocator of a `--model` value takes.

    Raises InputError for the path of a folder that is not there.
    """
    if name.startswith(("http://", "https://")):
        return EndpointSettings
    if is_shipped(name) or is_gguf(name):
        return LocalModelSettings
    if name in OWN:
        return type(OWN[name].settings)
    if name.startswith("command:"):
        return ProgramSettings
    if name.startswith(("python:", "predictions:")):
        return AllocatorSettings
    if entry_points(group=PLUG_IN_GROUP, name=name):
        return AllocatorSettings
    is_id = _HUB_ID.fullmatch(name) is not None and not name.startswith(".")
    if (bool(name) and Path(name).is_dir()) or is_id:
        return LocalModelSettings
    if "/" in name or name.startswith((".", "~")):
        raise InputError("there is no such folder: expected one of a language model", source=name)
    return AllocatorSettings


def resolve_model(name: str, settings: AllocatorSettings | None = None, jobs: int = 1) -> Allocator:
    """The allocator that a `--model` value names, with settings of its kind (None: the defaults).

    A program, and a model of this package, runs in up to `jobs` processes. Raises InputError
    if there is no such allocator, or it cannot be asked so.
    """
    settings = settings_kind(name)() if settings is None else settings
    match settings:
        case EndpointSettings():
            from verilocc_bench.model.allocator import LanguageModelAllocator, first_format
            from verilocc_bench.model.endpoint import EndpointModel

            prompt_format = first_format(settings.prompt_format)
            prompt_format.check(settings)
            return LanguageModelAllocator(
                name, EndpointModel(name, settings), prompt_format, settings
            )
        case LocalModelSettings():
            from verilocc_bench.model.allocator import language_model_allocator

            folder = shipped_folder(name)
            if folder is not None:
                return ReadingAllocator(name, folder, settings, jobs)
            return language_model_allocator(name, settings)
    _check_no_language_model(name, settings)
    if name in OWN:
        own: Any = OWN[name]
        asked: Allocator = replace(own, settings=settings)
        return asked
    scheme, _, rest = name.partition(":")
    match scheme if ":" in name else "":
        case "python":
            return from_python(rest, settings)
        case "predictions":
            return read_predictions(name, Path(rest), settings)
        case "command":
            assert isinstance(settings, ProgramSettings)
            return command_allocator(rest, settings, jobs)
    for plug_in in entry_points(group=PLUG_IN_GROUP, name=name):
        return from_plug_in(name, plug_in, settings)
    if not name.strip():
        raise InputError("expected a model, this is an empty name (see: list models)")
    names = [*OWN, *SHIPPED, *PACKAGED, *(e.name for e in entry_points(group=PLUG_IN_GROUP))]
    raise InputError(
        f"unknown model {name!r}; known: {', '.join(names)}, "
        "python:MODULE:ATTRIBUTE, command:PROGRAM, predictions:FILE, "
        "a folder or a Hub id of a language model, FILE.gguf, http://ADDRESS"
        + did_you_mean(name, names)
    )


def _check_no_language_model(name: str, settings: AllocatorSettings) -> None:
    if settings.decoding is Decoding.CONSTRAINED:
        raise InputError(f"decoding 'constrained' is for language models, which {name!r} is not")
    if settings.feedback is FeedbackKind.REPAIR:
        raise InputError(f"feedback 'repair' is for language models, which {name!r} is not")
    if name.startswith("predictions:") and settings.guided:
        raise InputError("answers from a file cannot be guided: nobody is there to ask again")
