"""The allocator of a network that keeps notes.

The windows of many functions are answered side by side, some of each function a round
(model.notes.attempt). *Free*: a word that contradicts the notes, or cannot stand where it stands,
ends the attempt. *Checked*: the window is asked again, with other names, some times; where a name
finds no place, the text is read again, and that name first. *Guided*: so is the next attempt. The
first sample takes the likeliest words, or all do with greedy sampling; further ones differ by the
names, which are drawn anew for each, and by a temperature where one is asked for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    LabelUse,
    PromptIdentity,
    Request,
    Response,
)
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.model.notes.attempt import NotesAttempt
from verilocc_bench.model.notes.notes_files import load_network
from verilocc_bench.model.notes.notes_format import FORMAT
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

if TYPE_CHECKING:
    from verilocc_bench.model.notes.notes_network import NotesNetwork

AUTOMATIC_BATCH = 16

ASKED_AGAIN = 8
"""How often checked decoding asks for a window again, at most."""


class NotesAllocator:
    """A network of the format `text-notes` (an Allocator that answers in groups).

    Raises InputError for settings that mean nothing to it.
    """

    foreign: ClassVar[bool] = False
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    keeps_groups_whole: ClassVar[bool] = True
    tracks: ClassVar[tuple[str, ...]] = ("assign",)
    """Its words have none for edits."""
    deterministic: ClassVar[bool] = False
    """Names are drawn anew for each sample, even where words are not."""

    def __init__(self, name: str, folder: Path, settings: LocalModelSettings) -> None:
        network, self._revision = load_network(folder)
        self._begin(name, network, settings)

    @classmethod
    def of_network(
        cls, name: str, network: NotesNetwork, settings: LocalModelSettings
    ) -> NotesAllocator:
        """The allocator of a network that is in no folder yet."""
        allocator = cls.__new__(cls)
        allocator._begin(name, network, settings)
        allocator._revision = "none"
        return allocator

    def _begin(self, name: str, network: NotesNetwork, settings: LocalModelSettings) -> None:
        _check(name, settings)
        self._name, self._network = name, network
        self.tell_tokens: Callable[[int], object] = lambda _: None
        self._settings = replace(
            settings,
            decoding=settings.decoding or Decoding.FREE,
            prompt_format=FORMAT.name,
            strategy=settings.strategy or SamplingStrategy.GREEDY,
        )

    @property
    def name(self) -> str:
        """See Allocator."""
        return self._name

    @property
    def revision(self) -> str:
        """The SHA-256 of the model's files."""
        return self._revision

    @property
    def settings(self) -> LocalModelSettings:
        """How it is asked."""
        return self._settings

    @property
    def prompt(self) -> PromptIdentity:
        """See Allocator."""
        return PromptIdentity(FORMAT.name, FORMAT.version, FORMAT.source_hash, 0)

    @property
    def assistance(self) -> Assistance:
        """See Allocator."""
        return FORMAT.assistance

    @property
    def group_size(self) -> int:
        """The batch size."""
        return self._settings.batch_size or AUTOMATIC_BATCH

    def allocate(self, request: Request) -> Answer:
        """One answer. Raises AllocationFailed where there is none."""
        ((_, response),) = self.respond([request])
        if response.answer is None:
            raise AllocationFailed(f"{response.failure}: {response.message or 'no answer'}")
        return response.answer

    def check_ids(self, known: Callable[[], Container[str]]) -> None:
        """Does nothing: a model can be asked about any function."""

    def close(self) -> None:
        """Nothing is left open."""

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """(place, response) of every request, each as soon as it is there."""
        waiting = deque(enumerate(requests))
        running: list[NotesAttempt] = []
        temperature, again = self._temperature(), self._again()
        while waiting or running:
            while waiting and len(running) < self.group_size:
                place, request = waiting.popleft()
                running.append(NotesAttempt(place, request, temperature, again))
            asked = [attempt for attempt in running if attempt.goes_on]
            started = time.perf_counter()
            self.tell_tokens(self._ask(asked, temperature))
            for attempt in asked:
                attempt.seconds += (time.perf_counter() - started) / len(asked)
            for attempt in running:
                if not attempt.goes_on:
                    yield attempt.place, attempt.response()
            running = [attempt for attempt in running if attempt.goes_on]

    def _ask(self, attempts: Sequence[NotesAttempt], temperature: float) -> int:
        """The next windows of some attempts; how many words the network has said."""
        from verilocc_bench.model.notes.drafts import judge_drafts

        before = sum(attempt.said for attempt in attempts)
        drafts = [attempt.drafts() for attempt in attempts]
        judge_drafts(self._network, [each for some in drafts for each in some], temperature)
        for attempt, some in zip(attempts, drafts, strict=True):
            attempt.take(some)
        return sum(attempt.said for attempt in attempts) - before

    def _temperature(self) -> float:
        greedy = self._settings.strategy is SamplingStrategy.GREEDY
        return 0.0 if greedy else self._settings.temperature

    def _again(self) -> int:
        return ASKED_AGAIN if self._settings.decoding is Decoding.CHECKED else 0


def _check(name: str, settings: LocalModelSettings) -> None:
    """Raises InputError for settings that mean nothing to a model of such a format."""
    if settings.prompt_format not in (None, FORMAT.name):
        raise InputError(f"this model knows the prompt format {FORMAT.name} alone", source=name)
    if settings.decoding is Decoding.CONSTRAINED:
        raise InputError(
            f"a model of the format {FORMAT.name} is free, checked or guided", source=name
        )
    if settings.strategy is SamplingStrategy.PRIORITY:
        raise InputError(f"priority sampling is not for the format {FORMAT.name}", source=name)
    if settings.feedback is FeedbackKind.REPAIR:
        raise InputError(f"feedback 'repair' is not for the format {FORMAT.name}", source=name)
    if settings.batch_size < 0:
        raise InputError(f"batch size {settings.batch_size}: expected at least 1")
    if not 0 <= settings.temperature < float("inf"):
        raise InputError(f"temperature {settings.temperature}: expected a number from 0")
    for value, flag in (
        (settings.few_shot, "--few-shot"),
        (settings.window_registers, "--window-registers"),
        (settings.maximum_tokens, "--max-tokens"),
        (settings.model_revision, "--model-revision"),
        (settings.chat, "--chat"),
        (settings.thinking_tokens, "--thinking-tokens"),
        (settings.extract, "--extract"),
        (settings.system, "--system"),
        (settings.reasoning_effort, "--reasoning-effort"),
        (settings.chat_template_kwargs, "--chat-template-kwargs"),
        (settings.engine, "--engine"),
    ):
        if value:
            raise InputError(f"{flag} means nothing to the format {FORMAT.name}", source=name)
