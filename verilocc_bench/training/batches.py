"""Batches of examples of similar length, in an order that the seed alone decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from verilocc_bench.training.examples import Examples

IGNORED = -100
"""The label of a token that does not count in the loss."""

POOL = 64
"""Examples are sorted by length within pools of about this many batches."""


class Batches(torch.utils.data.Dataset[dict[str, Any]]):  # type: ignore[misc]
    """Each item is a batch: `input_ids`, `attention_mask`, `position_ids`, `labels`, `kept`.

    The first four are of shape (examples, longest example). The padding is on
    the left, so that each row ends with its completion, the only part that is
    learnt. `kept` is the length of the longest completion plus 1: the number
    of last positions whose scores the loss needs.
    """

    def __init__(self, examples: Examples, batch_tokens: int, padding: int, seed: int) -> None:
        self._examples, self._padding = examples, padding
        lengths = np.diff(examples.starts)
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(examples))
        per_pool = max(1, int(POOL * batch_tokens / max(float(lengths.mean()), 1.0)))
        found: list[NDArray[np.int64]] = []
        for start in range(0, len(order), per_pool):
            pool = order[start : start + per_pool]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            found += _cut(pool, lengths, batch_tokens)
        self._batches = [found[number] for number in generator.permutation(len(found))]

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, number: int) -> dict[str, Any]:
        chosen = self._batches[number]
        tokens, starts, completions = self._examples
        lengths = starts[chosen + 1] - starts[chosen]
        width, kept = int(lengths.max()), int(completions[chosen].max()) + 1
        ids = np.full((len(chosen), width), self._padding, np.int64)
        mask = np.zeros((len(chosen), width), np.int64)
        labels = np.full((len(chosen), width), IGNORED, np.int64)
        for row, example in enumerate(chosen):
            own = tokens[starts[example] : starts[example + 1]]
            ids[row, width - len(own) :] = own
            mask[row, width - len(own) :] = 1
            learnt = completions[example]
            labels[row, width - learnt :] = own[len(own) - learnt :]
        positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask),
            "position_ids": torch.from_numpy(positions),
            "labels": torch.from_numpy(labels),
            "kept": kept,
        }


def _cut(
    pool: NDArray[np.int64], lengths: NDArray[np.int64], batch_tokens: int
) -> list[NDArray[np.int64]]:
    """Cuts a pool, shortest example first, into batches.

    A batch has at most `batch_tokens` tokens with its padding, but at least
    one example.
    """
    found = []
    start = 0
    for end in range(1, len(pool) + 1):
        following = lengths[pool[end]] if end < len(pool) else 0
        if end == len(pool) or (end + 1 - start) * following > batch_tokens:
            found.append(pool[start:end])
            start = end
    return found
