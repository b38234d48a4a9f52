"""One matrix instruction of a wave, in compiled code. EXEC plays no part.

**Lane layout.** With S = side, B = blocks, per = elements of A a lane holds:
row i of block b at depth k lies in lane `b*S + (k div per)*S*B + i`, element
`k mod per`; for B read column for row. The elements of a lane fill its registers in
order, low bits first. D of 32 bits: registers and lanes as `_result_place` computes
them; f64 differs from f32. Source: "AMD Instinct MI200" and "AMD Instinct MI300" Instruction
Set Architecture guides, chapter Matrix Arithmetic Instructions.

**Arithmetic.** The guides do not say in which order hardware adds, nor how it rounds
between. Here:
- f32 and f64: one fused multiply-add after the other, in order of k, beginning with C;
- f16, bf16, xf32, fp8, bf8: products are exact; they are summed in float64 in order of k,
  C is added last, and the sum is rounded to float32 once;
- i8: exact, modulo 2**32.
On gfx90a, f16 and bf16 instructions take denormal inputs as zero and give zero for
denormal results (MIOpen documentation, "MI200 MFMA Behavior Specifics"). The sign of
zero stays. Every NaN result is the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000).
"""

from __future__ import annotations

import math

import numpy as np

from verilocc_bench.machine.bit_functions import signed32
from verilocc_bench.machine.compiled import (
    compiled,
    float32,
    float32_bits,
    float32_of,
    float64,
    float64_bits,
    float64_of,
    fused32,
    fused64,
    int64,
    uint32,
)
from verilocc_bench.machine.fields import C_WIDTH, LANES, RESULT, TARGET, VECTOR, A, B, C
from verilocc_bench.machine.lanes import Integers, Numbers, Registers, read_pair
from verilocc_bench.machine.number_formats import float16_of

(F32, F64, F16, BF16, I8, XF32, FP8, BF8) = range(8)
MATRIX_NUMBERS = 4096
"""The most elements that A, B, C or D has; the size of the spare arrays."""


@compiled
def _byte_float(bits: int, exponent_bits: int, bias: int) -> float:
    """FP8 and BF8 of gfx942: one zero, and NaN in the place of minus zero."""
    if bits == 0x80:
        return np.nan
    mantissa_bits = 7 - exponent_bits
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (bits & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    magnitude = (fraction + (1.0 if exponent else 0.0)) * 2.0 ** (max(exponent, 1) - bias)
    return -magnitude if bits & 0x80 else magnitude


@compiled
def _element(vectors: Registers, register: int, lane: int, element: int, kind: int) -> float:
    """An element of A or B, as a float64."""
    if kind == F32 or kind == XF32:
        bits = int64(vectors[register + element, lane])
        if kind == XF32:
            bits = 0x7FC0_0000 if (bits & 0x7FFF_FFFF) > 0x7F80_0000 else bits & 0xFFFF_E000
        return float64(float32_of(bits))
    if kind == F64:
        low = int64(vectors[register + 2 * element, lane])
        return float64_of(low | (int64(vectors[register + 2 * element + 1, lane]) << 32))
    if kind == F16 or kind == BF16:
        half = (int64(vectors[register + (element >> 1), lane]) >> (16 * (element & 1))) & 0xFFFF
        return float16_of(half) if kind == F16 else float64(float32_of(half << 16))
    byte = (int64(vectors[register + (element >> 2), lane]) >> (8 * (element & 3))) & 0xFF
    if kind == I8:
        return float64((byte ^ 0x80) - 0x80)
    return _byte_float(byte, 4, 8) if kind == FP8 else _byte_float(byte, 5, 16)


@compiled
def _flushed(number: float, least: float) -> float:
    return math.copysign(0.0, number) if abs(number) < least else number


@compiled
def _load(
    vectors: Registers, register: int, kind: int, numbers: Integers, out: Numbers,
    by_depth: bool,
) -> None:  # fmt: skip
    """An operand as (block, row, depth), or (block, depth, column) with `by_depth`."""
    side, depth, blocks, per = numbers[0], numbers[1], numbers[2], numbers[6]
    least = 0.0
    if numbers[5]:
        least = 2.0**-14 if kind == F16 else 2.0**-126
    for block in range(blocks):
        for k in range(depth):
            lanes = block * side + (k // per) * side * blocks
            for i in range(side):
                number = _element(vectors, register, lanes + i, k % per, kind)
                if least:
                    number = _flushed(number, least)
                if by_depth:
                    out[(block * depth + k) * side + i] = number
                else:
                    out[(block * side + i) * depth + k] = number


@compiled
def _result_place(block: int, line: int, column: int, numbers: Integers) -> tuple[int, int]:
    """The element and the lane in which D has a number."""
    side, kind = numbers[0], numbers[3]
    lane_rows = LANES // side
    if kind == F64:
        per_element = -(-LANES // (side * side))
        element = block * (side * side // LANES) + line // lane_rows
        lane_row = line % lane_rows
    else:
        per_element = -(-LANES // (side * side // 4))
        element = block * (side * side // LANES) + line // (4 * lane_rows) * 4 + line % 4
        lane_row = line // 4 % lane_rows
    lane = (block % per_element) * side + lane_row * per_element * side + column
    return element, lane


@compiled
def _dot(
    left: Numbers, right: Numbers, start: int, block: int, numbers: Integers,
    total: Numbers,
) -> None:  # fmt: skip
    """A row of A times B, in float64, one product after the other: all columns at once."""
    side, depth = numbers[0], numbers[1]
    for j in range(side):
        total[j] = 0.0
    for k in range(depth):
        factor = left[start + k]
        base = (block * depth + k) * side
        for j in range(side):
            total[j] += factor * right[base + j]


@compiled
def matrix_step(
    row: Integers, scalars: Integers, vectors: Registers,
    left: Numbers, right: Numbers, results: Integers, total: Numbers,
) -> None:  # fmt: skip
    """D = A B + C. EXEC plays no part."""
    numbers = scalars[row[TARGET] : row[TARGET] + 10]
    side, depth, blocks, kind = numbers[0], numbers[1], numbers[2], numbers[3]
    _load(vectors, row[A] - VECTOR, kind, numbers, left, False)
    _load(vectors, row[B] - VECTOR, numbers[4], numbers, right, True)
    flushes = numbers[5]
    wide = 2 if kind == F64 else 1
    for block in range(blocks):
        for i in range(side):
            start = (block * side + i) * depth
            if kind != F32 and kind != F64:
                _dot(left, right, start, block, numbers, total)
            for j in range(side):
                element, lane = _result_place(block, i, j, numbers)
                if row[C] < VECTOR:
                    c = read_pair(scalars, row[C]) if row[C_WIDTH] == 2 else scalars[row[C]]
                else:
                    register = row[C] - VECTOR + wide * element
                    c = int64(vectors[register, lane])
                    if wide == 2:
                        c |= int64(vectors[register + 1, lane]) << 32
                results[element * LANES + lane] = _sum(
                    kind, c, total[j], left, right, start, block * depth * side + j,
                    depth, side, flushes,
                )  # fmt: skip
    destination = row[RESULT] - VECTOR
    for element in range(side * side * blocks // LANES):
        for lane in range(LANES):
            value = results[element * LANES + lane]
            vectors[destination + wide * element, lane] = uint32(value)
            if wide == 2:
                vectors[destination + 2 * element + 1, lane] = uint32(value >> 32)


@compiled
def _sum(
    kind: int, c: int, product: float, left: Numbers, right: Numbers,
    start: int, column: int, depth: int, side: int, flushes: int,
) -> int:  # fmt: skip
    """One element of D, in bits."""
    if kind == I8:
        return signed32(c) + int(product)
    if kind == F64:
        number = float64_of(c)
        for k in range(depth):
            number = fused64(left[start + k], right[column + k * side], number)
        return 0x7FF8_0000_0000_0000 if math.isnan(number) else float64_bits(number)
    if kind == F32:
        single = float32_of(c)
        for k in range(depth):
            single = fused32(float32(left[start + k]), float32(right[column + k * side]), single)
    else:
        addend = float64(float32_of(c))
        if flushes:
            addend = _flushed(addend, 2.0**-126)
        single = float32(product + addend)
        if flushes and abs(single) < float32(2.0**-126):
            single = float32(math.copysign(0.0, float64(single)))
    return 0x7FC0_0000 if math.isnan(single) else float32_bits(single)
