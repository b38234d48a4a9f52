"""One completion in the making."""

from __future__ import annotations

import random

from verilocc_bench.model.language_model import Alternative, Ask, Completion, Finish, TokenSampling
from verilocc_bench.model.transformers_model.constraint_walker import ConstraintWalker
from verilocc_bench.model.transformers_model.token_codec import TextStream, TokenCodec


class Utterance:
    """What has been said to one ask, and what may come next.

    `pending` are tokens that the network has not seen yet, of which the first `stem`
    belong to the messages before the last. `context` is how many tokens it can see, `room`
    how many may be said. Each utterance draws from a random generator of its own, so the
    others in a batch change nothing.
    """

    def __init__(
        self, ask: Ask, sampling: TokenSampling, codec: TokenCodec, context: int | None
    ) -> None:
        self.sampling = sampling
        self.pending = codec.prompt(ask.messages)
        self.stem = codec.stem(ask.messages, self.pending)
        self.finish: Finish | None = None
        self._ask = ask
        self._end_tokens = codec.end_tokens
        self._generator = random.Random(sampling.seed)  # noqa: S311  no secret depends on it
        self._prompt_tokens = len(self.pending)
        self._sent = codec.text(ask.messages)
        maximum = ask.maximum_tokens + ask.thinking_tokens
        self.room = _room(maximum, len(self.pending), context)
        self._tokens: list[int] = []
        self._log_probabilities: list[float] = []
        self._alternatives: list[tuple[Alternative, ...]] = []
        self._text = ""
        self._message: str | None = None
        self._walker: ConstraintWalker | None = None
        self._stream: TextStream | None = None
        if self.room < 0:
            self._end(
                Finish.CONTEXT,
                f"the prompt has {len(self.pending):,} tokens, the model's context {context:,}",
            )
        elif self.room == 0:
            self._end(Finish.LENGTH)
        elif ask.constraint is not None:
            self._walker = ConstraintWalker(ask.constraint, codec)
            self._look_at_walker()
            self._say_what_must_be_said()
        else:
            self._stream = TextStream(codec, self.pending)

    @property
    def said(self) -> int:
        """How many tokens were said so far."""
        return len(self._tokens)

    def draw(self) -> float:
        """The next random number in [0, 1)."""
        return self._generator.random()

    def legal(self) -> tuple[int, ...] | None:
        """What may be said next; None if that is any token."""
        return None if self._walker is None else self._walker.legal()

    @property
    def forced(self) -> int | None:
        """The token that must come next whatever the model thinks."""
        place = len(self._tokens)
        return self.sampling.forced[place] if place < len(self.sampling.forced) else None

    @property
    def alternatives_wanted(self) -> int:
        """How many tokens that are not taken are to be reported at this place."""
        return self.sampling.alternatives if self.forced is None else 0

    def say(
        self, token: int, log_probability: float, alternatives: tuple[Alternative, ...] = ()
    ) -> None:
        """The next token, and all after it that leave no choice."""
        self._say(token, log_probability, alternatives)
        self._say_what_must_be_said()

    def stop(self) -> None:
        """The model has ended."""
        self._end(self.finish or Finish.STOP)

    def completion(self) -> Completion:
        """What was said. The utterance is finished."""
        assert self.finish is not None
        return Completion(
            text=self._text,
            finish=self.finish,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=len(self._tokens),
            tokens=tuple(self._tokens),
            log_probabilities=tuple(self._log_probabilities),
            alternatives=tuple(self._alternatives),
            message=self._message,
            sent=self._sent,
        )

    def _say_what_must_be_said(self) -> None:
        """Literals, and what is left of a choice once one option remains."""
        while self.finish is None and self._walker is not None:
            legal = self._walker.legal()
            if len(legal) != 1:
                return
            self._say(legal[0] if self.forced is None else self.forced, 0.0, ())

    def _say(
        self, token: int, log_probability: float, alternatives: tuple[Alternative, ...]
    ) -> None:
        if self._walker is not None and not self._walker.take(token):
            self._end(Finish.DEAD_END, f"the forced token {token} is not legal here")
            return
        self.pending.append(token)
        self._tokens.append(token)
        self._log_probabilities.append(log_probability)
        self._alternatives.append(alternatives)
        if self._walker is not None:
            self._look_at_walker()
        elif token in self._end_tokens:
            self.stop()
        else:
            assert self._stream is not None
            self._stream.add(token)
            self._text = self._stream.text
        if self.finish is None and len(self._tokens) >= self.room:
            self._end(Finish.LENGTH)

    def _look_at_walker(self) -> None:
        walker = self._walker
        assert walker is not None
        self._text = walker.text
        if walker.dead_end is not None:
            self._end(Finish.DEAD_END, walker.dead_end)
        elif walker.finished:
            self._end(Finish.STOP)

    def _end(self, finish: Finish, message: str | None = None) -> None:
        if self._stream is not None:
            self._stream.finish()
            self._text = self._stream.text
        if self._walker is not None:
            self._walker.close()
        self.finish, self._message = finish, message


def _room(maximum_tokens: int, prompt_tokens: int, context: int | None) -> int:
    """How many tokens may be said; below 0 where the prompt alone does not fit.

    The last token that is said need not be seen by the network any more.
    """
    maximum = max(0, maximum_tokens)
    if context is None:
        return maximum
    return min(maximum, context - prompt_tokens + 1) if prompt_tokens <= context else -1
