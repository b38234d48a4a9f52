"""A script with kernels of our own, of the kinds that Triton's tutorials show, in small tiles.

Softmax by rows, a matrix product in two tuned configurations, layer normalization forward
and backward with locks, attention forward and backward, and a grouped matrix product.
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
def layer_norm(x, out, weight, bias, means, scales, stride, N, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, at < N, 0.0)
    mean = tl.sum(value, axis=0) / N
    centred = tl.where(at < N, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + epsilon)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    result = centred * scale * tl.load(weight + at, at < N) + tl.load(bias + at, at < N)
    tl.store(out + row * stride + at, result, at < N)


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


@triton.jit
def attention_backward(
    q, k, v, do, dk, dv, logs, deltas, stride, N, scale, M_TILE: tl.constexpr,
    N_TILE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * N_TILE + tl.arange(0, N_TILE)
    base = tl.program_id(1) * N * stride
    lane = tl.arange(0, D)
    places = base + column[:, None] * stride + lane[None, :]
    key, value = tl.load(k + places), tl.load(v + places)
    key_slope = tl.zeros((N_TILE, D), tl.float32)
    value_slope = tl.zeros((N_TILE, D), tl.float32)
    for start in range(0, N, M_TILE):
        row = start + tl.arange(0, M_TILE)
        at = base + row[:, None] * stride + lane[None, :]
        query, slope = tl.load(q + at), tl.load(do + at)
        offset = tl.program_id(1) * N + row
        score = tl.dot(key, tl.trans(query)) * scale
        power = tl.exp2(score - tl.load(logs + offset)[None, :])
        value_slope = tl.dot(power.to(tl.float16), slope, value_slope)
        change = tl.dot(value, tl.trans(slope)) - tl.load(deltas + offset)[None, :]
        key_slope = tl.dot((power * change).to(tl.float16), query, key_slope)
    tl.store(dk + places, (key_slope * scale).to(tl.float16))
    tl.store(dv + places, value_slope.to(tl.float16))


@triton.jit
def grouped_product(
    a_places, b_places, c_places, sizes, strides, groups, PROGRAMS: tl.constexpr,
    M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    passed = 0
    for group in range(groups):
        M, N, K = (
            tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1),
            tl.load(sizes + group * 3 + 2),
        )  # fmt: skip
        columns = tl.cdiv(N, N_TILE)
        here = tl.cdiv(M, M_TILE) * columns
        while tile >= passed and tile < passed + here:
            a = tl.load(a_places + group).to(tl.pointer_type(tl.float16))
            b = tl.load(b_places + group).to(tl.pointer_type(tl.float16))
            c = tl.load(c_places + group).to(tl.pointer_type(tl.float16))
            row = (tile - passed) // columns * M_TILE + tl.arange(0, M_TILE)
            column = (tile - passed) % columns * N_TILE + tl.arange(0, N_TILE)
            depth = tl.arange(0, K_TILE)
            left, right, width = (
                tl.load(strides + group * 3), tl.load(strides + group * 3 + 1),
                tl.load(strides + group * 3 + 2),
            )  # fmt: skip
            total = tl.zeros((M_TILE, N_TILE), tl.float32)
            for start in range(0, K, K_TILE):
                x = tl.load(a + row[:, None] * left + (start + depth)[None, :])
                y = tl.load(b + (start + depth)[:, None] * right + column[None, :])
                total += tl.dot(x, y)
            tl.store(c + row[:, None] * width + column[None, :], total.to(tl.float16))
            tile += PROGRAMS
        passed += here


def main() -> None:
    device = "cuda"
    x = torch.zeros((8, 64), device=device)
    y, rows = torch.empty_like(x), torch.zeros(8, device=device)
    softmax_rows[(4,)](y, x, x.stride(0), 8, 60, BLOCK=64, STAGES=2, num_warps=1)
    a = torch.zeros((32, 32), dtype=torch.float16, device=device)
    matrix_product[lambda meta: (triton.cdiv(32, meta["M_TILE"]), 2)](
        a, a, a, 32, 32, 32, 32, 32, 32
    )
    weight = torch.zeros(64, device=device)
    layer_norm[(8,)](x, y, weight, weight, rows, rows, 64, 60, 1e-5, BLOCK=64, num_warps=1)
    locks = torch.zeros(4, dtype=torch.int32).cuda()
    layer_norm_backward[(8,)](
        x, y, x, x, weight, rows, rows, locks, 64, 60, BLOCK=64, GROUPS=4, num_warps=1
    )
    q = torch.zeros((2, 32, 16), dtype=torch.float16).to("cuda:0")
    logs = torch.zeros((2, 32), device=torch.device("cuda"))
    for causal in (False, True):
        attention[(2, 2)](
            q, q, q, q, logs, 16, 32, 0.25, M_TILE=16, N_TILE=16, D=16, CAUSAL=causal, num_warps=1
        )
    attention_backward[(2, 2)](
        q, q, q, q, q, q, logs, logs, 16, 32, 0.25, M_TILE=16, N_TILE=16, D=16, num_warps=1
    )
    places = torch.tensor([a.data_ptr()], device=device)
    sizes = torch.full((3,), 32, dtype=torch.int32, device=device)
    grouped_product[(2,)](
        places, places, places, sizes, sizes, 1,
        PROGRAMS=2, M_TILE=16, N_TILE=16, K_TILE=16, num_warps=1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
