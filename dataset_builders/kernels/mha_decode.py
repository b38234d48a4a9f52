"""Attention for one new token: the cached keys are split over programs, then combined."""

import triton
import triton.language as tl

from dataset_builders.kernels.common import (
    LOG2_E,
    hyperbolic_tangent,
    load_tile,
    power_of_two,
)
from dataset_builders.kernels.mha import HIDDEN


@triton.jit
def mha_decode(
    q, k_cache, v_cache, partial_out, partial_max, partial_sum, lengths, page_table,
    scale, softcap, window, key_heads, q_batch, q_head, cache_batch, cache_row, cache_head,
    table_row, keys_per_split,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERY_GROUP: tl.constexpr, SPLITS: tl.constexpr, PAGE_SIZE: tl.constexpr,
    WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
):  # fmt: skip
    """One share of the keys of one key head a program, for the QUERY_GROUP heads on it.

    The group is padded to BLOCK_H rows, what the matrix unit takes. PAGE_SIZE 0
    is a cache with one row of tokens a sequence; otherwise `page_table` names
    the page, PAGE_SIZE tokens, of each stretch of the sequence.
    """
    batch = tl.program_id(0) // key_heads
    key_head = tl.program_id(0) - batch * key_heads
    split = tl.program_id(1)
    length = tl.load(lengths + batch)
    members = tl.arange(0, BLOCK_H)
    dims = tl.arange(0, BLOCK_D)
    pad_dims: tl.constexpr = HEAD_DIM != BLOCK_D
    member_mask = members < QUERY_GROUP
    dim_mask = dims < HEAD_DIM
    heads = key_head * QUERY_GROUP + members
    query = load_tile(
        q + batch * q_batch + heads[:, None] * q_head + dims[None, :],
        member_mask[:, None], dim_mask[None, :], BLOCK_H != QUERY_GROUP, pad_dims,
    )  # fmt: skip
    begin = split * keys_per_split
    end = tl.minimum(begin + keys_per_split, length)
    if WINDOW:
        oldest = tl.maximum(length - window, 0)
        begin = tl.maximum(begin, oldest // BLOCK_N * BLOCK_N)
    result = tl.zeros((BLOCK_H, BLOCK_D), dtype=tl.float32)
    row_max = tl.full((BLOCK_H,), HIDDEN, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_H,), dtype=tl.float32)
    for first in range(begin, end, BLOCK_N):
        tokens = first + tl.arange(0, BLOCK_N)
        inside = tokens < end
        if PAGE_SIZE == 0:
            places = batch.to(tl.int64) * cache_batch + tokens * cache_row
        else:
            pages = tl.load(
                page_table + batch * table_row + tokens // PAGE_SIZE, mask=inside, other=0
            )
            places = pages.to(tl.int64) * cache_batch + (tokens % PAGE_SIZE) * cache_row
        places += key_head * cache_head
        key = load_tile(
            k_cache + places[None, :] + dims[:, None],
            inside[None, :], dim_mask[:, None], True, pad_dims,
        )  # fmt: skip
        scores = tl.dot(query, key)
        if SOFTCAP:
            scores = hyperbolic_tangent(scores * (scale / softcap)) * (softcap * LOG2_E)
        else:
            scores = scores * (scale * LOG2_E)
        visible = inside
        if WINDOW:
            visible = visible & (tokens >= oldest)
        scores = tl.where(visible[None, :], scores, HIDDEN)
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        weights = power_of_two(scores - new_max[:, None])
        rescale = power_of_two(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(weights, 1)
        row_max = new_max
        value = load_tile(
            v_cache + places[:, None] + dims[None, :],
            inside[:, None], dim_mask[None, :], True, pad_dims,
        )  # fmt: skip
        result = tl.dot(weights.to(value.dtype), value, result * rescale[:, None])
    # Unnormalized: the combination weighs the shares by maximum and sum. An
    # empty share leaves HIDDEN and zeros, which weigh nothing.
    slots = (batch * key_heads * QUERY_GROUP + heads) * SPLITS + split
    tl.store(
        partial_out + slots[:, None].to(tl.int64) * BLOCK_D + dims[None, :],
        result, mask=member_mask[:, None],
    )  # fmt: skip
    tl.store(partial_max + slots, row_max, mask=member_mask)
    tl.store(partial_sum + slots, row_sum, mask=member_mask)


@triton.jit
def mha_decode_combine(
    partial_out, partial_max, partial_sum, out, out_row,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Joins the SPLITS shares of one (sequence, head) row."""
    row = tl.program_id(0)
    splits = tl.arange(0, SPLITS)
    dims = tl.arange(0, BLOCK_D)
    slots = row * SPLITS + splits
    maxima = tl.load(partial_max + slots)
    weights = power_of_two(maxima - tl.max(maxima, 0))
    total = tl.sum(weights * tl.load(partial_sum + slots), 0)
    shares = tl.load(partial_out + slots[:, None].to(tl.int64) * BLOCK_D + dims[None, :])
    result = tl.sum(shares * weights[:, None], 0) / total
    tl.store(out + row * out_row + dims, result.to(out.dtype.element_ty), mask=dims < HEAD_DIM)
