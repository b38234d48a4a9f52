"""The network itself: tokens in, scores of the next token out, with a cache of keys and values."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

CHUNK_TOKENS = 1024
"""Longer runs of tokens are fed in parts, to bound the memory of attention masks."""

USUAL_ROWS, MOST_ROWS = 16, 256

SHARED_TOKENS = 32
"""Fewer tokens that all prompts of a batch begin with are fed with the rest."""


class Network:
    """A causal language model of transformers in evaluation mode, on one device."""

    def __init__(self, module: Any, device: torch.device) -> None:
        self.module = module
        self.device = device
        self.parameters = frozenset(inspect.signature(module.forward).parameters)
        self.context = context_of(module.config.get_text_config())

        self._prefix: tuple[tuple[int, ...], Any] | None = None

    @property
    def vocabulary_size(self) -> int:
        """How many tokens get a score."""
        return int(self.module.get_input_embeddings().weight.shape[0])

    def widest_batch(self) -> int:
        """How many rows of full length a GPU's free memory has keys and values for.

        Without a GPU, or where the model does not say how large these are, a few.
        """
        told = self.module.config.get_text_config()
        heads = getattr(told, "num_key_value_heads", None) or getattr(
            told, "num_attention_heads", 0
        )
        layers = getattr(told, "num_hidden_layers", 0)
        if self.device.type != "cuda" or not heads or not layers:
            return USUAL_ROWS
        size = getattr(told, "head_dim", None) or told.hidden_size // told.num_attention_heads
        token_bytes = 2 * layers * heads * size * self.module.dtype.itemsize
        free_bytes, _ = torch.cuda.mem_get_info(self.device)
        rows = free_bytes * 4 // 5 // (token_bytes * min(self.context or 1 << 15, 1 << 15))
        return max(1, min(MOST_ROWS, int(rows)))

    def cache_of_prefix(self, tokens: tuple[int, ...]) -> Any:
        """A copy of a cache that has seen these tokens, in one row; None if it cannot be made.

        The cache of the last prefix is kept, for the next prompts that begin
        with it. Windows of attention count places and not positions, so
        that their caches cannot have padding behind a prefix.
        """
        if self._prefix is None or self._prefix[0] != tokens:
            stream = Stream(self)
            stream.begin([tokens])
            plain = isinstance(stream.cache, DynamicCache) and all(
                type(layer) is DynamicLayer for layer in stream.cache.layers
            )
            self._prefix = (tokens, stream.cache if plain else None)
        return deepcopy(self._prefix[1])


class Stream:
    """Sequences that grow together, row by row, with one cache.

    Prompts, but for what all begin with, are padded on the left to one length
    and masked there; positions count from each row's own first token, so that a row's scores do not
    depend on the rows beside it, up to rounding.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.cache: Any = None
        self._mask = torch.zeros((0, 0), dtype=torch.long, device=network.device)

    def begin(self, prompts: Sequence[Sequence[int]], shared: int = 0) -> torch.Tensor:
        """Feeds the prompts, one a row. Scores as `extend` gives them.

        The first `shared` tokens are the same in all, and fed once, or not at
        all where the batch before began so.
        """
        device = self._network.device
        shared = min(shared, min(map(len, prompts)) - 1)
        self._mask = torch.ones((len(prompts), 0), dtype=torch.long, device=device)
        if shared >= SHARED_TOKENS:
            self.cache = self._network.cache_of_prefix(tuple(prompts[0][:shared]))
            if self.cache is not None:
                self.cache.batch_repeat_interleave(len(prompts))
                self._mask = self._mask.new_ones((len(prompts), shared))
                prompts = [prompt[shared:] for prompt in prompts]
        longest = max(map(len, prompts))
        tokens = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
        real = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        return self._feed(tokens, real)

    def extend(self, runs: Sequence[Sequence[int]]) -> torch.Tensor:
        """Feeds one run of tokens a row, all of one length.

        Scores (logits) of what comes after each row's last token, of shape
        (rows, vocabulary), in 64-bit floating point, or 32-bit where the
        device has no such.
        """
        return self._feed(runs, [[1] * len(run) for run in runs])

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all rows but these, in this order."""
        indices = torch.tensor(rows, dtype=torch.long, device=self._network.device)
        self._mask = self._mask[indices]
        self.cache.batch_select_indices(indices)

    def _feed(self, runs: Sequence[Sequence[int]], real: Sequence[Sequence[int]]) -> torch.Tensor:
        device = self._network.device
        tokens = torch.tensor(runs, dtype=torch.long, device=device)
        added = torch.tensor(real, dtype=torch.long, device=device)
        scores: Any = None
        for start in range(0, tokens.shape[1], CHUNK_TOKENS):
            part = slice(start, start + CHUNK_TOKENS)
            self._mask = torch.cat([self._mask, added[:, part]], dim=1)
            scores = self._forward(tokens[:, part])
        return scores.float() if device.type == "mps" else scores.double()

    def _forward(self, tokens: torch.Tensor) -> Any:
        network = self._network
        length = tokens.shape[1]
        arguments: dict[str, Any] = {"use_cache": True, "return_dict": True}
        if "position_ids" in network.parameters:
            positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
            arguments["position_ids"] = positions[:, -length:]
        if "logits_to_keep" in network.parameters:
            arguments["logits_to_keep"] = 1
        with torch.inference_mode():
            result = network.module(
                input_ids=tokens,
                attention_mask=self._mask,
                past_key_values=self.cache,
                **arguments,
            )
        self.cache = result.past_key_values
        return result.logits[:, -1, :]


def context_of(configuration: Any) -> int | None:
    """How many tokens the positions of a model reach; None if it has no such limit."""
    for name in ("max_position_embeddings", "n_positions", "n_ctx"):
        value = getattr(configuration, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None
