"""Attention backward: the row products first, then dK and dV by key tile, and dQ by query tile.

The weights are recomputed from the largest score and the reciprocal sum that
the forward pass left for each query row.
"""

import triton
import triton.language as tl

from dataset_builders.kernels.common import load_tile, power_of_two
from dataset_builders.kernels.mha import score_tile


@triton.jit
def mha_backward_preprocess(
    out, grad_out, delta, seq_q, out_head, out_row, statistics_head,
    BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """delta = the row sums of out * grad_out, for one tile of rows of one head."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    row_mask = (rows < seq_q)[:, None]
    dim_mask = (dims < HEAD_DIM)[None, :]
    offsets = head.to(tl.int64) * out_head + rows[:, None] * out_row + dims[None, :]
    x = load_tile(out + offsets, row_mask, dim_mask, not EVEN, pad_dims).to(tl.float32)
    y = load_tile(grad_out + offsets, row_mask, dim_mask, not EVEN, pad_dims).to(tl.float32)
    pointers = delta + head * statistics_head + rows
    if EVEN:
        tl.store(pointers, tl.sum(x * y, 1))
    else:
        tl.store(pointers, tl.sum(x * y, 1), mask=rows < seq_q)


@triton.jit
def mha_backward_dkdv(
    q, k, v, grad_out, row_max_in, row_scale_in, delta_in, grad_k, grad_v,
    scale, window, seq_q, seq_k, q_head, q_row, k_head, k_row, statistics_head,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERY_GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One tile of keys of one key head a program, over the queries of its whole group.

    The score tile is transposed (keys by queries), so that both sums take it
    as their left operand as it is.
    """
    key_head = tl.program_id(1)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    shift = seq_k - seq_q
    masked: tl.constexpr = CAUSAL or WINDOW or not EVEN
    column_mask = (columns < seq_k)[:, None]
    dim_mask = (dims < HEAD_DIM)[None, :]
    key_offsets = key_head.to(tl.int64) * k_head + columns[:, None] * k_row + dims[None, :]
    key = load_tile(k + key_offsets, column_mask, dim_mask, not EVEN, pad_dims)
    value = load_tile(v + key_offsets, column_mask, dim_mask, not EVEN, pad_dims)
    key_sum = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    value_sum = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    begin = 0
    end = seq_q
    if CAUSAL:
        begin = tl.maximum(0, tl.program_id(0) * BLOCK_N - shift) // BLOCK_M * BLOCK_M
    if WINDOW:
        end = tl.minimum(seq_q, (tl.program_id(0) + 1) * BLOCK_N - shift + window)
    for member in range(QUERY_GROUP):
        head = key_head * QUERY_GROUP + member
        query_base = q + head.to(tl.int64) * q_head
        grad_base = grad_out + head.to(tl.int64) * q_head
        statistics = head * statistics_head
        for first in range(begin, end, BLOCK_M):
            rows = first + tl.arange(0, BLOCK_M)
            row_mask = rows < seq_q
            offsets = rows[:, None] * q_row + dims[None, :]
            query = load_tile(query_base + offsets, row_mask[:, None], dim_mask, not EVEN, pad_dims)
            grad = load_tile(grad_base + offsets, row_mask[:, None], dim_mask, not EVEN, pad_dims)
            row_max = load_tile(row_max_in + statistics + rows, row_mask, row_mask, not EVEN, False)
            row_scale = load_tile(
                row_scale_in + statistics + rows, row_mask, row_mask, not EVEN, False
            )
            delta = load_tile(delta_in + statistics + rows, row_mask, row_mask, not EVEN, False)
            scores = score_tile(
                key, tl.trans(query), rows[None, :], columns[:, None], seq_q, seq_k, shift,
                scale, 1.0, window, 0.0, CAUSAL, WINDOW, False, False, masked,
            )  # fmt: skip
            weights = power_of_two(scores - row_max[None, :]) * row_scale[None, :]
            value_sum = tl.dot(weights.to(grad.dtype), grad, value_sum)
            grad_weights = tl.dot(value, tl.trans(grad))
            grad_scores = weights * (grad_weights - delta[None, :])
            key_sum = tl.dot(grad_scores.to(query.dtype), query, key_sum)
    key_sum *= scale
    stored_key = key_sum.to(grad_k.dtype.element_ty)
    stored_value = value_sum.to(grad_v.dtype.element_ty)
    if EVEN and not pad_dims:
        tl.store(grad_k + key_offsets, stored_key)
        tl.store(grad_v + key_offsets, stored_value)
    else:
        tl.store(grad_k + key_offsets, stored_key, mask=column_mask & dim_mask)
        tl.store(grad_v + key_offsets, stored_value, mask=column_mask & dim_mask)


@triton.jit
def mha_backward_dq(
    q, k, v, grad_out, row_max_in, row_scale_in, delta_in, grad_q,
    scale, window, seq_q, seq_k, q_head, q_row, k_head, k_row, statistics_head,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERY_GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head a program, over its visible keys."""
    head = tl.program_id(1)
    key_head = head // QUERY_GROUP
    tile = tl.program_id(0)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    shift = seq_k - seq_q
    masked: tl.constexpr = CAUSAL or WINDOW or not EVEN
    row_mask = rows < seq_q
    dim_mask = (dims < HEAD_DIM)[None, :]
    offsets = head.to(tl.int64) * q_head + rows[:, None] * q_row + dims[None, :]
    query = load_tile(q + offsets, row_mask[:, None], dim_mask, not EVEN, pad_dims)
    grad = load_tile(grad_out + offsets, row_mask[:, None], dim_mask, not EVEN, pad_dims)
    statistics = head * statistics_head + rows
    row_max = load_tile(row_max_in + statistics, row_mask, row_mask, not EVEN, False)
    row_scale = load_tile(row_scale_in + statistics, row_mask, row_mask, not EVEN, False)
    delta = load_tile(delta_in + statistics, row_mask, row_mask, not EVEN, False)
    begin = 0
    end = seq_k
    if CAUSAL:
        end = tl.minimum(seq_k, (tile + 1) * BLOCK_M + shift)
    if WINDOW:
        begin = tl.maximum(0, tile * BLOCK_M + shift - window) // BLOCK_N * BLOCK_N
        if not CAUSAL:
            end = tl.minimum(seq_k, (tile + 1) * BLOCK_M + shift + window)
    query_sum = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    key_base = key_head.to(tl.int64) * k_head
    for first in range(begin, end, BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        column_mask = (columns < seq_k)[:, None]
        key_offsets = key_base + columns[:, None] * k_row + dims[None, :]
        key = load_tile(k + key_offsets, column_mask, dim_mask, not EVEN, pad_dims)
        value = load_tile(v + key_offsets, column_mask, dim_mask, not EVEN, pad_dims)
        scores = score_tile(
            query, tl.trans(key), rows[:, None], columns[None, :], seq_q, seq_k, shift,
            scale, 1.0, window, 0.0, CAUSAL, WINDOW, False, False, masked,
        )  # fmt: skip
        weights = power_of_two(scores - row_max[:, None]) * row_scale[:, None]
        grad_weights = tl.dot(grad, tl.trans(value))
        grad_scores = weights * (grad_weights - delta[:, None])
        query_sum = tl.dot(grad_scores.to(key.dtype), key, query_sum)
    stored = (query_sum * scale).to(grad_q.dtype.element_ty)
    if EVEN and not pad_dims:
        tl.store(grad_q + offsets, stored)
    else:
        tl.store(grad_q + offsets, stored, mask=row_mask[:, None] & dim_mask)
