"""Attention forward: tiles of queries stream over tiles of keys with an online softmax.

Scores are kept in base 2 (scaled by log2 e), so that every exponential is one
hardware instruction. For the backward pass each query row leaves its largest
score and the reciprocal of its sum; no logarithm is ever needed.
"""

import triton
import triton.language as tl

from dataset_builders.kernels.common import (
    LOG2_E,
    hyperbolic_tangent,
    load_tile,
    power_of_two,
)

# Finite, so that a row with nothing visible yet never computes inf - inf.
HIDDEN = tl.constexpr(-1.0e30)


@triton.jit
def sequence_bounds(cumulative, batch, length, VARIABLE_LENGTH: tl.constexpr):
    """(first token, number of tokens) of a sequence of the batch."""
    if VARIABLE_LENGTH:
        first = tl.load(cumulative + batch)
        length = tl.load(cumulative + batch + 1) - first
    else:
        first = 0
    return first, length


@triton.jit
def score_tile(
    x, y, rows, columns, rows_limit, columns_limit, shift, scale, softcap, window, slope,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, ALIBI: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Scores, in base 2, of x @ y, where `rows` are query and `columns` key positions.

    `rows` and `columns` already have the tile's broadcast shape, so that the
    backward pass may ask for the transposed tile.
    """
    scores = tl.dot(x, y)
    if SOFTCAP:
        scores = hyperbolic_tangent(scores * (scale / softcap)) * (softcap * LOG2_E)
    else:
        scores = scores * (scale * LOG2_E)
    distance = columns - rows - shift
    if ALIBI:
        scores += (slope * LOG2_E) * distance.to(tl.float32)
    if MASKED:
        visible = (columns < columns_limit) & (rows < rows_limit)
        if CAUSAL:
            visible = visible & (distance <= 0)
        if WINDOW:
            visible = visible & (distance > -window)
            if not CAUSAL:
                visible = visible & (distance < window)
        scores = tl.where(visible, scores, HIDDEN)
    return scores


@triton.jit
def attend(
    out, row_max, row_sum, query, k_pointers, v_pointers, k_row, v_row,
    bias_pointers, rows, dims, begin, end, seq_q, seq_k, shift, scale, softcap, window, slope,
    BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    ALIBI: tl.constexpr, MATRIX_BIAS: tl.constexpr,
    MASKED: tl.constexpr, MASK_ROWS: tl.constexpr, MASK_KEYS: tl.constexpr,
):  # fmt: skip
    """One pass over the keys `begin` to `end`; pointers stand at key 0.

    The running output, maximum and sum come in and go out. MASKED hides
    scores; MASK_ROWS and MASK_KEYS guard loads at the ends of the sequences.
    """
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    dim_mask = dims < HEAD_DIM
    k_pointers += begin * k_row
    v_pointers += begin * v_row
    for first in range(begin, end, BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        key_mask = columns < seq_k
        key = load_tile(k_pointers, key_mask[None, :], dim_mask[:, None], MASK_KEYS, pad_dims)
        scores = score_tile(
            query, key, rows[:, None], columns[None, :], seq_q, seq_k, shift, scale, softcap,
            window, slope, CAUSAL, WINDOW, SOFTCAP, ALIBI, MASKED,
        )  # fmt: skip
        if MATRIX_BIAS:
            added = load_tile(
                bias_pointers + columns[None, :],
                (rows < seq_q)[:, None], key_mask[None, :], MASK_ROWS, MASK_KEYS,
            )  # fmt: skip
            scores += added.to(tl.float32) * LOG2_E
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        weights = power_of_two(scores - new_max[:, None])
        rescale = power_of_two(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(weights, 1)
        row_max = new_max
        value = load_tile(v_pointers, key_mask[:, None], dim_mask[None, :], MASK_KEYS, pad_dims)
        out = tl.dot(weights.to(value.dtype), value, out * rescale[:, None])
        k_pointers += BLOCK_N * k_row
        v_pointers += BLOCK_N * v_row
    return out, row_max, row_sum


@triton.jit
def mha_forward(
    q, k, v, out, row_max_out, row_scale_out, bias, slopes, cumulative_q, cumulative_k,
    scale, softcap, window, seq_q, seq_k, heads,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    out_batch, out_head, out_row, bias_head, bias_row, statistics_head,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERY_GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, VARIABLE_LENGTH: tl.constexpr,
    ALIBI: tl.constexpr, MATRIX_BIAS: tl.constexpr, SOFTCAP: tl.constexpr,
    EVEN: tl.constexpr, PEEL: tl.constexpr, STATISTICS: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head a program.

    QUERY_GROUP query heads share a key head. EVEN promises that no tile crosses
    a sequence's end. PEEL runs the tiles in which every key is visible through
    a loop of their own, without masks. WINDOW sees keys nearer than `window`.
    ALIBI has a slope a head, MATRIX_BIAS an added matrix a head. STATISTICS
    leaves what the backward pass needs.
    """
    tl.static_assert(not (PEEL and WINDOW), "the peeled loop knows no window")
    tile = tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) - batch * heads
    first_q, seq_q = sequence_bounds(cumulative_q, batch, seq_q, VARIABLE_LENGTH)
    first_k, seq_k = sequence_bounds(cumulative_k, batch, seq_k, VARIABLE_LENGTH)
    if VARIABLE_LENGTH and tile * BLOCK_M >= seq_q:
        return
    # The last query sees the last key, whatever the lengths.
    shift = seq_k - seq_q
    key_head = head // QUERY_GROUP
    if VARIABLE_LENGTH:
        q += first_q.to(tl.int64) * q_row + head * q_head
        k += first_k.to(tl.int64) * k_row + key_head * k_head
        v += first_k.to(tl.int64) * v_row + key_head * v_head
        out += first_q.to(tl.int64) * out_row + head * out_head
        statistics = head * statistics_head + first_q
    else:
        batch64 = batch.to(tl.int64)
        q += batch64 * q_batch + head * q_head
        k += batch64 * k_batch + key_head * k_head
        v += batch64 * v_batch + key_head * v_head
        out += batch64 * out_batch + head * out_head
        statistics = (batch * heads + head) * statistics_head
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    row_mask = (rows < seq_q)[:, None]
    dim_mask = (dims < HEAD_DIM)[None, :]
    query_pointers = q + rows[:, None] * q_row + dims[None, :]
    query = load_tile(query_pointers, row_mask, dim_mask, not EVEN, pad_dims)
    k_pointers = k + keys[None, :] * k_row + dims[:, None]
    v_pointers = v + keys[:, None] * v_row + dims[None, :]
    bias_pointers = q
    slope = 0.0
    if MATRIX_BIAS:
        bias_pointers = bias + head * bias_head + rows[:, None] * bias_row
    if ALIBI:
        slope = tl.load(slopes + head)

    begin = 0
    end = seq_k
    if CAUSAL:
        end = tl.minimum(seq_k, (tile + 1) * BLOCK_M + shift)
    if WINDOW:
        begin = tl.maximum(0, tile * BLOCK_M + shift - window) // BLOCK_N * BLOCK_N
        if not CAUSAL:
            end = tl.minimum(seq_k, (tile + 1) * BLOCK_M + shift + window)
    result = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    row_max = tl.full((BLOCK_M,), HIDDEN, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    masked: tl.constexpr = CAUSAL or WINDOW or not EVEN
    if PEEL and masked:
        clear = seq_k
        if CAUSAL:
            clear = tl.minimum(tl.maximum(tile * BLOCK_M + shift + 1, 0), seq_k)
        clear = clear // BLOCK_N * BLOCK_N
        result, row_max, row_sum = attend(
            result, row_max, row_sum, query, k_pointers, v_pointers, k_row, v_row,
            bias_pointers, rows, dims, begin, clear, seq_q, seq_k, shift, scale, softcap, window,
            slope, BLOCK_N, HEAD_DIM, BLOCK_D, CAUSAL, WINDOW, SOFTCAP, ALIBI,
            MATRIX_BIAS, False, not EVEN, False,
        )  # fmt: skip
        begin = clear
    result, row_max, row_sum = attend(
        result, row_max, row_sum, query, k_pointers, v_pointers, k_row, v_row,
        bias_pointers, rows, dims, begin, end, seq_q, seq_k, shift, scale, softcap, window,
        slope, BLOCK_N, HEAD_DIM, BLOCK_D, CAUSAL, WINDOW, SOFTCAP, ALIBI,
        MATRIX_BIAS, masked, not EVEN, not EVEN,
    )  # fmt: skip

    row_scale = 1.0 / row_sum
    if masked:
        # A row that sees no key at all gives zero, not an average of everything.
        row_scale = tl.where(row_max > 0.5 * HIDDEN, row_scale, 0.0)
    result = result * row_scale[:, None]
    pointers = out + rows[:, None] * out_row + dims[None, :]
    values = result.to(out.dtype.element_ty)
    if EVEN and not pad_dims:
        tl.store(pointers, values)
    else:
        tl.store(pointers, values, mask=row_mask & dim_mask)
    if STATISTICS:
        tl.store(row_max_out + statistics + rows, row_max, mask=rows < seq_q)
        tl.store(row_scale_out + statistics + rows, row_scale, mask=rows < seq_q)
