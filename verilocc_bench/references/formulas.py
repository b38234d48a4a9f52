"""What the kernels compute, in 64 bits, with a formula where the kernels have a loop.

Queries, keys and values are (…, head, token, dimension); several query heads share a
key head where there are more of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.numbers import Array

HIDDEN = -1.0e30
"""The score, in base 2, that kernels give to a key that a query does not see."""

_LOG2_E = math.log2(math.e)


def activate(x: NDArray[np.float64], activation: object) -> NDArray[np.float64]:
    """The activation `none`, `relu`, `silu` or `gelu` (its tanh form)."""
    match activation:
        case "relu":
            return np.maximum(x, 0)
        case "silu":
            return np.asarray(x / (1 + np.exp(-x)))
        case "gelu":
            return np.asarray(
                0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
            )
        case _:
            return x


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """What is done to the products of queries and keys before the softmax, in this order.

    `slopes` is (head,), `bias` (head, query, key). `window` hides keys that lie `window`
    or more places from the query, on both sides unless `causal`.
    """

    scale: float
    softcap: float | None = None
    slopes: Array | None = None
    bias: Array | None = None
    causal: bool = False
    window: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Softmax weights (…, head, query, key), and each row's largest score and reciprocal sum.

    The statistics are in base 2, as the kernels store them. A row that sees no key has
    zeros for weights, HIDDEN for its largest score and 0 for the reciprocal.
    """

    weights: NDArray[np.float64]
    row_max: NDArray[np.float64]
    row_scale: NDArray[np.float64]


def score(q: Array, k: Array, scoring: Scoring) -> Scores:
    """Weights and statistics; the last query stands at the last key."""
    keys = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3).astype(float)
    scores = q.astype(float) @ keys.swapaxes(-1, -2) * scoring.scale
    query_count, key_count = scores.shape[-2:]
    places = np.arange(query_count)[:, None] + key_count - query_count
    distance = np.arange(key_count) - places
    if scoring.softcap is not None:
        scores = scoring.softcap * np.tanh(scores / scoring.softcap)
    if scoring.slopes is not None:
        scores = scores + scoring.slopes[:, None, None] * distance
    if scoring.bias is not None:
        scores = scores + scoring.bias
    hidden = np.zeros_like(distance, bool)
    if scoring.causal:
        hidden |= distance > 0
    if scoring.window is not None:
        hidden |= distance <= -scoring.window
        if not scoring.causal:
            hidden |= distance >= scoring.window
    in_base_2 = np.where(hidden, HIDDEN, scores * _LOG2_E)
    row_max = in_base_2.max(-1, initial=HIDDEN)
    exponentials = np.where(hidden, 0.0, np.exp2(in_base_2 - row_max[..., None]))
    sums = exponentials.sum(-1)
    row_scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    return Scores(exponentials * row_scale[..., None], row_max, row_scale)


def attention(q: Array, k: Array, v: Array, scoring: Scoring) -> NDArray[np.float64]:
    """The attention of each query, (…, head, query, dimension)."""
    values = np.repeat(v, q.shape[-3] // v.shape[-3], axis=-3).astype(float)
    return np.asarray(score(q, k, scoring).weights @ values)


def attention_gradients(
    q: Array, k: Array, v: Array, grad_out: Array, scoring: Scoring
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The gradients of q, k and v; a key head's is the sum over its query heads."""
    q, k, v, grad_out = (x.astype(float) for x in (q, k, v, grad_out))
    group = q.shape[-3] // k.shape[-3]
    keys, values = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    weights = score(q, k, scoring).weights
    row_products = (weights @ values * grad_out).sum(-1, keepdims=True)
    grad_weights = grad_out @ values.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - row_products) * scoring.scale
    grad_keys = grad_scores.swapaxes(-1, -2) @ q
    grad_values = weights.swapaxes(-1, -2) @ grad_out
    by_key_head = (*k.shape[:-2], group, *k.shape[-2:])
    return (
        np.asarray(grad_scores @ keys),
        grad_keys.reshape(by_key_head).sum(-3),
        grad_values.reshape(by_key_head).sum(-3),
    )
