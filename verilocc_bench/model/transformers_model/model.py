"""A causal language model of transformers that completes prompts in batches.

The loop is our own: `generate` of transformers draws from one generator for
the whole batch, so that a sample would depend on its neighbours, and obeys no
constraint that is made while it speaks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import torch

from verilocc_bench.errors import InfrastructureError
from verilocc_bench.model.advice import Advice
from verilocc_bench.model.language_model import Ask, Completion, Message, TokenSampling
from verilocc_bench.model.transformers_model.network import Network, Stream
from verilocc_bench.model.transformers_model.picking import say_next
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.model.transformers_model.utterance import Utterance

CHAT_THINKING_TOKENS = 1024

_LOG = logging.getLogger(__name__)


class TransformersModel:
    """Completes prompts with one network, whole batches at a time (LanguageModel).

    The same asks with the same sampling in one batch give the same bytes on
    one machine. In other batches scores differ in their last digits, as the
    shapes of the computation do. `largest_batch` is None until memory has
    run out once. `advice`: what the model says of how it is best asked.
    """

    can_constrain = True

    def __init__(
        self,
        network: Network,
        codec: TokenCodec,
        revision: str,
        advice: Advice | None = None,
    ) -> None:
        self._network = network
        self.advice = advice or Advice()
        self._codec = codec
        self._revision = revision
        self.largest_batch: int | None = None

    @property
    def thinking_tokens(self) -> int:
        """Some for a model with a chat template, which may have learned to think."""
        return CHAT_THINKING_TOKENS if self._codec.chat else 0

    @property
    def widest_batch(self) -> int:
        """How many conversations of full length fit into a GPU's memory."""
        return self._network.widest_batch()

    @property
    def context(self) -> int | None:
        """How many tokens its positions reach."""
        return self._network.context

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt."""
        return len(self._codec.prompt(messages))

    @property
    def revision(self) -> str:
        """The Hub's commit, or a hash of the folder's files."""
        return self._revision

    def completions(
        self,
        asks: Sequence[Ask],
        sampling: Sequence[TokenSampling],
        tell_tokens: Callable[[int], object] = lambda _: None,
        keep: Callable[[int, Completion], object] = lambda _place, _said: None,
    ) -> Iterator[tuple[int, Completion]]:
        """(place, completion) of every ask, each as soon as it has ended.

        Where memory runs out the batch is halved, and what has not ended is
        begun again; no later batch is larger. Raises InfrastructureError if even one ask
        does not fit, and InputError if the tokenizer cannot say what a
        constraint asks for.
        """
        waiting = list(range(len(asks)))
        while waiting:
            batch = waiting[: self.largest_batch or len(waiting)]
            fits = True
            try:
                some = [asks[place] for place in batch], [sampling[place] for place in batch]
                for number, completion in self._complete_batch(*some, tell_tokens):
                    waiting.remove(batch[number])
                    keep(batch[number], completion)
                    yield batch[number], completion
            except torch.OutOfMemoryError:
                fits = False  # halved below: the error itself keeps the batch's tensors alive
            if not fits:
                self._halve(len(batch))

    def _halve(self, size: int) -> None:
        if self._network.device.type == "cuda":
            torch.cuda.empty_cache()
        if size == 1:
            raise InfrastructureError(
                "out of memory for a single prompt: a shorter prompt format, fewer tokens, "
                "another dtype or a larger device may help"
            )
        self.largest_batch = size // 2
        _LOG.warning("out of memory with a batch of %d: going on with %d", size, size // 2)

    def _complete_batch(
        self,
        asks: Sequence[Ask],
        sampling: Sequence[TokenSampling],
        tell_tokens: Callable[[int], object],
    ) -> Iterator[tuple[int, Completion]]:
        started = time.perf_counter()
        context = self._network.context
        utterances = [
            Utterance(ask, how, self._codec, context)
            for ask, how in zip(asks, sampling, strict=True)
        ]
        places = {id(utterance): place for place, utterance in enumerate(utterances)}
        for utterance in self._speak(utterances, tell_tokens):
            seconds = time.perf_counter() - started
            yield places[id(utterance)], replace(utterance.completion(), seconds=seconds)

    def _speak(
        self, utterances: list[Utterance], tell_tokens: Callable[[int], object]
    ) -> Iterator[Utterance]:
        """Gives each that is finished.

        What is pending is fed, and those with nothing pending speak. Only as many tokens are
        fed at once as all have, so that no row needs padding but before its prompt.
        """
        yield from (utterance for utterance in utterances if utterance.finish is not None)
        active = [utterance for utterance in utterances if utterance.finish is None]
        if not active:
            return
        stream = Stream(self._network)
        shared = _shared(active)
        scores = stream.begin([_taken(utterance) for utterance in active], shared)
        while True:
            rows = [row for row, utterance in enumerate(active) if not utterance.pending]
            if rows:
                said = sum(utterance.said for utterance in active)
                say_next([active[row] for row in rows], scores[rows])
                tell_tokens(sum(utterance.said for utterance in active) - said)
            kept = [row for row, utterance in enumerate(active) if utterance.finish is None]
            if len(kept) < len(active):
                yield from (utterance for utterance in active if utterance.finish is not None)
                if not kept:
                    return
                stream.keep(kept)
                active = [active[row] for row in kept]
            shortest = min(len(utterance.pending) for utterance in active)
            scores = stream.extend([_taken(utterance, shortest) for utterance in active])


def _taken(utterance: Utterance, count: int | None = None) -> list[int]:
    """Takes the first pending tokens, or all."""
    taken = utterance.pending[:count]
    del utterance.pending[: len(taken)]
    return taken


def _shared(utterances: Sequence[Utterance]) -> int:
    """How many tokens the stems of all prompts begin with."""
    stems = [utterance.pending[: utterance.stem] for utterance in utterances]
    places = zip(*stems, strict=False)
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, places))
