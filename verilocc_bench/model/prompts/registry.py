"""Prompt formats by the names that `--prompt-format` takes."""

from __future__ import annotations

from importlib import import_module

from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.settings.prompt_formats import FORMAT_RECORDS, PROMPT_FORMATS


def get_prompt_format(name: str) -> PromptFormat:
    """The prompt format of that name. Raises InputError if any model cannot be asked in it."""
    if name not in FORMAT_RECORDS:
        raise InputError(f"unknown prompt format {name!r}; known: {', '.join(PROMPT_FORMATS)}")
    if name not in PROMPT_FORMATS:
        raise InputError(f"the prompt format {name!r} is for models that are trained for it alone")
    found = import_module(FORMAT_RECORDS[name].module).FORMAT
    assert isinstance(found, PromptFormat)
    return found
