"""From what `--model` says to an allocator."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

from verilocc_bench.allocators import (
    BUILT_IN,
    Allocator,
    AllocatorOptions,
    Decoding,
    FeedbackKind,
    SearchAllocator,
)
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.models.command import command_allocator
from verilocc_bench.evaluate.models.foreign import from_plug_in, from_python
from verilocc_bench.evaluate.models.predictions import Predictions, read_predictions
from verilocc_bench.model.shipped import SHIPPED

__all__ = ["PLUG_IN_GROUP", "is_language_model", "resolve_model"]

PLUG_IN_GROUP = "verilocc_bench.allocators"

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def is_language_model(name: str) -> bool:
    """Whether a name means a language model: an address, a folder, or an id on the Hub."""
    if name.startswith(("http://", "https://")):
        return True
    if name in SHIPPED:
        return True
    if name in BUILT_IN or name.startswith(("python:", "command:", "predictions:")):
        return False
    if entry_points(group=PLUG_IN_GROUP, name=name):
        return False
    is_id = _HUB_ID.fullmatch(name) is not None and not name.startswith(".")
    return Path(name).is_dir() or is_id


def resolve_model(name: str, options: AllocatorOptions | None = None, jobs: int = 1) -> Allocator:
    """The allocator that a `--model` value names. Raises InputError where there is none."""
    options = options or AllocatorOptions()
    if is_language_model(name):
        return _language_model(name, options)
    if options.decoding is Decoding.CONSTRAINED:
        raise InputError(f"decoding 'constrained' is for language models, which {name!r} is not")
    if options.feedback is FeedbackKind.REPAIR:
        raise InputError(f"feedback 'repair' is for language models, which {name!r} is not")
    allocator = _no_language_model(name, options, jobs)
    if isinstance(allocator, Predictions) and options.decoding is Decoding.GUIDED:
        raise InputError("answers from a file cannot be guided: nobody is there to ask again")
    return allocator


def _no_language_model(name: str, options: AllocatorOptions, jobs: int) -> Allocator:
    if name in BUILT_IN:
        built_in = BUILT_IN[name]
        return built_in.configured(options) if isinstance(built_in, SearchAllocator) else built_in
    scheme, _, rest = name.partition(":")
    match scheme if ":" in name else "":
        case "python":
            return from_python(rest)
        case "predictions":
            return read_predictions(name, Path(rest))
        case "command":
            return command_allocator(rest, options, jobs)
    for plug_in in entry_points(group=PLUG_IN_GROUP, name=name):
        return from_plug_in(name, plug_in)
    known = ", ".join([*BUILT_IN, *SHIPPED, *(e.name for e in entry_points(group=PLUG_IN_GROUP))])
    raise InputError(
        f"unknown model {name!r}; known: {known}, python:MODULE:ATTRIBUTE, command:PROGRAM, "
        "predictions:FILE, a folder or a Hub id of a language model, http://ADDRESS"
    )


def _language_model(name: str, options: AllocatorOptions) -> Allocator:
    from verilocc_bench.model.allocator import LanguageModelAllocator, language_model_allocator
    from verilocc_bench.model.http_model import load_http_model
    from verilocc_bench.model.prompts import DEFAULT_PROMPT_FORMAT, get_prompt_format

    if not name.startswith(("http://", "https://")):
        return language_model_allocator(name, options)
    prompt_format = get_prompt_format(options.prompt_format or DEFAULT_PROMPT_FORMAT)
    prompt_format.check(options)
    return LanguageModelAllocator(name, load_http_model(name, options), prompt_format, options)
