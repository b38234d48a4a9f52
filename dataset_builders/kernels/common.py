"""Device functions that several kernels share: tile order, tile products, epilogues.

Everything is written without calls into vendor math libraries: exponentials
are base 2 (one hardware instruction on every target), and what else is needed
is built from them. The compiled code is then all our own source's.
"""

import triton
import triton.language as tl
from triton.language.core import builtin

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def tile_coordinates(
    program, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr
):
    """The (row, column) tile of a linear program number.

    GROUP_M rows of tiles are walked column by column before the next rows
    begin, so that programs which run together share operands in the cache.
    """
    tile_rows = tl.cdiv(M, BLOCK_M)
    tile_columns = tl.cdiv(N, BLOCK_N)
    if GROUP_M == 1:
        tile_m = program // tile_columns
        tile_n = program - tile_m * tile_columns
    else:
        tiles_per_band = GROUP_M * tile_columns
        band = program // tiles_per_band
        place = program - band * tiles_per_band
        band_height = tl.minimum(tile_rows - band * GROUP_M, GROUP_M)
        tile_n = place // band_height
        tile_m = band * GROUP_M + (place - tile_n * band_height)
    return tile_m, tile_n


@triton.jit
def load_tile(pointers, row_mask, column_mask, MASK_ROWS: tl.constexpr, MASK_COLUMNS: tl.constexpr):
    """Loads what both masks allow, each only where its flag is set; zeros elsewhere."""
    if MASK_ROWS and MASK_COLUMNS:
        tile = tl.load(pointers, mask=row_mask & column_mask, other=0.0)
    elif MASK_ROWS:
        tile = tl.load(pointers, mask=row_mask, other=0.0)
    elif MASK_COLUMNS:
        tile = tl.load(pointers, mask=column_mask, other=0.0)
    else:
        tile = tl.load(pointers)
    return tile


@triton.jit
def multiply_into(
    accumulator, a, b, lda, ldb, rows, columns, M, N, k_begin, k_end,
    BLOCK_K: tl.constexpr,
    TRANSPOSE_A: tl.constexpr,
    TRANSPOSE_B: tl.constexpr,
    EVEN_MN: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """accumulator + A[rows, k_begin:k_end] @ B[k_begin:k_end, columns].

    A is M x K and B is K x N; a transposed operand is stored the other way
    round. EVEN_MN and EVEN_K promise that no tile crosses an edge.
    """
    depth = k_begin + tl.arange(0, BLOCK_K)
    if TRANSPOSE_A:
        a_pointers = a + depth[None, :] * lda + rows[:, None]
    else:
        a_pointers = a + rows[:, None] * lda + depth[None, :]
    if TRANSPOSE_B:
        b_pointers = b + columns[None, :] * ldb + depth[:, None]
    else:
        b_pointers = b + depth[:, None] * ldb + columns[None, :]
    row_mask = (rows < M)[:, None]
    column_mask = (columns < N)[None, :]
    for k in range(k_begin, k_end, BLOCK_K):
        inside = tl.arange(0, BLOCK_K) < k_end - k
        x = load_tile(a_pointers, row_mask, inside[None, :], not EVEN_MN, not EVEN_K)
        y = load_tile(b_pointers, inside[:, None], column_mask, not EVEN_K, not EVEN_MN)
        accumulator = tl.dot(
            x, y, accumulator, input_precision=PRECISION, out_dtype=accumulator.dtype
        )
        if TRANSPOSE_A:
            a_pointers += BLOCK_K * lda
        else:
            a_pointers += BLOCK_K
        if TRANSPOSE_B:
            b_pointers += BLOCK_K
        else:
            b_pointers += BLOCK_K * ldb
    return accumulator


@triton.jit
def store_tile(c, ldc, tile, rows, columns, M, N, EVEN_MN: tl.constexpr):
    """Stores a tile of row-major C, converted to C's type."""
    pointers = c + rows[:, None] * ldc + columns[None, :]
    values = tile.to(c.dtype.element_ty)
    if EVEN_MN:
        tl.store(pointers, values)
    else:
        tl.store(pointers, values, mask=(rows < M)[:, None] & (columns < N)[None, :])


@triton.jit
def load_vector(pointer, offsets, limit, EVEN: tl.constexpr):
    """A vector of `limit` elements at `offsets`; zero beyond the limit."""
    if EVEN:
        values = tl.load(pointer + offsets)
    else:
        values = tl.load(pointer + offsets, mask=offsets < limit, other=0.0)
    return values


@builtin
def power_of_two(x, _semantic=None):
    """2^x of 32-bit floats, by the hardware's instruction.

    For NVIDIA, Triton's own exp2 would link code from NVIDIA's libdevice.
    """
    if _semantic.builder.options.backend_name == "cuda":
        instruction = "ex2.approx.ftz.f32 $0, $1;"
        return tl.inline_asm_elementwise(
            instruction, "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1, _semantic=_semantic
        )
    return tl.exp2(x, _semantic=_semantic)


@triton.jit
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + power_of_two(x * -LOG2_E))


@triton.jit
def hyperbolic_tangent(x):
    """tanh(x), as 2 sigmoid(2x) - 1."""
    return 2.0 * sigmoid(2.0 * x) - 1.0


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation: "none", "relu", "gelu" (tanh form) or "silu"."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    elif ACTIVATION == "silu":
        x = x * sigmoid(x)
    elif ACTIVATION == "gelu":
        # 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
        x = x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    return x
