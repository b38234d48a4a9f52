"""What the kernels compute, in numpy and 64 bits, with a formula where they have a loop.

Queries, keys and values are (batch, head, token, dimension).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dataset_builders.kernels.specifications import ParameterValue
from tests.dataset_builders.interpreter import Array


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def activate(x: Array, activation: ParameterValue) -> Array:
    match activation:
        case "relu":
            return np.maximum(x, 0)
        case "silu":
            return x / (1 + np.exp(-x))
        case "gelu":
            return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        case _:
            return x


@dataclass(frozen=True, slots=True)
class Scoring:
    """What is done to the products of queries and keys before the softmax, in this order."""

    scale: float
    softcap: float | None = None
    slopes: Array | None = None
    bias: Array | None = None
    causal: bool = False
    window: int | None = None


def softmax_weights(q: Array, k: Array, scoring: Scoring) -> tuple[Array, Array]:
    """The weights, zeros in rows that see nothing, and the logarithms, base 2, of their sums."""
    group = q.shape[-3] // k.shape[-3]
    keys = np.repeat(k, group, axis=-3).astype(float)
    scores = q.astype(float) @ keys.swapaxes(-1, -2) * scoring.scale
    query_count, key_count = scores.shape[-2:]
    # The last query stands at the last key.
    query_places = np.arange(query_count)[:, None] + key_count - query_count
    distance = np.arange(key_count) - query_places
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
    exponentials = np.where(hidden, 0, np.exp(scores))
    sums = exponentials.sum(-1, keepdims=True)
    seen = np.where(sums == 0, 1, sums)
    return exponentials / seen, np.log2(seen[..., 0])


def attention(q: Array, k: Array, v: Array, scoring: Scoring) -> Array:
    weights, _ = softmax_weights(q, k, scoring)
    return weights @ np.repeat(v.astype(float), q.shape[-3] // v.shape[-3], axis=-3)


def attention_gradients(
    q: Array, k: Array, v: Array, grad_out: Array, scoring: Scoring
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v; a key head's is the sum over its query heads."""
    q, k, v, grad_out = (x.astype(float) for x in (q, k, v, grad_out))
    group = q.shape[1] // k.shape[1]
    keys, values = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    weights, _ = softmax_weights(q, k, scoring)
    row_products = (weights @ values * grad_out).sum(-1, keepdims=True)
    grad_scores = weights * (grad_out @ values.swapaxes(2, 3) - row_products) * scoring.scale
    by_key_head = (k.shape[0], k.shape[1], group, *k.shape[2:])
    return (
        grad_scores @ keys,
        (grad_scores.swapaxes(2, 3) @ q).reshape(by_key_head).sum(2),
        (weights.swapaxes(2, 3) @ grad_out).reshape(by_key_head).sum(2),
    )
