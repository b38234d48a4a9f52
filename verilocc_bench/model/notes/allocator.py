"""The allocator of a network that keeps notes.

The windows of many functions are answered side by side (model.notes.decoding), one of each
function a round. *Free*: a word that contradicts the notes, or cannot stand where it stands, ends
the attempt. *Checked*: the window is asked again, with other names, some times. The first sample
takes the likeliest words, or all do with greedy sampling; further ones differ by the names,
which are drawn anew for each, and by a temperature where one is asked for.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    FailureKind,
    LabelUse,
    PromptIdentity,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.model.notes.files import load_network
from verilocc_bench.model.notes.formats import AnyWindow, NotesFormat
from verilocc_bench.model.prompts.notes.episode import noted_assignment
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

if TYPE_CHECKING:
    from verilocc_bench.model.notes.decoding import WindowAnswer
    from verilocc_bench.model.notes.network import NotesNetwork

ASKED_AGAIN = 8
"""Checked decoding asks for a window again at most so many times."""


class NotesAllocator:
    """A network of the format `notes` (an Allocator that answers in groups).

    Raises InputError for settings that mean nothing to it.
    """

    foreign: ClassVar[bool] = False
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    keeps_groups_whole: ClassVar[bool] = True
    tracks: ClassVar[tuple[str, ...]] = ("assign",)
    """Its words have none for edits; `evaluate` refuses another track by its name."""
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
        self._format = network.prompt_format
        _check(name, settings, self._format.name)
        self._name, self._network = name, network
        self.tell_tokens: Callable[[int], object] = lambda _: None
        self._settings = replace(
            settings,
            decoding=settings.decoding or Decoding.FREE,
            prompt_format=self._format.name,
            strategy=settings.strategy or SamplingStrategy.GREEDY,
            backtracks=0,
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
        kind = self._format
        return PromptIdentity(kind.name, kind.version, kind.source_hash(), 0)

    @property
    def assistance(self) -> Assistance:
        """See Allocator."""
        return self._format.assistance

    @property
    def group_size(self) -> int:
        """The batch size."""
        return self._settings.batch_size

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
        from verilocc_bench.model.notes.decoding import answer_windows

        waiting = deque(enumerate(requests))
        running: list[_NotesAttempt] = []
        while waiting or running:
            while waiting and len(running) < self.group_size:
                place, request = waiting.popleft()
                running.append(
                    _NotesAttempt(place, request, self._format, self._temperature(), self._again())
                )
            asked = [attempt for attempt in running if attempt.window is not None]
            started = time.perf_counter()
            answers = [attempt.ask() for attempt in asked]
            answer_windows(self._network, answers)
            self.tell_tokens(sum(answer.said for answer in answers))
            for attempt, answer in zip(asked, answers, strict=True):
                attempt.seconds += (time.perf_counter() - started) / len(asked)
                attempt.take(answer)
            for attempt in running:
                if attempt.window is None:
                    yield attempt.place, attempt.response()
            running = [attempt for attempt in running if attempt.window is not None]

    def _temperature(self) -> float:
        greedy = self._settings.strategy is SamplingStrategy.GREEDY
        return 0.0 if greedy else self._settings.temperature

    def _again(self) -> int:
        return ASKED_AGAIN if self._settings.decoding is Decoding.CHECKED else 0


class _NotesAttempt:
    """One request: its reading, the window that is to be answered, and how it went."""

    def __init__(
        self,
        place: int,
        request: Request,
        prompt_format: NotesFormat,
        temperature: float,
        again: int,
    ) -> None:
        self.place = place
        self.seconds = 0.0
        self._problem = request.problem
        self._temperature, self._again = temperature, again
        digest = hashlib.sha256(f"notes {request.seed}".encode()).digest()
        self._draw = random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311
        self._left = again
        self._failure: tuple[FailureKind, str] | None = None
        self._counts = {"asks": 0, "prompt_tokens": 0, "completion_tokens": 0, "asked_again": 0}
        self._log_probability = 0.0
        self.window: AnyWindow | None = None
        self._ledger, self._reading = prompt_format.open(request.problem.function, self._draw)
        self._go_on(again=False)

    def ask(self) -> WindowAnswer:
        """The window, to be answered."""
        from verilocc_bench.model.notes.decoding import WindowAnswer

        assert self.window is not None
        return WindowAnswer(self.window, self._draw, self._temperature)

    def take(self, answer: WindowAnswer) -> None:
        """What came of the window; goes on to the next, or ends."""
        self._counts["asks"] += 1
        self._counts["prompt_tokens"] += answer.read
        self._counts["completion_tokens"] += answer.said
        self._log_probability += answer.log_probability
        if answer.error is None:
            self._left = self._again
            self._go_on(again=False)
        elif self._left:
            self._left -= 1
            self._counts["asked_again"] += 1
            self._go_on(again=True)
        else:
            self._fail(answer.error)

    def _fail(self, error: Exception) -> None:
        window = self._counts["asks"]
        self._failure = (FailureKind.UNPARSABLE, f"window {window}: {error}")
        self.window = None

    def _go_on(self, *, again: bool) -> None:
        try:
            self.window = self._reading.send(True) if again else next(self._reading)
        except StopIteration:
            self.window = None
        except Contradiction as error:
            self._fail(error)
        except InputError as error:
            self._failure = (FailureKind.NO_ANSWER, str(error))
            self.window = None

    def response(self) -> Response:
        """The answer, or why there is none."""
        details = {**self._counts, "log_probability": self._log_probability}
        if self._failure is not None:
            kind, message = self._failure
            return Response(None, kind, message, self.seconds, details)
        answer = answer_from_assignment(self._problem, noted_assignment(self._ledger))
        return Response(Answer(answer), seconds=self.seconds, details=details)


def _check(name: str, settings: LocalModelSettings, known: str) -> None:
    """Raises InputError for settings that mean nothing to a model of such a format."""
    if settings.prompt_format not in (None, known):
        raise InputError(f"this model knows the prompt format {known} alone", source=name)
    if settings.decoding is Decoding.CONSTRAINED:
        raise InputError(f"a model of the format {known} is free, checked or guided", source=name)
    if settings.strategy is SamplingStrategy.PRIORITY:
        raise InputError(f"priority sampling is not for the format {known}", source=name)
    if settings.feedback is FeedbackKind.REPAIR:
        raise InputError(f"feedback 'repair' is not for the format {known}", source=name)
    if settings.batch_size < 1:
        raise InputError(f"batch size {settings.batch_size}: expected at least 1")
    if not 0 <= settings.temperature < float("inf"):
        raise InputError(f"temperature {settings.temperature}: expected a number from 0")
    for value, flag in (
        (settings.few_shot, "--few-shot"),
        (settings.backtracks, "--backtracks"),
        (settings.window_registers, "--window-registers"),
        (settings.maximum_tokens, "--max-tokens"),
        (settings.model_revision, "--model-revision"),
        (settings.chat, "--chat"),
        (settings.runnable, "--runnable"),
    ):
        if value:
            raise InputError(f"{flag} means nothing to the format {known}", source=name)
