"""Attention forward, backward and decoding, run in Triton's interpreter, against numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.interpreter import Array, run_kernel
from tests.dataset_builders.kernel_cases import (
    Case,
    Comparison,
    Outcome,
    compare,
    normal,
    print_outcomes,
    run_cases,
    tiles,
    unwritten,
)
from tests.dataset_builders.kernel_references import (
    Scoring,
    attention,
    attention_gradients,
    softmax_weights,
)

MODULE = "tests.dataset_builders.test_kernels_mha"

# Half of a unit in the last place of a 16-bit float is 4.9e-4; the weights are rounded once more.
OUT_TOLERANCE = 1e-3
GRADIENT_TOLERANCE = 2e-3
STATISTICS_TOLERANCE = 1e-5

TILE, BLOCK_D = 16, 32
HEADS, KEY_HEADS = 4, 2
SCALE, SOFTCAP, WINDOW = 0.2, 5.0, 13
SLOPES = np.array([0.1, 0.2, 0.3, 0.4], np.float32)


def strides(name: str, array: Array, axes: tuple[str, ...]) -> dict[str, int]:
    """The distances, in elements, along the first axes of a contiguous array."""
    return {f"{name}_{axis}": math.prod(array.shape[i + 1 :]) for i, axis in enumerate(axes)}


@dataclass(frozen=True, slots=True)
class Dense:
    """A batch of equally long sequences and the switches of `mha_forward`."""

    switches: dict[str, ParameterValue] = field(default_factory=dict)
    queries: int = 45
    keys: int = 61
    head_dim: int = BLOCK_D
    batches: int = 1

    def __call__(self, random: np.random.Generator) -> dict[str, Comparison]:
        """The output, and the gradients where the backward kernels know the switches."""
        q = normal(random, self.batches, HEADS, self.queries, self.head_dim)
        k = normal(random, self.batches, KEY_HEADS, self.keys, self.head_dim)
        v, grad_out = normal(random, *k.shape), normal(random, *q.shape)
        on = {name for name, value in self.switches.items() if value}
        scoring = Scoring(
            SCALE,
            causal="causal" in on,
            window=WINDOW if "window" in on else None,
            softcap=SOFTCAP if "softcap" in on else None,
            slopes=SLOPES if "alibi" in on else None,
            bias=normal(random, HEADS, self.queries, self.keys) if "matrix_bias" in on else None,
        )
        out, statistics = self.forward(q, k, v, scoring)
        compared = {"out": compare(out, attention(q, k, v, scoring), OUT_TOLERANCE)}
        if on & {"softcap", "alibi", "matrix_bias"}:
            return compared
        gradients = self.backward((q, k, v), out, grad_out, statistics)
        wanted = attention_gradients(q, k, v, grad_out, scoring)
        for name, got, want in zip("qkv", gradients, wanted, strict=True):
            compared[f"grad_{name}"] = compare(got, want, GRADIENT_TOLERANCE)
        return compared

    def forward(
        self, q: Array, k: Array, v: Array, scoring: Scoring
    ) -> tuple[Array, tuple[Array, Array]]:
        """The output, and each row's largest score and reciprocal sum."""
        out = unwritten(q.shape)
        row_max, row_scale = (unwritten(q.shape[:3], np.float32) for _ in range(2))
        axes = ("batch", "head", "row")
        bias = {} if scoring.bias is None else {"bias": scoring.bias}
        run_kernel(
            "mha_forward", (tiles(self.queries, TILE), self.batches * HEADS),
            self.parameters("block_n", "query_group") | self.switches | {"statistics": True},
            q=q, k=k, v=v, out=out, row_max_out=row_max, row_scale_out=row_scale,
            slopes=SLOPES, scale=SCALE, softcap=SOFTCAP, window=WINDOW, heads=HEADS,
            seq_q=self.queries, seq_k=self.keys, statistics_head=self.queries,
            bias_head=self.queries * self.keys, bias_row=self.keys, **bias,
            **strides("q", q, axes), **strides("k", k, axes), **strides("v", v, axes),
            **strides("out", out, axes),
        )  # fmt: skip
        return out, (row_max, row_scale)

    def backward(
        self,
        operands: tuple[Array, ...],
        out: Array,
        grad_out: Array,
        statistics: tuple[Array, ...],
    ) -> tuple[Array, Array, Array]:
        """The three kernels of the backward pass, after the forward kernel's own results."""
        q, k, v = operands
        delta = unwritten(q.shape[:3], np.float32)
        query_tiles = (tiles(self.queries, TILE), self.batches * HEADS)
        row, head = self.head_dim, self.queries * self.head_dim
        run_kernel(
            "mha_backward_preprocess", query_tiles, self.parameters(),
            out=out, grad_out=grad_out, delta=delta,
            seq_q=self.queries, out_head=head, out_row=row, statistics_head=self.queries,
        )  # fmt: skip
        masks = {n: self.switches[n] for n in ("causal", "window") if n in self.switches}
        common = {
            "q": q, "k": k, "v": v, "grad_out": grad_out,
            "row_max_in": statistics[0], "row_scale_in": statistics[1], "delta_in": delta,
            "scale": SCALE, "window": WINDOW, "seq_q": self.queries, "seq_k": self.keys,
            "q_head": head, "q_row": row, "k_head": self.keys * row, "k_row": row,
            "statistics_head": self.queries,
        }  # fmt: skip
        parameters = self.parameters("block_n", "query_group") | masks
        grad_q, grad_k, grad_v = unwritten(q.shape), unwritten(k.shape), unwritten(v.shape)
        key_tiles = (tiles(self.keys, TILE), self.batches * KEY_HEADS)
        run_kernel(
            "mha_backward_dkdv", key_tiles, parameters, **common, grad_k=grad_k, grad_v=grad_v
        )
        run_kernel("mha_backward_dq", query_tiles, parameters, **common, grad_q=grad_q)
        return grad_q, grad_k, grad_v

    def parameters(self, *more: str) -> dict[str, ParameterValue]:
        optional = {"block_n": TILE, "query_group": HEADS // KEY_HEADS}
        return {
            "block_m": TILE, "head_dim": self.head_dim, "block_d": BLOCK_D,
            "even": self.queries % TILE == 0 and self.keys % TILE == 0,
        } | {name: optional[name] for name in more}  # fmt: skip


def variable_length(random: np.random.Generator, *, peel: bool) -> dict[str, Comparison]:
    """Sequences one after the other, (token, head, dimension), one of them without queries."""
    query_ends = np.cumsum([0, 20, 0, 33]).astype(np.int32)
    key_ends = np.cumsum([0, 40, 5, 33]).astype(np.int32)
    q = normal(random, query_ends[-1], HEADS, BLOCK_D)
    k = normal(random, key_ends[-1], KEY_HEADS, BLOCK_D)
    v, out = normal(random, *k.shape), unwritten(q.shape)
    row_max, row_scale = (unwritten((HEADS, len(q)), np.float32) for _ in range(2))
    axes = ("row", "head")
    unused = dict.fromkeys(
        ("q_batch", "k_batch", "v_batch", "out_batch", "seq_q", "seq_k", "bias_head", "bias_row"), 0
    )
    run_kernel(
        "mha_forward", (tiles(33, TILE), 3 * HEADS),
        {"block_m": TILE, "block_n": TILE, "head_dim": BLOCK_D, "block_d": BLOCK_D,
         "query_group": HEADS // KEY_HEADS, "variable_length": True, "causal": True,
         "even": False, "peel": peel, "statistics": True},
        q=q, k=k, v=v, out=out, cumulative_q=query_ends, cumulative_k=key_ends,
        row_max_out=row_max, row_scale_out=row_scale, scale=SCALE, heads=HEADS,
        statistics_head=len(q), **strides("q", q, axes), **strides("k", k, axes),
        **strides("v", v, axes), **strides("out", out, axes), **unused,
    )  # fmt: skip
    wanted, logarithms = [], []
    for sequence in range(3):
        queries = slice(*query_ends[sequence : sequence + 2])
        keys = slice(*key_ends[sequence : sequence + 2])
        by_head = [x.swapaxes(0, 1) for x in (q[queries], k[keys], v[keys])]
        wanted.append(attention(*by_head, Scoring(SCALE, causal=True)).swapaxes(0, 1))
        logarithms.append(softmax_weights(*by_head[:2], Scoring(SCALE, causal=True))[1])
    log_sums = row_max - np.log2(row_scale)
    return {
        "out": compare(out, np.concatenate(wanted), OUT_TOLERANCE),
        "log_sums": compare(log_sums, np.concatenate(logarithms, axis=1), STATISTICS_TOLERANCE),
    }


def in_pages(cache: Array, page_size: int, table: Array) -> Array:
    """The cache cut into pages; the page `table[sequence, i]` is that sequence's i-th."""
    pages = cache.reshape(table.size, page_size, *cache.shape[2:])
    return pages[np.argsort(table, axis=None)]


def decode(
    random: np.random.Generator, *, page_size: int = 0, window: bool = False, softcap: bool = True
) -> dict[str, Comparison]:
    """One query a sequence; what lies beyond a sequence's length in the cache is NaN."""
    batches, group, head_dim, splits, capacity = 2, 3, 24, 4, 80
    lengths = np.array([75, 40], np.int32)  # of 4 times 32 keys: some shares are empty
    q = normal(random, batches, KEY_HEADS * group, head_dim)
    k, v = (normal(random, batches, capacity, KEY_HEADS, head_dim) for _ in range(2))
    for sequence, length in enumerate(lengths):
        k[sequence, length:] = v[sequence, length:] = np.nan
    k_cache, v_cache, table = k, v, np.zeros((batches, 1), np.int32)
    if page_size:
        page_count = batches * capacity // page_size
        table = random.permutation(page_count).astype(np.int32).reshape(batches, -1)
        k_cache, v_cache = in_pages(k, page_size, table), in_pages(v, page_size, table)
    rows = batches * KEY_HEADS * group
    partial_out = unwritten((rows, splits, BLOCK_D), np.float32)
    partial_max, partial_sum = (unwritten((rows, splits), np.float32) for _ in range(2))
    out, window_length = unwritten(q.shape), 21
    partials = {"partial_out": partial_out, "partial_max": partial_max, "partial_sum": partial_sum}
    head: dict[str, ParameterValue] = {"head_dim": head_dim, "block_d": BLOCK_D, "splits": splits}
    run_kernel(
        "mha_decode", (batches * KEY_HEADS, splits),
        head | {"block_h": TILE, "block_n": TILE, "query_group": group, "page_size": page_size,
                "window": window, "softcap": softcap},
        q=q, k_cache=k_cache, v_cache=v_cache, **partials, lengths=lengths, page_table=table,
        scale=SCALE, softcap=SOFTCAP, window=window_length, key_heads=KEY_HEADS,
        table_row=table.shape[1], keys_per_split=32,
        **strides("q", q, ("batch", "head")), **strides("cache", k_cache, ("batch", "row", "head")),
    )  # fmt: skip
    run_kernel("mha_decode_combine", (rows,), head, **partials, out=out, out_row=head_dim)
    scoring = Scoring(
        SCALE,
        causal=True,
        window=window_length if window else None,
        softcap=SOFTCAP if softcap else None,
    )
    wanted = [
        attention(q[i, :, None], *(x[i, :length].swapaxes(0, 1) for x in (k, v)), scoring)[:, 0]
        for i, length in enumerate(lengths)
    ]
    return {"out": compare(out, np.stack(wanted), OUT_TOLERANCE)}


CAUSAL_PEEL: dict[str, ParameterValue] = {"causal": True, "peel": True}
CASES: dict[str, Case] = {
    "all-visible": Dense(),
    "causal": Dense({"causal": True}, batches=2),
    "causal-peel": Dense(CAUSAL_PEEL),
    "peel": Dense({"peel": True}),
    "window": Dense({"window": True}),
    "window-causal": Dense({"window": True, "causal": True}),
    "softcap-causal-peel": Dense(CAUSAL_PEEL | {"softcap": True}),
    "alibi-causal": Dense({"alibi": True, "causal": True}),
    "matrix-bias-peel": Dense({"matrix_bias": True, "peel": True}),
    "matrix-bias-causal": Dense({"matrix_bias": True, "causal": True}),
    "even": Dense(queries=48, keys=64),
    "even-causal-peel": Dense(CAUSAL_PEEL, queries=48, keys=64),
    "even-causal-matrix-bias": Dense({"causal": True, "matrix_bias": True}, queries=48, keys=64),
    "padded-head": Dense(head_dim=24, batches=2),
    "fewer-keys-causal-peel": Dense(CAUSAL_PEEL, keys=30),
    "fewer-keys-causal-window": Dense({"causal": True, "window": True}, keys=20),
    "variable-length": partial(variable_length, peel=False),
    "variable-length-peel": partial(variable_length, peel=True),
    "decode": decode,
    "decode-no-softcap": partial(decode, softcap=False),
    "decode-window": partial(decode, window=True),
    "decode-pages": partial(decode, page_size=16),
    "decode-pages-smaller-than-tiles": partial(decode, page_size=8),
    "decode-pages-window": partial(decode, page_size=16, window=True),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run_cases(MODULE)


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].problems() == []


def test_every_kernel_is_run(outcomes: dict[str, Outcome]) -> None:
    run = {kernel for outcome in outcomes.values() for kernel in outcome.kernels}
    assert run == {name for name, kernel in KERNELS.items() if kernel.family == "mha"}


if __name__ == "__main__":
    print_outcomes(CASES)
