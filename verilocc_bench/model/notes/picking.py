"""Which word is taken, of the scores of all."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def drawn_words(scores: Tensor, temperature: float, chances: Sequence[float]) -> Tensor:
    """A word for each row of scores, by a number from 0 up to 1 for each."""
    sums = (scores / temperature).softmax(-1).double().cumsum(-1)
    wanted = torch.tensor(chances, dtype=torch.double)[:, None] * sums[:, -1:]
    return torch.searchsorted(sums, wanted, right=True)[:, 0].clamp(max=scores.shape[-1] - 1)
