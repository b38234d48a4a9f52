"""General matrix multiplication: C = activation(A B + bias) + residual, and its relatives."""

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
def finish_tile(
    accumulator, c, bias, residual, ldc, rows, columns, M, N,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr, EVEN_MN: tl.constexpr,
):  # fmt: skip
    """Bias by column, activation, residual of C's layout, store."""
    if BIAS:
        accumulator += load_vector(bias, columns, N, EVEN_MN).to(accumulator.dtype)[None, :]
    accumulator = activate(accumulator, ACTIVATION)
    if RESIDUAL:
        pointers = residual + rows[:, None] * ldc + columns[None, :]
        added = load_tile(
            pointers, (rows < M)[:, None], (columns < N)[None, :], not EVEN_MN, not EVEN_MN
        )
        accumulator += added.to(accumulator.dtype)
    store_tile(c, ldc, accumulator, rows, columns, M, N, EVEN_MN)


@triton.jit
def gemm(
    a, b, c, bias, residual, M, N, K, lda, ldb, ldc,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSE_A: tl.constexpr, TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, PRECISION: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    """One tile of C a program."""
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    integer: tl.constexpr = a.dtype.element_ty == tl.int8
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if integer else tl.float32)
    accumulator = multiply_into(
        accumulator, a, b, lda, ldb, rows, columns, M, N, 0, K,
        BLOCK_K, TRANSPOSE_A, TRANSPOSE_B, EVEN_MN, EVEN_K, PRECISION,
    )  # fmt: skip
    finish_tile(
        accumulator, c, bias, residual, ldc, rows, columns, M, N,
        BIAS, ACTIVATION, RESIDUAL, EVEN_MN,
    )  # fmt: skip


@triton.jit
def gemm_batched(
    a, b, c, bias, residual, M, N, K, lda, ldb, ldc, batch_a, batch_b, batch_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSE_A: tl.constexpr, TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, PRECISION: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    """One tile of C a program, the batch in the grid's second dimension."""
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    # 64-bit: a batch of matrices is often larger than 2 GB.
    batch = tl.program_id(1).to(tl.int64)
    a += batch * batch_a
    b += batch * batch_b
    c += batch * batch_c
    if RESIDUAL:
        residual += batch * batch_c
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    integer: tl.constexpr = a.dtype.element_ty == tl.int8
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if integer else tl.float32)
    accumulator = multiply_into(
        accumulator, a, b, lda, ldb, rows, columns, M, N, 0, K,
        BLOCK_K, TRANSPOSE_A, TRANSPOSE_B, EVEN_MN, EVEN_K, PRECISION,
    )  # fmt: skip
    finish_tile(
        accumulator, c, bias, residual, ldc, rows, columns, M, N,
        BIAS, ACTIVATION, RESIDUAL, EVEN_MN,
    )  # fmt: skip


@triton.jit
def gemm_persistent(
    a, b, c, bias, residual, M, N, K, lda, ldb, ldc, programs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TRANSPOSE_A: tl.constexpr, TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, PRECISION: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr,
):  # fmt: skip
    """Each of `programs` programs walks over the tiles of C."""
    integer: tl.constexpr = a.dtype.element_ty == tl.int8
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles, programs):
        tile_m, tile_n = tile_coordinates(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if integer else tl.float32)
        accumulator = multiply_into(
            accumulator, a, b, lda, ldb, rows, columns, M, N, 0, K,
            BLOCK_K, TRANSPOSE_A, TRANSPOSE_B, EVEN_MN, EVEN_K, PRECISION,
        )  # fmt: skip
        finish_tile(
            accumulator, c, bias, residual, ldc, rows, columns, M, N,
            BIAS, ACTIVATION, RESIDUAL, EVEN_MN,
        )  # fmt: skip


@triton.jit
def gemm_split_k(
    a, b, c, M, N, K, lda, ldb, ldc, partial_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
    TRANSPOSE_A: tl.constexpr, TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr, EVEN_K: tl.constexpr, PRECISION: tl.constexpr,
    REDUCTION: tl.constexpr,
):  # fmt: skip
    """One of SPLIT_K shares of one tile's sum a program.

    REDUCTION "atomic" adds the shares into C; "partial" writes each to its own
    matrix, `partial_stride` elements apart, for `gemm_reduce_partials`.
    """
    tile_m, tile_n = tile_coordinates(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    share = tl.program_id(1)
    depth_per_share = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLIT_K) * BLOCK_K
    k_begin = share * depth_per_share
    k_end = tl.minimum(k_begin + depth_per_share, K)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    integer: tl.constexpr = a.dtype.element_ty == tl.int8
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32 if integer else tl.float32)
    accumulator = multiply_into(
        accumulator, a, b, lda, ldb, rows, columns, M, N, k_begin, k_end,
        BLOCK_K, TRANSPOSE_A, TRANSPOSE_B, EVEN_MN, EVEN_K, PRECISION,
    )  # fmt: skip
    if REDUCTION == "atomic":
        pointers = c + rows[:, None] * ldc + columns[None, :]
        values = accumulator.to(c.dtype.element_ty)
        if EVEN_MN:
            tl.atomic_add(pointers, values, sem="relaxed")
        else:
            inside = (rows < M)[:, None] & (columns < N)[None, :]
            tl.atomic_add(pointers, values, mask=inside, sem="relaxed")
    else:
        c += share.to(tl.int64) * partial_stride
        store_tile(c, ldc, accumulator, rows, columns, M, N, EVEN_MN)


@triton.jit
def gemm_reduce_partials(
    partials, c, bias, M, N, ldc, partial_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT_K: tl.constexpr,
    EVEN_MN: tl.constexpr, BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Sums the SPLIT_K partial matrices of `gemm_split_k`, with its epilogue."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    pointers = partials + rows[:, None] * ldc + columns[None, :]
    row_mask = (rows < M)[:, None]
    column_mask = (columns < N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in tl.static_range(SPLIT_K):
        total += load_tile(pointers, row_mask, column_mask, not EVEN_MN, not EVEN_MN)
        pointers += partial_stride
    finish_tile(total, c, bias, c, ldc, rows, columns, M, N, BIAS, ACTIVATION, False, EVEN_MN)
