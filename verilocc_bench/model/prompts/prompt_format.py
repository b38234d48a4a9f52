"""What a prompt format is, and all there are by name."""

from __future__ import annotations

from typing import Protocol

from verilocc_bench.allocators import AllocatorOptions, Assistance, Request
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Episode

__all__ = ["DEFAULT_PROMPT_FORMAT", "PromptFormat", "get_prompt_format"]

DEFAULT_PROMPT_FORMAT = "whole"
"""Where neither the user nor the model says which."""


class PromptFormat(Protocol):
    """Turns a request into the episode that asks a language model for an answer.

    `version` is raised with every change that a model could see; `source_hash`
    is a hash of all code that makes prompts, so that a sample of one wording
    is never taken for one of another.
    """

    @property
    def name(self) -> str:
        """What `--prompt-format` calls it."""
        ...

    @property
    def version(self) -> int:
        """Counts from 1."""
        ...

    @property
    def assistance(self) -> Assistance:
        """What the model is shown."""
        ...

    @property
    def source_hash(self) -> str:
        """The SHA-256, in hex, of the code that makes the prompts."""
        ...

    def check(self, options: AllocatorOptions) -> None:
        """Raises InputError for options that this format cannot meet."""
        ...

    def episode(self, request: Request, options: AllocatorOptions) -> Episode:
        """Asks for one sample; returns what came of it, never raises for the model's words."""
        ...


def get_prompt_format(name: str) -> PromptFormat:
    """The prompt format of that name. Raises InputError where there is none."""
    # The formats' modules know this one.
    from verilocc_bench.model.prompts.candidates import CANDIDATES
    from verilocc_bench.model.prompts.state import STATE
    from verilocc_bench.model.prompts.whole import WholeFormat
    from verilocc_bench.model.prompts.window import WindowFormat

    formats: tuple[PromptFormat, ...] = (WholeFormat(), WindowFormat(), STATE, CANDIDATES)
    for found in formats:
        if found.name == name:
            return found
    known = ", ".join(found.name for found in formats)
    raise InputError(f"unknown prompt format {name!r}; known: {known}")
