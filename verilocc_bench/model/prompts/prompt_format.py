"""What a prompt format is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from verilocc_bench.allocators import (
    Assistance,
    Request,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.language_model import Episode
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.settings.language_model import LanguageModelSettings


class PromptFormat(Protocol):
    """Turns a request into the episode that asks a language model for an answer.

    A format is one module of this package, and one line of `registry`. Raise
    `version` with every change that a model could see.
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
    def description(self) -> str:
        """What the model is shown and has to do, in sentences for a model's card (Markdown)."""
        ...

    @property
    def system(self) -> str:
        """The system message, the same for every function."""
        ...

    @property
    def has_windows(self) -> bool:
        """True if the format cuts a function into windows, whose width can be chosen."""
        ...

    @property
    def source_hash(self) -> str:
        """The SHA-256, in hex, of the code that makes the prompts."""
        ...

    def check(self, settings: LanguageModelSettings) -> None:
        """Raises InputError for settings that this format cannot meet."""
        ...

    def demonstrations(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        *,
        new_registers: int | None = None,
    ) -> Iterator[Turn]:
        """The prompts of a function, each with its part of the answer as the completion.

        A format with windows makes them `new_registers` wide (None: as wide as
        by default). Others ignore it.
        """
        ...

    def pieces(self, completion: str) -> tuple[str, ...]:
        """A demonstrated completion, cut where constrained decoding cuts it.

        Constrained decoding encodes literals and choices one by one. A model
        that learnt from other cuts would be asked for tokens that it never saw.
        """
        ...

    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """Asks for one sample; returns what came of it, never raises for the model's words."""
        ...
