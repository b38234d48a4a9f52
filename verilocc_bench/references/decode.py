"""Attention for one new token: shares of the cached keys, and their combination."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.attention import SOFTCAP
from verilocc_bench.references.formulas import HIDDEN, Scoring, score
from verilocc_bench.references.numbers import Array
from verilocc_bench.references.reference_launch import Launch
from verilocc_bench.references.reference_problem import KernelProblem, pipeline_blocks, tile_count


def mha_decode(problem: KernelProblem) -> Launch:
    """One share of one key head's keys a program; what lies beyond a sequence is a filler.

    With one tile there is one program, for the first share of one sequence; with more
    there are two sequences, and shares that are cut short and empty.
    """
    group, splits, dims = (problem.integer(n) for n in ("query_group", "splits", "head_dim"))
    block_n, element = problem.integer("block_n"), problem.element()
    batches = key_heads = min(problem.tiles, 2)
    launched = 1 if problem.tiles == 1 else splits
    per_split = pipeline_blocks(problem) * block_n
    lengths = (
        np.array([per_split - 3])
        if launched == 1
        else np.array([per_split * (splits - 1) - block_n - 3, per_split + 5])
    )
    window = block_n + 9
    scale = float(np.float32(dims**-0.5))
    q = problem.operand(batches, key_heads * group, dims, element=element)
    page_size = problem.integer("page_size")
    capacity = tile_count(int(lengths.max()), 64) * 64 + 64
    k, v = (problem.operand(batches, capacity, key_heads, dims, element=element) for _ in range(2))
    outs, maxima, sums = _shares(
        problem, (q, k, v), lengths, scale=scale, window=window, launched=launched
    )
    for numbers in (k, v):
        for sequence, length in enumerate(lengths):
            numbers[sequence, length:] = np.nan
    if page_size:
        table = problem.integers(0, 2**30, batches * capacity // page_size).argsort()
        order = np.argsort(table)
        k, v = (x.reshape(-1, page_size, key_heads, dims)[order] for x in (k, v))
        problem.put("page_table", table.reshape(batches, -1), "i32")
    problem.set(
        scale=scale, softcap=SOFTCAP, window=window, key_heads=key_heads,
        table_row=capacity // page_size if page_size else 0, keys_per_split=per_split,
    )  # fmt: skip
    stored = problem.put("k_cache", k, element, apart="cache_head")
    problem.put("v_cache", v, element, apart="cache_head")
    problem.strides("cache", stored, "batch row head")
    problem.strides("q", problem.put("q", q, element, apart="q_head"), "batch head")
    problem.put("lengths", lengths, "i32")
    written = np.zeros((batches, key_heads * group, splits), bool)
    written[:, :, :launched] = True
    problem.expect(
        "partial_out", outs, "fp32",
        written=np.broadcast_to(written[..., None], outs.shape), tolerance=problem.tolerance,
    )  # fmt: skip
    problem.expect("partial_max", maxima, "fp32", written=written, tolerance=2e-5)
    problem.expect("partial_sum", sums, "fp32", written=written, tolerance=2e-5)
    return problem.launch(batches * key_heads, launched)


def _shares(
    problem: KernelProblem,
    operands: tuple[Array, Array, Array],
    lengths: Array,
    *,
    scale: float,
    window: int,
    launched: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Of each share: the weighted values, not divided; the largest score; the sum."""
    q, k, v = operands
    splits, block_n = problem.integer("splits"), problem.integer("block_n")
    batches, heads, dims = q.shape
    outs = np.zeros((batches, heads, splits, problem.integer("block_d")))
    maxima, sums = np.full((batches, heads, splits), HIDDEN), np.zeros((batches, heads, splits))
    scoring = Scoring(scale, softcap=SOFTCAP if problem.on("softcap") else None)
    per_split = pipeline_blocks(problem) * block_n
    for sequence, length in enumerate(lengths):
        oldest = max(0, length - window) if problem.on("window") else 0
        for split in range(launched):
            begin, end = max(split * per_split, oldest), min((split + 1) * per_split, length)
            if begin >= end:
                continue
            keys, values = (x[sequence, begin:end].swapaxes(0, 1) for x in (k, v))
            scores = score(q[sequence][:, None], keys, scoring)
            total = 1 / scores.row_scale
            repeated = np.repeat(values, heads // len(values), axis=0)
            outs[sequence, :, split, :dims] = ((scores.weights @ repeated) * total[..., None])[:, 0]
            maxima[sequence, :, split] = scores.row_max[:, 0]
            sums[sequence, :, split] = total[:, 0]
    return outs, maxima, sums


def mha_decode_combine(problem: KernelProblem) -> Launch:
    """The shares of each row joined; one share is empty."""
    rows, splits, dims = (
        problem.tiles * 2 - 1,
        problem.integer("splits"),
        problem.integer("head_dim"),
    )
    element = problem.element()
    shares = problem.operand(rows, splits, problem.integer("block_d"), element="fp32")
    maxima = problem.operand(rows, splits, element="fp32")
    sums = np.abs(problem.operand(rows, splits, element="fp32")) + 1
    sums = sums.astype(np.float32).astype(np.float64)
    shares[:, -1], maxima[:, -1], sums[:, -1] = 0.0, HIDDEN, 0.0
    maxima = maxima.astype(np.float32).astype(np.float64)
    weights = np.exp2(maxima - maxima.max(-1, keepdims=True))
    wanted = (shares * weights[..., None]).sum(1) / (weights * sums).sum(1)[:, None]
    problem.put("partial_out", shares, "fp32")
    problem.put("partial_max", maxima, "fp32")
    problem.put("partial_sum", sums, "fp32")
    out = problem.expect("out", wanted[:, :dims], element, apart="out_row")
    problem.set(out_row=out.shape[-1])
    return problem.launch(rows)
