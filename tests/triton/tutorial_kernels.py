"""A script with kernels of our own, of the kinds that Triton's tutorials show, in small tiles.

Softmax by rows, a matrix product in two tuned configurations, layer normalization backward
with locks, and attention with and without a causal mask; for some targets not all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(out, x, stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    for row in tl.range(first, rows, step, num_stages=STAGES):
        value = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(out + row * stride + at, power / tl.sum(power, axis=0), mask=at < columns)


@triton.autotune(
    configs=[
        triton.Config({"M_TILE": 16, "N_TILE": 16, "K_TILE": 16}, num_warps=1),
        triton.Config({"M_TILE": 32, "N_TILE": 16, "K_TILE": 16}, num_warps=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matrix_product(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    column = tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    depth = tl.arange(0, K_TILE)
    total = tl.zeros((M_TILE, N_TILE), dtype=tl.float32)
    for start in range(0, K, K_TILE):
        inside = start + depth < K
        left = tl.load(
            a + (row % M)[:, None] * stride_a + (start + depth)[None, :], inside[None, :], 0.0
        )
        right = tl.load(
            b + (start + depth)[:, None] * stride_b + (column % N)[None, :], inside[:, None], 0.0
        )
        total = tl.dot(left, right, total)
    total = tl.where(total > 0, total, 0.01 * total)
    inside = (row < M)[:, None] & (column < N)[None, :]
    tl.store(c + row[:, None] * stride_c + column[None, :], total.to(tl.float16), inside)


@triton.jit
def layer_norm_backward(
    dx, dy, dw, x, weight, means, scales, locks, stride, N, BLOCK: tl.constexpr,
    GROUPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < N
    value = tl.load(x + row * stride + at, inside, 0.0)
    slope = tl.load(dy + row * stride + at, inside, 0.0)
    scale = tl.load(scales + row)
    normal = tl.where(inside, (value - tl.load(means + row)) * scale, 0.0)
    weighted = tl.where(inside, slope * tl.load(weight + at, inside, 0.0), 0.0)
    along = tl.sum(normal * weighted, axis=0) / N
    tl.store(
        dx + row * stride + at,
        (weighted - (normal * along + tl.sum(weighted, axis=0) / N)) * scale,
        inside,
    )
    lock = locks + row % GROUPS
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    place = dw + (row % GROUPS) * N + at
    tl.store(place, tl.load(place, inside, 0.0) + slope * normal, inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def attention(
    q, k, v, out, logs, stride, N, scale, M_TILE: tl.constexpr, N_TILE: tl.constexpr,
    D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    base = tl.program_id(1) * N * stride
    lane = tl.arange(0, D)
    query = tl.load(q + base + row[:, None] * stride + lane[None, :], (row < N)[:, None], 0.0)
    highest = tl.full((M_TILE,), -float("inf"), tl.float32)
    total = tl.zeros((M_TILE,), tl.float32)
    result = tl.zeros((M_TILE, D), tl.float32)
    end = (tl.program_id(0) + 1) * M_TILE if CAUSAL else N
    for start in range(0, end, N_TILE):
        column = start + tl.arange(0, N_TILE)
        inside = column < N
        key = tl.load(k + base + column[None, :] * stride + lane[:, None], inside[None, :], 0.0)
        score = tl.dot(query, key) * scale
        seen = inside[None, :]
        if CAUSAL:
            seen = seen & (row[:, None] >= column[None, :])
        score = tl.where(seen, score, -1e30)
        new = tl.maximum(highest, tl.max(score, 1))
        power = tl.exp2(score - new[:, None])
        shrink = tl.exp2(highest - new)
        total = total * shrink + tl.sum(power, 1)
        value = tl.load(v + base + column[:, None] * stride + lane[None, :], inside[:, None], 0.0)
        result = tl.dot(power.to(tl.float16), value, result * shrink[:, None])
        highest = new
    result = result / total[:, None]
    tl.store(logs + tl.program_id(1) * N + row, highest + tl.log2(total), row < N)
    tl.store(
        out + base + row[:, None] * stride + lane[None, :], result.to(tl.float16),
        (row < N)[:, None],
    )  # fmt: skip


def main() -> None:
    device = "cuda"
    x = torch.zeros((8, 64), device=device)
    y, rows = torch.empty_like(x), torch.zeros(8, device=device)
    softmax_rows[(4,)](y, x, x.stride(0), 8, 60, BLOCK=64, STAGES=2, num_warps=1)
    arch = triton.runtime.driver.active.get_current_target().arch
    if arch in ("gfx90a", 90):
        return
    a = torch.zeros((32, 32), dtype=torch.float16, device=device)
    matrix_product[lambda meta: (triton.cdiv(32, meta["M_TILE"]), 2)](
        a, a, a, 32, 32, 32, 32, 32, 32
    )
    weight = torch.zeros(64, device=device)
    locks = torch.zeros(4, dtype=torch.int32).cuda()
    layer_norm_backward[(8,)](
        x, y, x, x, weight, rows, rows, locks, 64, 60, BLOCK=64, GROUPS=4, num_warps=1
    )
    if arch == 80:
        return
    q = torch.zeros((2, 32, 16), dtype=torch.float16).to("cuda:0")
    logs = torch.zeros((2, 32), device=torch.device("cuda"))
    for causal in (False, True):
        attention[(2, 2)](
            q, q, q, q, logs, 16, 32, 0.25, M_TILE=16, N_TILE=16, D=16, CAUSAL=causal, num_warps=1
        )
    assert torch.tensor([a.data_ptr()], device=device).is_cuda
    assert torch.full((3,), 32, dtype=torch.int32, device=device).is_cuda


if __name__ == "__main__":
    main()
