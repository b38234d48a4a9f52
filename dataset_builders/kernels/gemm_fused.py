"""Matrix multiplications with something fused in: gates, scales, weights of few bits, experts."""

import triton
import triton.language as tl

from dataset_builders.kernels.common import (
    activate,
    load_tile,
    load_vector,
    multiply_into,
    store_tile,
    tile_coordinates,
)


@triton.jit
def gemm_gated(
    a, gate, up, c, M, N, K, lda, ldb, ldc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSE_B: tl.constexpr, EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """C = activation(A gate) * (A up), both products in one loop (SwiGLU and its kin)."""
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    row_mask = (rows < M)[:, None]
    column_mask = (columns < N)[None, :]
    a_pointers = a + rows[:, None] * lda + depth[None, :]
    if TRANSPOSE_B:
        b_offsets = columns[None, :] * ldb + depth[:, None]
        b_step = BLOCK_K
    else:
        b_offsets = depth[:, None] * ldb + columns[None, :]
        b_step = BLOCK_K * ldb
    gate_pointers = gate + b_offsets
    up_pointers = up + b_offsets
    gate_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = depth < K - k
        x = load_tile(a_pointers, row_mask, inside[None, :], not EVEN_MN, not EVEN_K)
        y = load_tile(gate_pointers, inside[:, None], column_mask, not EVEN_K, not EVEN_MN)
        z = load_tile(up_pointers, inside[:, None], column_mask, not EVEN_K, not EVEN_MN)
        gate_sum = tl.dot(x, y, gate_sum, input_precision=PRECISION)
        up_sum = tl.dot(x, z, up_sum, input_precision=PRECISION)
        a_pointers += BLOCK_K
        gate_pointers += b_step
        up_pointers += b_step
    store_tile(c, ldc, activate(gate_sum, ACTIVATION) * up_sum, rows, columns, M, N, EVEN_MN)


@triton.jit
def gemm_quantized(
    a, b, c, scale_a, scale_b, M, N, K, lda, ldb, ldc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSE_A: tl.constexpr, TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """8-bit integer or float operands, wide accumulation, scaled back.

    SCALE "tensor" has one factor for each operand, "channel" one for each row
    of A and each column of B.
    """
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    integer: tl.constexpr = a.dtype.element_ty == tl.int8
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if integer else tl.float32)
    accumulator = multiply_into(
        accumulator, a, b, lda, ldb, rows, columns, M, N, 0, K,
        BLOCK_K, TRANSPOSE_A, TRANSPOSE_B, EVEN_MN, EVEN_K, "ieee",
    )  # fmt: skip
    values = accumulator.to(tl.float32)
    if SCALE == "channel":
        values *= load_vector(scale_a, rows, M, EVEN_MN)[:, None]
        values *= load_vector(scale_b, columns, N, EVEN_MN)[None, :]
    else:
        values *= tl.load(scale_a) * tl.load(scale_b)
    store_tile(c, ldc, values, rows, columns, M, N, EVEN_MN)


@triton.jit
def gemm_weight_only(
    a, b, c, scale, M, N, K, lda, ldb, ldc, scale_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    WEIGHT_BITS: tl.constexpr, GROUPED_SCALE: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """16-bit activations with 8-bit or packed 4-bit weights, converted in the loop.

    Two 4-bit weights, with an offset of 8, share a byte along N. GROUPED_SCALE
    has a row of scales for each BLOCK_K of K, else there is one row.
    """
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    row_mask = (rows < M)[:, None]
    a_pointers = a + rows[:, None] * lda + depth[None, :]
    if WEIGHT_BITS == 4:
        stored = tile_n * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
        stored_limit = N // 2
    else:
        stored = columns
        stored_limit = N
    stored_mask = (stored < stored_limit)[None, :]
    b_pointers = b + depth[:, None] * ldb + stored[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = depth < K - k
        x = load_tile(a_pointers, row_mask, inside[None, :], not EVEN_MN, not EVEN_K)
        packed = load_tile(b_pointers, inside[:, None], stored_mask, not EVEN_K, not EVEN_MN)
        if WEIGHT_BITS == 4:
            weights = tl.interleave((packed & 15) - 8, ((packed >> 4) & 15) - 8)
        else:
            weights = packed
        if GROUPED_SCALE:
            factors = load_vector(scale, columns, N, EVEN_MN)
            weights = (weights.to(tl.float32) * factors[None, :].to(tl.float32)).to(x.dtype)
            scale += scale_stride
        else:
            weights = weights.to(x.dtype)
        accumulator = tl.dot(x, weights, accumulator)
        a_pointers += BLOCK_K
        b_pointers += BLOCK_K * ldb
    if not GROUPED_SCALE:
        accumulator *= load_vector(scale, columns, N, EVEN_MN).to(tl.float32)[None, :]
    store_tile(c, ldc, accumulator, rows, columns, M, N, EVEN_MN)


@triton.jit
def gemm_experts(
    a, b, c, tokens, experts, weights, token_count, N, K, lda, ldb, ldc, expert_stride, top_k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    WEIGHTED: tl.constexpr, EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """Rows of A gathered by expert (mixture of experts), one expert's matrix a tile.

    `tokens` lists (row, choice) pairs as row * top_k + choice, sorted by expert
    and padded to whole tiles with numbers beyond `token_count`; `experts` names
    the expert of each tile.
    """
    tile_m = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    pairs = tl.load(tokens + tile_m * BLOCK_M + tl.arange(0, BLOCK_M))
    row_mask = (pairs < token_count)[:, None]
    column_mask = (columns < N)[None, :]
    expert = tl.load(experts + tile_m).to(tl.int64)
    a_pointers = a + (pairs // top_k)[:, None] * lda + depth[None, :]
    b_pointers = b + expert * expert_stride + depth[:, None] * ldb + columns[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = depth < K - k
        x = load_tile(a_pointers, row_mask, inside[None, :], True, not EVEN_K)
        y = load_tile(b_pointers, inside[:, None], column_mask, not EVEN_K, not EVEN_MN)
        accumulator = tl.dot(x, y, accumulator)
        a_pointers += BLOCK_K
        b_pointers += BLOCK_K * ldb
    if WEIGHTED:
        factors = tl.load(weights + pairs, mask=pairs < token_count, other=0.0)
        accumulator *= factors.to(tl.float32)[:, None]
    # Padding rows lie beyond token_count and are masked; the columns need a
    # mask only at the edge.
    store_tile(c, ldc, accumulator, pairs, columns, token_count, N, False)
