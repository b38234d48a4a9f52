"""Small kernels of our own in Triton: what the tests compile."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, K, stride_a, stride_b, stride_c, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    """One tile of a matrix product; fp16 in and out."""
    rows, columns = tl.arange(0, SIZE), tl.arange(0, SIZE)
    steps = tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for k in range(0, K, DEPTH):
        left = tl.load(a + rows[:, None] * stride_a + (k + steps)[None, :])
        right = tl.load(b + (k + steps)[:, None] * stride_b + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))


@triton.jit
def scaled_sum(x, y, out, n, scale, BLOCK: tl.constexpr):
    """out = scale * x + y, element by element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    left = tl.load(x + at, mask=inside)
    tl.store(out + at, scale * left + tl.load(y + at, mask=inside), mask=inside)


def namesake() -> Any:
    """Another function of the same name and arguments."""

    @triton.jit
    def scaled_sum(x, y, out, n, scale, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, scale - tl.load(x + at) * tl.load(y + at), mask=at < n)

    return scaled_sum


@triton.jit(noinline=True)
def squared(value):
    """A device function that is called."""
    return value * value


@triton.jit
def with_a_call(x, out):
    """Calls a device function."""
    tl.store(out, squared(tl.load(x)))


def source(kernel: Any, signature: dict[str, str], **constants: int) -> Any:
    """The source that `triton.compile` takes; pointers are aligned to 16 bytes."""
    from triton.compiler import ASTSource

    names = kernel.arg_names
    types = {name: signature.get(name, "constexpr") for name in names}
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(names)
        if types[name].startswith("*")
    }
    values = {(names.index(name),): value for name, value in constants.items()}
    return ASTSource(kernel, types, values, attributes)


def product_source(size: int = 16, depth: int = 32) -> Any:
    """A matrix product of one wave."""
    pointers = dict.fromkeys("abc", "*fp16")
    integers = dict.fromkeys(("K", "stride_a", "stride_b", "stride_c"), "i32")
    return source(product, pointers | integers, SIZE=size, DEPTH=depth)


def sum_source(block: int = 256) -> Any:
    """An element-wise kernel."""
    signature = dict.fromkeys(("x", "y", "out"), "*fp32") | {"n": "i32", "scale": "fp32"}
    return source(scaled_sum, signature, BLOCK=block)
