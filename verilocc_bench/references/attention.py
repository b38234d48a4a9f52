"""Attention: forward, and the three kernels of its gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.formulas import Scoring, attention, attention_gradients, score
from verilocc_bench.references.numbers import Array
from verilocc_bench.references.reference_launch import Launch
from verilocc_bench.references.reference_problem import (
    TOLERANCES,
    KernelProblem,
    pipeline_blocks,
    tile_count,
)

SOFTCAP = 5.0
# Statistics are sums of exponentials in 32 bits, by the hardware's instruction.
_STATISTICS_TOLERANCE = 2e-5


def _scoring(problem: KernelProblem, heads: int) -> Scoring:
    # Shorter than a tile of keys, so that both of its ends cross tiles.
    window = max(5, problem.integer("block_n") * 3 // 4 + 5)
    scale = float(np.float32(problem.integer("head_dim") ** -0.5))
    problem.set(scale=scale, softcap=SOFTCAP, window=window)
    slopes = np.float32(2.0) ** -(np.arange(heads, dtype=np.float32) + 3)
    problem.put("slopes", slopes, "fp32")
    return Scoring(
        scale,
        softcap=SOFTCAP if problem.on("softcap") else None,
        slopes=slopes if problem.on("alibi") else None,
        causal=problem.on("causal"),
        window=window if problem.on("window") else None,
    )


def mha_forward(problem: KernelProblem) -> Launch:
    """A tile of queries of one head a program.

    With one tile there is one head of one sequence; with more there are two sequences (one
    where heads share keys), and heads of two key heads.
    """
    group = problem.integer("query_group")
    if problem.tiles == 1:
        batches, heads = 1, 1
    else:
        batches, heads = (2, 2) if group == 1 else (1, group + 1)
    problem.set(heads=heads)
    scoring = _scoring(problem, heads)
    if problem.on("variable_length"):
        return _forward_variable_length(problem, scoring, heads)
    even, element = problem.on("even"), problem.element()
    queries = problem.length(problem.tiles, problem.integer("block_m"), even=even)
    keys = problem.length(pipeline_blocks(problem), problem.integer("block_n"), even=even, less=2)
    dims = problem.integer("head_dim")
    q = problem.operand(batches, heads, queries, dims, element=element)
    k, v = (
        problem.operand(batches, tile_count(heads, group), keys, dims, element=element)
        for _ in range(2)
    )
    if problem.on("matrix_bias"):
        bias = problem.operand(heads, queries, keys, element=element)
        problem.strides("bias", problem.put("bias", bias, element, apart="bias_row"), "head row")
        scoring = Scoring(
            scoring.scale, scoring.softcap, scoring.slopes, bias, scoring.causal, scoring.window
        )
    else:
        problem.set(bias_head=0, bias_row=0)
    full = (batches, heads, queries)
    keys_of = np.arange(heads) // group  # the last group may be incomplete
    by_head = k[:, keys_of], v[:, keys_of]
    wanted = attention(q, *by_head, scoring)
    scores = score(q, by_head[0], scoring)
    problem.set(seq_q=queries, seq_k=keys)
    for name, numbers in (("q", q), ("k", k), ("v", v)):
        stored = problem.put(name, numbers, element, apart=f"{name}_row")
        problem.strides(name, stored, "batch head row")
    out = problem.expect("out", wanted, element, apart="out_row")
    problem.strides("out", out, "batch head row")
    _expect_statistics(problem, scores.row_max, scores.row_scale, full)
    return problem.launch(tile_count(queries, problem.integer("block_m")), batches * heads)


def _expect_statistics(
    problem: KernelProblem, row_max: Array, row_scale: Array, shape: tuple[int, ...]
) -> None:
    """`statistics_head` is the distance of two heads' rows."""
    rows = shape[-1]
    longer = problem.row_length(rows, "statistics_head")
    frame = (*shape[:-1], longer)
    inside = (..., slice(rows))
    for name, numbers in (("row_max_out", row_max), ("row_scale_out", row_scale)):
        values, written = np.zeros(frame), np.zeros(frame, bool)
        values[inside], written[inside] = numbers, True
        problem.expect(name, values, "fp32", written=written, tolerance=_STATISTICS_TOLERANCE)
    problem.set(statistics_head=longer)


def _forward_variable_length(problem: KernelProblem, scoring: Scoring, heads: int) -> Launch:
    """Sequences one after the other, (token, head, dimension), with a few tokens before.

    With one tile there is one sequence; with more there are three, one without queries.
    """
    group, dims = problem.integer("query_group"), problem.integer("head_dim")
    block_m, element = problem.integer("block_m"), problem.element()
    longest_q = problem.tiles * block_m - 5
    longest_k = pipeline_blocks(problem) * problem.integer("block_n") - 7
    shorter = (max(1, longest_q - block_m // 2 - 3), longest_k // 2)
    lengths = [(longest_q, longest_k), (0, 5), shorter][: 1 if problem.tiles == 1 else 3]
    q_ends = np.cumsum([2, *(q for q, _ in lengths)])
    k_ends = np.cumsum([3, *(k for _, k in lengths)])
    q = problem.operand(q_ends[-1], heads, dims, element=element)
    key_heads = tile_count(heads, group)
    k, v = (problem.operand(k_ends[-1], key_heads, dims, element=element) for _ in range(2))
    wanted, written = np.zeros(q.shape), np.zeros(q.shape, bool)
    row_max, row_scale = np.zeros((heads, len(q))), np.zeros((heads, len(q)))
    keys_of = np.arange(heads) // group
    for sequence in range(len(lengths)):
        queries = slice(q_ends[sequence], q_ends[sequence + 1])
        keys = slice(k_ends[sequence], k_ends[sequence + 1])
        own_q = q[queries].swapaxes(0, 1)
        own_k, own_v = (x[keys].swapaxes(0, 1)[keys_of] for x in (k, v))
        wanted[queries] = attention(own_q, own_k, own_v, scoring).swapaxes(0, 1)
        scores = score(own_q, own_k, scoring)
        row_max[:, queries], row_scale[:, queries] = scores.row_max, scores.row_scale
        written[queries] = True
    for name, numbers in (("q", q), ("k", k), ("v", v)):
        stored = problem.put(name, numbers, element, apart=f"{name}_head")
        problem.strides(name, stored, "row head")
    out = problem.expect("out", wanted, element, apart="out_head", written=written)
    problem.strides("out", out, "row head")
    mask = np.broadcast_to(written[:, 0, 0], row_max.shape)
    for name, values in (("row_max_out", row_max), ("row_scale_out", row_scale)):
        problem.expect(
            name, values, "fp32",
            apart="statistics_head", written=mask, tolerance=_STATISTICS_TOLERANCE,
        )  # fmt: skip
    statistics_head = problem.row_length(len(q), "statistics_head")
    problem.put("cumulative_q", q_ends, "i32")
    problem.put("cumulative_k", k_ends, "i32")
    unused = ("q_batch", "k_batch", "v_batch", "out_batch", "bias_head", "bias_row")
    problem.set(seq_q=0, seq_k=0, statistics_head=statistics_head, **dict.fromkeys(unused, 0))
    return problem.launch(tile_count(longest_q, block_m), len(lengths) * heads)


def mha_backward_preprocess(problem: KernelProblem) -> Launch:
    """The row sums of the output times its gradient."""
    heads, element = problem.tiles, problem.element()
    block_m = problem.integer("block_m")
    queries = problem.length(problem.tiles, block_m, even=problem.on("even"))
    problem.set(seq_q=queries)
    shape = (heads, queries, problem.integer("head_dim"))
    out, grad_out = (problem.operand(*shape, element=element) for _ in range(2))
    stored = problem.put("out", out, element, apart="out_row")
    problem.put("grad_out", grad_out, element, apart="out_row")
    problem.strides("out", stored, "head row")
    delta = problem.expect(
        "delta",
        (out * grad_out).sum(-1),
        "fp32",
        apart="statistics_head",
        tolerance=TOLERANCES["fp32"],
    )
    problem.set(statistics_head=delta.shape[-1])
    return problem.launch(tile_count(queries, block_m), heads)


def mha_backward_dkdv(problem: KernelProblem) -> Launch:
    """Gradients of keys and values, one tile of keys a program."""
    even = problem.on("even")
    keys = problem.length(problem.tiles, problem.integer("block_n"), even=even, less=2)
    queries = problem.length(pipeline_blocks(problem), problem.integer("block_m"), even=even)
    gradients = _backward(problem, queries, keys, key_heads=min(problem.tiles, 2))
    tolerance = 2 * problem.tolerance
    for name, numbers in (("grad_k", gradients[1]), ("grad_v", gradients[2])):
        problem.expect(name, numbers, problem.element(), apart="k_row", tolerance=tolerance)
    return problem.launch(tile_count(keys, problem.integer("block_n")), min(problem.tiles, 2))


def mha_backward_dq(problem: KernelProblem) -> Launch:
    """The gradient of queries, one tile of queries of one head a program."""
    even = problem.on("even")
    queries = problem.length(problem.tiles, problem.integer("block_m"), even=even)
    keys = problem.length(pipeline_blocks(problem), problem.integer("block_n"), even=even, less=2)
    key_heads = min(problem.tiles, 2)
    gradients = _backward(problem, queries, keys, key_heads=key_heads)
    heads = 1 if problem.tiles == 1 else key_heads * problem.integer("query_group")
    written = np.zeros(gradients[0].shape, bool)
    written[:heads] = True
    problem.expect(
        "grad_q", gradients[0], problem.element(),
        apart="q_row", written=written, tolerance=2 * problem.tolerance,
    )  # fmt: skip
    return problem.launch(tile_count(queries, problem.integer("block_m")), heads)


def _backward(
    problem: KernelProblem, queries: int, keys: int, *, key_heads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The inputs of the backward kernels and the gradients; (head, token, dimension)."""
    problem.set(seq_q=queries, seq_k=keys)
    element, dims = problem.element(), problem.integer("head_dim")
    heads = key_heads * problem.integer("query_group")
    scoring = _scoring(problem, heads)
    q, grad_out = (problem.operand(heads, queries, dims, element=element) for _ in range(2))
    k, v = (problem.operand(key_heads, keys, dims, element=element) for _ in range(2))
    scores = score(q, k, scoring)
    out = attention(q, k, v, scoring)
    problem.strides("q", problem.put("q", q, element, apart="q_row"), "head row")
    problem.put("grad_out", grad_out, element, apart="q_row")
    problem.strides("k", problem.put("k", k, element, apart="k_row"), "head row")
    problem.put("v", v, element, apart="k_row")
    for name, numbers in (
        ("row_max_in", scores.row_max),
        ("row_scale_in", scores.row_scale),
        ("delta_in", (out * grad_out).sum(-1)),
    ):
        stored = problem.put(name, numbers, "fp32", apart="statistics_head")
    problem.set(statistics_head=stored.shape[-1])
    return attention_gradients(q, k, v, grad_out, scoring)
