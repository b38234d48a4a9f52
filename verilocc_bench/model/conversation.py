"""Conversations: an episode asks a language model questions and ends with a response."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from verilocc_bench.allocators import FailureKind, Response
from verilocc_bench.errors import InfrastructureError
from verilocc_bench.model.language_model import Ask, Completion, Episode, TokenSampling, known_sum


class Question(NamedTuple):
    """An ask, how the tokens are picked, and who is told the completion as soon as it is there."""

    ask: Ask
    sampling: TokenSampling
    keep: Callable[[Completion], object]


Conversation = Generator[Question, Completion, Response]
"""How one response comes about: each question is sent its completion."""

Reply = Callable[[int, Ask], TokenSampling | Completion]
"""For each ask of an episode, by number: how to pick its tokens, or a completion known before."""

Keep = Callable[[int, Ask, TokenSampling, Completion], object]
"""Is told each new completion with its ask's number, perhaps in another thread."""


def converse(
    episode: Episode,
    reply: Reply,
    said: list[Completion],
    keep: Keep = lambda _number, _ask, _how, _said: None,
) -> Conversation:
    """The conversation of one episode; `said` receives all completions, in their order.

    The response's details count the asks and their tokens. An episode that
    raises has crashed.
    """
    try:
        turn = _turn(episode, None, said)
        while isinstance(turn, Ask):
            completion = reply(len(said), turn)
            if isinstance(completion, TokenSampling):
                how = completion
                completion = yield Question(turn, how, partial(keep, len(said), turn, how))
            said.append(completion)
            turn = _turn(episode, completion, said)
        return turn
    finally:
        episode.close()


def _turn(
    episode: Episode, completion: Completion | None, said: Sequence[Completion]
) -> Ask | Response:
    """What an episode asks after a completion, or its response at the end."""
    try:
        return next(episode) if completion is None else episode.send(completion)
    except StopIteration as end:
        response = end.value
        assert isinstance(response, Response)
        return _with_counts(response, said)
    except Exception as error:  # noqa: BLE001  one bad episode must not end the others
        message = f"{type(error).__name__}: {error}"
        return _with_counts(Response(None, FailureKind.CRASHED, message), said)


def _with_counts(response: Response, said: Sequence[Completion]) -> Response:
    counts = {
        "asks": len(said),
        "prompt_tokens": known_sum(completion.prompt_tokens for completion in said),
        "completion_tokens": known_sum(completion.completion_tokens for completion in said),
    }
    return replace(response, details={**counts, **response.details})


class Lane:
    """Conversations one after the other, each for the request at some place.

    `question` is the next question; it is None before `begin`, and when all
    have ended. `seconds` is the time of the present conversation.
    """

    def __init__(self, conversations: Iterable[tuple[int, Callable[[], Conversation]]]) -> None:
        self._waiting = iter(conversations)
        self._place = -1
        self._conversation: Conversation | None = None
        self.question: Question | None = None
        self.seconds = 0.0

    def begin(self) -> list[tuple[int, Response]]:
        """Starts the first; gives those that end without asking."""
        return list(self._start_next())

    def go_on(self, outcome: Completion | InfrastructureError) -> list[tuple[int, Response]]:
        """Takes the answer to `question`. Gives the response if that ends a conversation."""
        assert self._conversation is not None
        if isinstance(outcome, InfrastructureError):
            self._conversation.close()
            ended = Response(None, FailureKind.INFRASTRUCTURE, str(outcome))
            return [(self._place, replace(ended, seconds=self.seconds)), *self._start_next()]
        started = time.perf_counter()
        try:
            self.question = self._conversation.send(outcome)
        except StopIteration as end:
            self.seconds += time.perf_counter() - started
            response = replace(end.value, seconds=self.seconds)
            return [(self._place, response), *self._start_next()]
        self.seconds += time.perf_counter() - started
        return []

    def close(self) -> None:
        """Ends the conversation that is going on."""
        if self._conversation is not None:
            self._conversation.close()

    def _start_next(self) -> Iterator[tuple[int, Response]]:
        self.question = self._conversation = None
        for place, start in self._waiting:
            started = time.perf_counter()
            conversation = start()
            try:
                question = next(conversation)
            except StopIteration as end:
                yield place, replace(end.value, seconds=time.perf_counter() - started)
                continue
            self._place, self._conversation, self.question = place, conversation, question
            self.seconds = time.perf_counter() - started
            return
