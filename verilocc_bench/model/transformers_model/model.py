"""A causal language model of transformers that completes prompts in batches.

The loop is our own: `generate` of transformers draws from one generator for
the whole batch, so that a sample would depend on its neighbours, and obeys no
constraint that is made while it speaks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import takewhile

import torch

from verilocc_bench.errors import InfrastructureError
from verilocc_bench.model.advice import Advice
from verilocc_bench.model.language_model import Ask, Completion, TokenSampling
from verilocc_bench.model.transformers_model.network import Network, Stream
from verilocc_bench.model.transformers_model.picking import say_next
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.model.transformers_model.utterance import Utterance

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
    def revision(self) -> str:
        """The Hub's commit, or a hash of the folder's files."""
        return self._revision

    def complete(self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]) -> list[Completion]:
        """A completion for every ask, in their order.

        Where memory runs out the batch is halved and begun again, and no
        later one is larger. Raises InfrastructureError if even one ask
        does not fit, and InputError if the tokenizer cannot say what a
        constraint asks for.
        """
        completions: list[Completion] = []
        while len(completions) < len(asks):
            start = len(completions)
            size = min(len(asks) - start, self.largest_batch or len(asks))
            part = slice(start, start + size)
            try:
                completions += self._complete_batch(asks[part], sampling[part])
                fits = True
            except torch.OutOfMemoryError:
                fits = False  # halved below: the error itself keeps the batch's tensors alive
            if not fits:
                self._halve(size)
        return completions

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
        self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]
    ) -> list[Completion]:
        context = self._network.context
        utterances = [
            Utterance(ask, how, self._codec, context)
            for ask, how in zip(asks, sampling, strict=True)
        ]
        self._speak([utterance for utterance in utterances if utterance.finish is None])
        return [utterance.completion() for utterance in utterances]

    def _speak(self, active: list[Utterance]) -> None:
        """Until all are finished: feeds what is pending, then those with nothing pending speak.

        Only as many tokens are fed at once as all have, so that no row needs
        padding but before its prompt.
        """
        if not active:
            return
        stream = Stream(self._network)
        shared = _shared(active)
        scores = stream.begin([_taken(utterance) for utterance in active], shared)
        while True:
            rows = [row for row, utterance in enumerate(active) if not utterance.pending]
            if rows:
                say_next([active[row] for row in rows], scores[rows])
            kept = [row for row, utterance in enumerate(active) if utterance.finish is None]
            if not kept:
                return
            if len(kept) < len(active):
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
