"""What a prompt format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from verilocc_bench.allocators import Assistance, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Episode
from verilocc_bench.model.prompts.conversation import Turn, object_pieces
from verilocc_bench.model.prompts.source_hash import source_hash
from verilocc_bench.settings.allocator import FeedbackKind
from verilocc_bench.settings.language_model import LanguageModelSettings


class PromptFormat(ABC):
    """Turns a request into the episode that asks a language model for an answer.

    A format is one module of this package, and one record of settings.prompt_formats. Raise
    `version`, which counts from 1, with every change that a model could see. `description` says in
    sentences for a model's card (Markdown) what the model is shown and has to do. `system` is the
    system message. `has_windows`: the format cuts a function into windows, whose width can be
    chosen. `can_repair`: it can ask again about parts of an answer.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    assistance: ClassVar[Assistance]
    description: ClassVar[str]
    system: ClassVar[str]
    has_windows: ClassVar[bool] = False
    can_repair: ClassVar[bool] = False

    @property
    def source_hash(self) -> str:
        """The SHA-256, in hex, of the code that makes the prompts."""
        return source_hash()

    def check(self, settings: LanguageModelSettings) -> None:
        """Raises InputError for settings that this format cannot meet."""
        if settings.maximum_tokens is not None and settings.maximum_tokens < 1:
            raise InputError(
                f"expected at least 1 token a completion, not {settings.maximum_tokens}"
            )
        if settings.window_registers is not None:
            if not self.has_windows:
                raise InputError(f"prompt format {self.name!r} has no windows")
            if settings.window_registers < 1:
                raise InputError(
                    f"expected windows of 1 register or more, not {settings.window_registers}"
                )
        if settings.feedback is FeedbackKind.REPAIR and not self.can_repair:
            raise InputError(
                f"prompt format {self.name!r} cannot repair: it asks for everything at once"
            )

    @abstractmethod
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

    def pieces(self, completion: str) -> tuple[str, ...]:
        """A demonstrated completion, cut where constrained decoding cuts it.

        Constrained decoding encodes literals and choices one by one. A model
        that learnt from other cuts would be asked for tokens that it never saw.
        """
        return object_pieces(completion)

    @abstractmethod
    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """Asks for one sample; returns what came of it, never raises for the model's words."""
