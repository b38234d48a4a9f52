"""Matrix products with something fused in: gates, scales, weights of few bits, experts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.formulas import activate
from verilocc_bench.references.gemm import (
    matrix_sizes,
    put_operand,
    sampled_elements,
    sampled_tiles,
)
from verilocc_bench.references.reference_launch import Launch
from verilocc_bench.references.reference_problem import KernelProblem, pipeline_blocks, tile_count


def _launch(problem: KernelProblem, wanted: NDArray[np.float64]) -> Launch:
    """The launch that leaves these numbers in C."""
    m, n = wanted.shape
    tiles, sample = sampled_tiles(problem, m, n)
    written = sampled_elements(problem, m, n, sample)
    c = problem.expect("c", wanted, problem.element("out_dtype"), apart="ldc", written=written)
    problem.set(ldc=c.shape[-1])
    return problem.launch(tiles, columns=sample)


def gemm_gated(problem: KernelProblem) -> Launch:
    """C = activation(A gate) * (A up)."""
    m, n, k = matrix_sizes(problem)
    element = problem.element()
    a = problem.operand(m, k, element=element, scale=k**-0.5)
    gate, up = (problem.operand(k, n, element=element) for _ in range(2))
    put_operand(problem, "a", a, element, transposed=False, leading="lda")
    transposed = problem.on("transpose_b")
    put_operand(problem, "gate", gate, element, transposed=transposed, leading="ldb")
    put_operand(problem, "up", up, element, transposed=transposed, leading="ldb")
    wanted = activate(a @ gate, problem.parameters["activation"]) * (a @ up)
    return _launch(problem, wanted)


def gemm_quantized(problem: KernelProblem) -> Launch:
    """8-bit operands; scaled by row and column, or by one factor each."""
    m, n, k = matrix_sizes(problem)
    element = problem.element()
    a = problem.operand(m, k, element=element)
    b = problem.operand(k, n, element=element)
    put_operand(problem, "a", a, element, transposed=problem.on("transpose_a"), leading="lda")
    put_operand(problem, "b", b, element, transposed=problem.on("transpose_b"), leading="ldb")
    magnitude = 1e-3 if element == "int8" else 0.1
    by_channel = problem.parameters["scale"] == "channel"
    factors = []
    for name, count in (("scale_a", m), ("scale_b", n)):
        scale = ((problem.normal(count if by_channel else 1) * 0.2 + 1) * magnitude).astype(
            np.float32
        )
        problem.put(name, scale, "fp32")
        factors.append(scale.astype(np.float64))
    wanted = a @ b * factors[0][:, None] * factors[1][None, :]
    return _launch(problem, wanted)


def gemm_weight_only(problem: KernelProblem) -> Launch:
    """Weights of 8 bits, or of 4 with two to a byte; scales by column, or also by group of K."""
    m, n, k = matrix_sizes(problem)
    n -= n % 2
    problem.set(N=n)
    element, bits = problem.element(), problem.integer("weight_bits")
    block_k = problem.integer("block_k")
    a = problem.operand(m, k, element=element, scale=k**-0.5)
    limit = 1 << (bits - 1)
    weights = problem.integers(-limit, limit, k, n)
    # Scaled weights are of order 1, whatever their bits.
    groups = tile_count(k, block_k) if problem.on("grouped_scale") else 1
    scale = problem.operand(groups, n, element=element, scale=0.2) + 1.0
    scale = scale / limit
    put_operand(problem, "a", a, element, transposed=False, leading="lda")
    if bits == 4:
        packed = (weights[:, 0::2] + 8) | (weights[:, 1::2] + 8) << 4
        packed = packed.astype(np.uint8).view(np.int8)
    else:
        packed = weights
    stored = problem.put("b", packed, "int8", apart="ldb")
    stored_scale = problem.put("scale", scale, element, apart="scale_stride")
    scale = problem.numbers("scale")[:groups, :n]
    if problem.on("grouped_scale"):
        scaled = weights * np.repeat(scale, block_k, axis=0)[:k]
    else:
        scaled = weights * scale[0]
    problem.set(ldb=stored.shape[-1], scale_stride=stored_scale.shape[-1])
    return _launch(problem, a @ scaled)


def gemm_experts(problem: KernelProblem) -> Launch:
    """Rows of A gathered by expert; each tile of rows has one expert's matrix.

    With one tile there is one expert. Tiles are filled up with numbers beyond the pairs.
    """
    block_m, block_n = problem.integer("block_m"), problem.integer("block_n")
    element, top_k = problem.element(), 2
    n = problem.length(problem.tiles, block_n, even=problem.on("even_mn"), less=2)
    k = problem.length(
        pipeline_blocks(problem),
        problem.integer("block_k"),
        even=problem.on("even_k"),
    )
    problem.set(N=n, K=k)
    experts = problem.tiles
    rows = max(2, experts * block_m * 2 // 3 // top_k)
    pair_count = rows * top_k
    a = problem.operand(rows, k, element=element, scale=k**-0.5)
    b = problem.operand(experts, k, n, element=element)
    expert_of_pair = problem.integers(0, experts, pair_count)
    pairs: list[int] = []
    expert_of_tile: list[int] = []
    for expert in range(experts):
        chosen = np.flatnonzero(expert_of_pair == expert).tolist()
        filled = chosen + [pair_count + 1] * (-len(chosen) % block_m)
        pairs += filled
        expert_of_tile += [expert] * (len(filled) // block_m)
    weights = problem.operand(pair_count, element="fp32")
    put_operand(problem, "a", a, element, transposed=False, leading="lda")
    stored_b = put_operand(problem, "b", b, element, transposed=False, leading="ldb")
    problem.put("tokens", np.array(pairs), "i32")
    problem.put("experts", np.array(expert_of_tile), "i32")
    problem.put("weights", weights, "fp32")
    wanted = (np.repeat(a, top_k, axis=0)[:, None] @ b[expert_of_pair])[:, 0]
    if problem.on("weighted"):
        wanted = wanted * weights[:, None]
    c = problem.expect("c", wanted, problem.element("out_dtype"), apart="ldc")
    problem.set(
        token_count=pair_count, ldc=c.shape[-1], expert_stride=stored_b[0].size, top_k=top_k
    )
    return problem.launch(len(expert_of_tile), tile_count(n, block_n))
