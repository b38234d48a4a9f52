"""Matrix products: plain, batched, persistent, in shares along K, and their sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.formulas import activate
from verilocc_bench.references.numbers import Array, decode, encode
from verilocc_bench.references.reference_launch import Launch
from verilocc_bench.references.reference_problem import (
    TOLERANCES,
    KernelProblem,
    pipeline_blocks,
    tile_count,
)

# Products of 32-bit floats made of three products of bf16 numbers keep about 16 bits.
_PRECISION_TOLERANCES = {"bf16x3": 1e-4, "tf32": 1e-3, "tf32x3": 1e-5}


def gemm(problem: KernelProblem) -> Launch:
    """One tile a program."""
    tiles, sample = _plain(problem, batches=None)
    return problem.launch(tiles, columns=sample)


def gemm_batched(problem: KernelProblem) -> Launch:
    """The batch in the grid's second dimension."""
    batches = min(problem.tiles, 2)
    tiles, sample = _plain(problem, batches=batches)
    return problem.launch(tiles, batches, columns=sample)


def gemm_persistent(problem: KernelProblem) -> Launch:
    """Fewer programs than tiles: the first one computes the last tile, too."""
    tiles, sample = _plain(problem, batches=None)
    programs = max(1, tiles - 1)
    problem.set(programs=programs)
    columns = None if sample is None else sorted({tile % programs for tile in sample})
    return problem.launch(programs, columns=columns)


def matrix_sizes(problem: KernelProblem, depth_blocks: int | None = None) -> tuple[int, int, int]:
    """M, N and K, which are set; K fills the software pipeline and goes once around."""
    even, rows, columns = problem.on("even_mn"), problem.tiles, problem.tiles
    if problem.sampled:
        rows, columns = rows + 2 * problem.integer("group_m"), columns + 1
    m = problem.length(rows, problem.integer("block_m"), even=even)
    n = problem.length(columns, problem.integer("block_n"), even=even, less=2)
    blocks = depth_blocks or pipeline_blocks(problem)
    k = problem.length(blocks, problem.integer("block_k"), even=problem.on("even_k"))
    problem.set(M=m, N=n, K=k)
    return m, n, k


def sampled_tiles(problem: KernelProblem, m: int, n: int) -> tuple[int, tuple[int, ...] | None]:
    """How many tiles C has, and the numbers of those that are computed, None for all.

    A sample is the first one and every third one from the last on, in three bands of rows: a
    band's number that is 0 or 1 hides wrong products with it.
    """
    tiles = tile_count(m, problem.integer("block_m")) * tile_count(n, problem.integer("block_n"))
    if not problem.sampled:
        return tiles, None
    return tiles, (0, *range(tiles - 1, 0, -3))[: problem.tiles**2]


def sampled_elements(
    problem: KernelProblem, m: int, n: int, sample: tuple[int, ...] | None
) -> NDArray[np.bool_] | None:
    """The elements of C in the tiles with these numbers, None for all.

    Numbers go through bands of `group_m` rows of tiles, column by column.
    """
    if sample is None:
        return None
    block_m, block_n, height = (problem.integer(p) for p in ("block_m", "block_n", "group_m"))
    rows, columns = tile_count(m, block_m), tile_count(n, block_n)
    inside = np.zeros((m, n), bool)
    for number in sample:
        band, place = divmod(number, height * columns)
        column, row = divmod(place, min(height, rows - band * height))
        top, left = (band * height + row) * block_m, column * block_n
        inside[top : top + block_m, left : left + block_n] = True
    return inside


def put_operand(
    problem: KernelProblem,
    name: str,
    matrix: Array,
    element: str,
    *,
    transposed: bool,
    leading: str,
) -> Array:
    """Stores an operand as the kernel finds it, and sets its leading dimension."""
    stored_order = matrix.swapaxes(-1, -2) if transposed else matrix
    stored = problem.put(name, stored_order, element, apart=leading)
    problem.set(**{leading: stored.shape[-1]})
    return stored


def _operands(
    problem: KernelProblem, m: int, n: int, k: int, *batch: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A and B, stored; A is so small that products are of order 1, where gelu bends."""
    element = problem.element()
    a = problem.operand(*batch, m, k, element=element, scale=k**-0.5)
    b = problem.operand(*batch, k, n, element=element)
    stored_a = put_operand(
        problem, "a", a, element, transposed=problem.on("transpose_a"), leading="lda"
    )
    stored_b = put_operand(
        problem, "b", b, element, transposed=problem.on("transpose_b"), leading="ldb"
    )
    if batch:
        problem.set(batch_a=stored_a[0].size, batch_b=stored_b[0].size)
    return a, b


def _plain(problem: KernelProblem, batches: int | None) -> tuple[int, tuple[int, ...] | None]:
    """C = activation(A B + bias) + residual; what `sampled_tiles` says."""
    m, n, k = matrix_sizes(problem)
    batch = () if batches is None else (batches,)
    out = problem.element("out_dtype")
    a, b = _operands(problem, m, n, k, *batch)
    bias = problem.operand(n, element=out) if out != "int32" else problem.integers(-99, 99, n)
    problem.put("bias", bias, out)
    wanted = activate(
        a @ b + (bias if problem.on("bias") else 0.0), problem.parameters["activation"]
    )
    residual = np.asarray(
        problem.operand(*batch, m, n, element=out)
        if out != "int32"
        else problem.integers(-99, 99, *batch, m, n)
    )
    problem.put("residual", residual, out, apart="ldc")
    if problem.on("residual"):
        wanted = np.asarray(wanted + residual, np.float64)
    tiles, sample = sampled_tiles(problem, m, n)
    written = sampled_elements(problem, m, n, sample)
    wider = _PRECISION_TOLERANCES.get(str(problem.parameters.get("precision")), 0.0)
    tolerance = max(problem.tolerance, wider)
    c = problem.expect("c", wanted, out, apart="ldc", tolerance=tolerance, written=written)
    problem.set(ldc=c.shape[-1])
    if batch:
        problem.set(batch_c=c[0].size)
    return tiles, sample


def gemm_split_k(problem: KernelProblem) -> Launch:
    """Shares of K, added into C or each in a matrix of its own.

    One share is cut short, and the last is empty where there are enough of them.
    """
    splits = problem.integer("split_k")
    block_k = problem.integer("block_k")
    per_share = pipeline_blocks(problem)
    has_empty = splits > per_share + 1
    blocks = per_share * (splits - has_empty) - 1
    m, n, k = matrix_sizes(problem, blocks)
    out = problem.element("out_dtype")
    a, b = _operands(problem, m, n, k)
    depth = tile_count(tile_count(k, block_k), splits) * block_k
    shares = np.stack(
        [
            a[:, share * depth : (share + 1) * depth] @ b[share * depth : (share + 1) * depth]
            for share in range(splits)
        ]
    )
    tiles, sample = sampled_tiles(problem, m, n)
    written = sampled_elements(problem, m, n, sample)
    if problem.parameters["reduction"] == "atomic":
        before = problem.normal(m, n) if out != "int32" else problem.integers(-99, 99, m, n)
        before = decode(encode(before, out), out)
        # Each share is rounded to C's type, and C after each addition.
        tolerance = max(TOLERANCES[out] * 2, problem.tolerance)
        c = problem.expect(
            "c", before + shares.sum(0), out,
            apart="ldc", initial=before, tolerance=tolerance, written=written,
        )  # fmt: skip
        problem.set(partial_stride=c.size)
    else:
        c = problem.expect("c", shares, out, apart="ldc", written=written)
        problem.set(partial_stride=c[0].size)
    problem.set(ldc=c.shape[-1])
    return problem.launch(tiles, splits, columns=sample)


def gemm_reduce_partials(problem: KernelProblem) -> Launch:
    """The sum of the shares' matrices, with an epilogue; C's rows are as far apart as theirs."""
    even = problem.on("even_mn")
    block_m, block_n = problem.integer("block_m"), problem.integer("block_n")
    m = problem.length(problem.tiles, block_m, even=even)
    n = problem.length(problem.tiles, block_n, even=even, less=2)
    problem.set(M=m, N=n)
    out = problem.element("out_dtype")
    shares = problem.operand(problem.integer("split_k"), m, n, element="fp32", scale=0.5)
    stored = problem.put("partials", shares, "fp32", apart="ldc")
    bias = problem.operand(n, element=out)
    problem.put("bias", bias, out)
    total = shares.sum(0) + (bias if problem.on("bias") else 0.0)
    problem.expect("c", activate(total, problem.parameters["activation"]), out, apart="ldc")
    problem.set(ldc=stored.shape[-1], partial_stride=stored[0].size)
    return problem.launch(tile_count(m, block_m), tile_count(n, block_n))
