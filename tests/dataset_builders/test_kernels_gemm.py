"""The matrix multiplications, run in Triton's interpreter, against numpy in 64 bits."""

from __future__ import annotations

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
    padded,
    print_outcomes,
    run_cases,
    tiles,
    unpadded,
    unwritten,
)
from tests.dataset_builders.kernel_references import activate, product

MODULE = "tests.dataset_builders.test_kernels_gemm"

# Half of a unit in the last place of a 16-bit float is 4.9e-4.
FP16_TOLERANCE = 1e-3
FP32_TOLERANCE = 1e-5
EXACT = 0.0

TILE = 16
ROWS, COLUMNS, DEPTH = 50, 45, 70  # no tile divides them
SIZES: dict[str, int] = {"M": ROWS, "N": COLUMNS, "K": DEPTH}
UNEVEN_TILES: dict[str, ParameterValue] = {
    "block_m": TILE, "block_n": TILE, "block_k": TILE, "even_mn": False, "even_k": False,
}  # fmt: skip
TILE_COUNT = tiles(ROWS, TILE) * tiles(COLUMNS, TILE)


def integers(random: np.random.Generator, *shape: int, bits: int = 8) -> Array:
    limit = 1 << (bits - 1)
    return random.integers(-limit, limit, shape, np.int8)


def left_operand(random: np.random.Generator, *shape: int, dtype: type = np.float16) -> Array:
    """Normal numbers over about the root of the depth: products of order 1, where gelu bends."""
    return normal(random, *shape, dtype=dtype) / dtype(8)


def stored(matrix: Array, transposed: ParameterValue = False) -> Array:
    return padded(matrix.swapaxes(-1, -2) if transposed else matrix)


def plain(
    random: np.random.Generator,
    *,
    kernel: str,
    sizes: tuple[int, int, int] = (ROWS, COLUMNS, DEPTH),
    types: tuple[type, type] = (np.float16, np.float16),
    tolerance: float = FP16_TOLERANCE,
    **changes: ParameterValue,
) -> dict[str, Comparison]:
    """`gemm`, and the two that differ from it only in which tile a program works on."""
    m, n, k = sizes
    operand_type, out_type = types
    batches = 2 if kernel == "gemm_batched" else 1
    if operand_type is np.int8:
        a, b = integers(random, batches, m, k), integers(random, batches, k, n)
    else:
        a = left_operand(random, batches, m, k, dtype=operand_type)
        b = normal(random, batches, k, n, dtype=operand_type)
    bias = normal(random, n, dtype=out_type)
    residual = normal(random, batches, m, n, dtype=out_type)
    want = product(a, b) + (bias if changes.get("bias") else 0)
    want = activate(want, changes.get("activation", "none"))
    want += residual if changes.get("residual") else 0

    stored_a = stored(a, changes.get("transpose_a", False))
    stored_b = stored(b, changes.get("transpose_b", False))
    c = padded(unwritten(want.shape, out_type))
    programs = tiles(m, TILE) * tiles(n, TILE)
    grid, more = (programs,), {}
    if kernel == "gemm_batched":
        grid = (programs, batches)
        more = {"batch_a": stored_a[0].size, "batch_b": stored_b[0].size, "batch_c": c[0].size}
    elif kernel == "gemm_persistent":
        grid, more = (3,), {"programs": 3}
    run_kernel(
        kernel, grid, UNEVEN_TILES | {"block_k": 32} | changes,
        a=stored_a, b=stored_b, c=c, bias=bias, residual=padded(residual), M=m, N=n, K=k,
        lda=stored_a.shape[2], ldb=stored_b.shape[2], ldc=c.shape[2], **more,
    )  # fmt: skip
    return {"c": compare(unpadded(c), want, tolerance)}


def split_k(
    random: np.random.Generator, *, reduction: str, transpose_a: bool = False
) -> dict[str, Comparison]:
    """Shares that are added in place, or written out and summed by a second kernel."""
    splits = 4  # of five tiles along K: the last share is empty
    a, b = left_operand(random, ROWS, DEPTH), normal(random, DEPTH, COLUMNS)
    bias = normal(random, COLUMNS)
    want = product(a, b)
    apart = reduction == "partial"
    shape = (splits, ROWS, COLUMNS)
    shares = padded(unwritten(shape, np.float32) if apart else np.zeros(shape[1:], np.float32))
    stored_a = stored(a, transpose_a)
    row = shares.shape[-1]
    run_kernel(
        "gemm_split_k", (TILE_COUNT, splits),
        UNEVEN_TILES | {"reduction": reduction, "transpose_a": transpose_a, "split_k": splits},
        a=stored_a, b=b, c=shares, **SIZES,
        lda=stored_a.shape[1], ldb=COLUMNS, ldc=row, partial_stride=ROWS * row,
    )  # fmt: skip
    if not apart:
        return {"c": compare(unpadded(shares), want, FP32_TOLERANCE)}

    c = padded(unwritten((ROWS, COLUMNS)))
    run_kernel(
        "gemm_reduce_partials", (tiles(ROWS, TILE), tiles(COLUMNS, TILE)),
        {"block_m": TILE, "block_n": TILE, "even_mn": False, "split_k": splits,
         "bias": True, "activation": "gelu"},
        partials=shares, c=c, bias=bias, M=ROWS, N=COLUMNS, ldc=row, partial_stride=ROWS * row,
    )  # fmt: skip
    return {
        "shares": compare(unpadded(shares).sum(0), want, FP32_TOLERANCE),
        "c": compare(unpadded(c), activate(want + bias, "gelu"), FP16_TOLERANCE),
    }


def gated(
    random: np.random.Generator, *, activation: str, transpose_b: bool
) -> dict[str, Comparison]:
    a = left_operand(random, ROWS, DEPTH)
    gate, up = normal(random, DEPTH, COLUMNS), normal(random, DEPTH, COLUMNS)
    want = activate(product(a, gate), activation) * product(a, up)
    stored_gate, stored_up = stored(gate, transpose_b), stored(up, transpose_b)
    c = unwritten(want.shape)
    run_kernel(
        "gemm_gated", (TILE_COUNT,),
        UNEVEN_TILES | {"activation": activation, "transpose_b": transpose_b},
        a=a, gate=stored_gate, up=stored_up, c=c, **SIZES,
        lda=DEPTH, ldb=stored_up.shape[1], ldc=COLUMNS,
    )  # fmt: skip
    return {"c": compare(c, want, FP16_TOLERANCE)}


def quantized(
    random: np.random.Generator, *, scale: str, transpose: bool = False
) -> dict[str, Comparison]:
    a, b = integers(random, ROWS, DEPTH), integers(random, DEPTH, COLUMNS)
    scale_a, scale_b = random.random(ROWS, np.float32) / 1000, random.random(COLUMNS, np.float32)
    factors = np.outer(scale_a, scale_b) if scale == "channel" else scale_a[0] * scale_b[0]
    stored_a, stored_b = stored(a, transpose), stored(b, transpose)
    c = unwritten((ROWS, COLUMNS))
    run_kernel(
        "gemm_quantized", (TILE_COUNT,),
        UNEVEN_TILES | {"scale": scale, "transpose_a": transpose, "transpose_b": transpose},
        a=stored_a, b=stored_b, c=c, scale_a=scale_a, scale_b=scale_b, **SIZES,
        lda=stored_a.shape[1], ldb=stored_b.shape[1], ldc=COLUMNS,
    )  # fmt: skip
    return {"c": compare(c, product(a, b) * factors, FP16_TOLERANCE)}


def weight_only(
    random: np.random.Generator, *, weight_bits: int, grouped_scale: bool
) -> dict[str, Comparison]:
    columns, block_n = 48, 32
    a, weights = normal(random, ROWS, DEPTH), integers(random, DEPTH, columns, bits=weight_bits)
    scale = (random.random((tiles(DEPTH, TILE), columns)) + 0.5).astype(np.float16)
    factors = (np.repeat(scale, TILE, axis=0)[:DEPTH] if grouped_scale else scale[0]).astype(float)
    packed = weights
    if weight_bits == 4:
        packed = ((weights[:, 0::2] + 8) | (weights[:, 1::2] + 8) << 4).astype(np.int8)
    c = unwritten((ROWS, columns))
    run_kernel(
        "gemm_weight_only", (tiles(ROWS, TILE) * tiles(columns, block_n),),
        UNEVEN_TILES
        | {"block_n": block_n, "weight_bits": weight_bits, "grouped_scale": grouped_scale},
        a=a, b=packed, c=c, scale=scale, M=ROWS, N=columns, K=DEPTH,
        lda=DEPTH, ldb=packed.shape[1], ldc=columns, scale_stride=columns,
    )  # fmt: skip
    return {"c": compare(c, product(a, weights * factors), FP16_TOLERANCE)}


def experts(random: np.random.Generator, *, weighted: bool) -> dict[str, Comparison]:
    expert_count, top_k = 3, 2
    pair_count = ROWS * top_k
    a, b = normal(random, ROWS, DEPTH), normal(random, expert_count, DEPTH, COLUMNS)
    weights = random.random(pair_count, np.float32)
    expert_of_pair = random.integers(0, expert_count, pair_count)
    pairs: list[int] = []
    expert_of_tile: list[int] = []
    for expert in range(expert_count):
        chosen = np.flatnonzero(expert_of_pair == expert).tolist()
        pairs += chosen + [pair_count] * (-len(chosen) % TILE)
        expert_of_tile += [expert] * tiles(len(chosen), TILE)
    want = product(np.repeat(a, top_k, axis=0)[:, None], b[expert_of_pair])[:, 0]
    c = unwritten(want.shape)
    run_kernel(
        "gemm_experts", (len(expert_of_tile), tiles(COLUMNS, TILE)),
        UNEVEN_TILES | {"weighted": weighted},
        a=a, b=b, c=c, weights=weights, tokens=np.array(pairs, np.int32),
        experts=np.array(expert_of_tile, np.int32), token_count=pair_count, N=COLUMNS, K=DEPTH,
        lda=DEPTH, ldb=COLUMNS, ldc=COLUMNS, expert_stride=DEPTH * COLUMNS, top_k=top_k,
    )  # fmt: skip
    return {"c": compare(c, want * weights[:, None] if weighted else want, FP16_TOLERANCE)}


CASES: dict[str, Case] = {}
for kernel in ("gemm", "gemm_batched", "gemm_persistent"):
    case = partial(plain, kernel=kernel)
    CASES |= {
        f"{kernel}-as-stored": case,
        f"{kernel}-even": partial(case, sizes=(32, 32, 64), even_mn=True, even_k=True),
        f"{kernel}-transposed-a-relu-bias": partial(
            case, transpose_a=True, activation="relu", bias=True, group_m=1
        ),
        f"{kernel}-transposed-b-gelu-bias-residual": partial(
            case, transpose_b=True, activation="gelu", bias=True, residual=True, group_m=2
        ),
        f"{kernel}-transposed-both-silu-residual": partial(
            case, transpose_a=True, transpose_b=True, activation="silu", residual=True
        ),
    }
CASES |= {
    "gemm-float32": partial(
        plain, kernel="gemm", types=(np.float32, np.float32), tolerance=FP32_TOLERANCE
    ),
    "gemm-integers": partial(plain, kernel="gemm", types=(np.int8, np.int32), tolerance=EXACT),
    "gemm_split_k-atomic": partial(split_k, reduction="atomic"),
    "gemm_split_k-atomic-transposed-a": partial(split_k, reduction="atomic", transpose_a=True),
    "gemm_split_k-partial": partial(split_k, reduction="partial"),
    "gemm_gated-silu": partial(gated, activation="silu", transpose_b=False),
    "gemm_gated-gelu-transposed-b": partial(gated, activation="gelu", transpose_b=True),
    "gemm_quantized-by-channel": partial(quantized, scale="channel"),
    "gemm_quantized-by-tensor": partial(quantized, scale="tensor"),
    "gemm_quantized-transposed-both": partial(quantized, scale="channel", transpose=True),
    "gemm_weight_only-8-bit": partial(weight_only, weight_bits=8, grouped_scale=False),
    "gemm_weight_only-8-bit-grouped": partial(weight_only, weight_bits=8, grouped_scale=True),
    "gemm_weight_only-4-bit": partial(weight_only, weight_bits=4, grouped_scale=False),
    "gemm_weight_only-4-bit-grouped": partial(weight_only, weight_bits=4, grouped_scale=True),
    "gemm_experts-weighted": partial(experts, weighted=True),
    "gemm_experts-unweighted": partial(experts, weighted=False),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run_cases(MODULE)


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].problems() == []


def test_every_kernel_is_run(outcomes: dict[str, Outcome]) -> None:
    run = {kernel for outcome in outcomes.values() for kernel in outcome.kernels}
    assert run == {name for name, kernel in KERNELS.items() if kernel.family == "gemm"}


if __name__ == "__main__":
    print_outcomes(CASES)
