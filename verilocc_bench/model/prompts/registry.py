"""All prompt formats, by the names that `--prompt-format` takes."""

from __future__ import annotations

from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.model.prompts.whole import WHOLE
from verilocc_bench.model.prompts.window import WINDOW

DEFAULT_PROMPT_FORMAT = "whole"
"""The format where neither the user nor the model names one."""

_ALL: tuple[PromptFormat, ...] = (WHOLE, WINDOW)

WORDS_OF_ITS_OWN = "text-notes"
"""The prompt format of models that were trained for it alone (model.notes)."""

PROMPT_FORMATS = {prompt_format.name: prompt_format for prompt_format in _ALL}


def get_prompt_format(name: str) -> PromptFormat:
    """The prompt format of that name. Raises InputError if there is none."""
    if name == WORDS_OF_ITS_OWN:
        raise InputError(f"the prompt format {name!r} is for models that are trained for it alone")
    if name not in PROMPT_FORMATS:
        raise InputError(f"unknown prompt format {name!r}; known: {', '.join(PROMPT_FORMATS)}")
    return PROMPT_FORMATS[name]
