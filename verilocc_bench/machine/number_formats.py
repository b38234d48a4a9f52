"""Conversions between number formats, and what the hardware does to NaNs, in compiled code.

A number of 16 bits is an int64 from 0 to 65535. Rounding is to nearest, ties to
even, unless a name says otherwise. Denormals are kept.
"""

from __future__ import annotations

import math

import numpy as np

from verilocc_bench.machine.compiled import (
    compiled,
    float32_of,
    float64,
    float64_bits,
    float64_of,
    int64,
)


@compiled
def power_of_two(exponent: int) -> float:
    """2**exponent as a float64, for exponents of its normal numbers."""
    return float64_of((exponent + 1023) << 52)


@compiled
def float16_of(bits: int) -> float:
    """The float16 with these bits, as a float64."""
    exponent, fraction = (bits >> 10) & 31, bits & 0x3FF
    if exponent == 31:  # infinities and NaNs; a NaN becomes quiet
        wide = 0x7FF0_0000_0000_0000 | (fraction << 42)
        if fraction:
            wide |= 1 << 51
        return float64_of(wide | ((bits >> 15) & 1) << 63)
    if exponent == 0:
        magnitude = fraction * 5.9604644775390625e-08  # 2**-24
    else:
        magnitude = float64_of(((exponent + 1008) << 52) | (fraction << 42))
    return -magnitude if bits & 0x8000 else magnitude


@compiled
def _float16(number: float, toward_zero: bool) -> int:
    bits = float64_bits(number)
    sign = (bits >> 48) & 0x8000
    exponent = ((bits >> 52) & 0x7FF) - 1023
    fraction = bits & 0xF_FFFF_FFFF_FFFF
    if exponent == 1024:
        return sign | 0x7C00 | ((0x200 | (fraction >> 42)) if fraction else 0)
    if exponent > 15:
        return sign | (0x7BFF if toward_zero else 0x7C00)
    if exponent < -25:  # below half of the least denormal number
        return sign
    significand = fraction | (1 << 52)
    if exponent >= -14:
        shift, base = 42, (exponent + 14) << 10
    else:
        shift, base = 42 - 14 - exponent, 0
    # For normal numbers the hidden bit adds the 1 that the exponent field still lacks.
    kept = significand >> shift
    if not toward_zero:
        rest, half = significand & ((1 << shift) - 1), 1 << (shift - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1  # a carry out of the fraction raises the exponent, as it should
    return sign | (base + kept)


@compiled
def float16_bits(number: float) -> int:
    """A float64 as a float16."""
    return _float16(number, False)


@compiled
def float16_bits_toward_zero(number: float) -> int:
    """A float64 as a float16, rounded toward zero."""
    return _float16(number, True)


@compiled
def is_signalling32(bits: int) -> bool:
    """True for a signalling NaN of float32."""
    return (bits & 0x7F80_0000) == 0x7F80_0000 and (bits & 0x7F_FFFF) != 0 and not bits & 0x40_0000


@compiled
def quiet32(bits: int) -> int:
    """A NaN of float32 made quiet; other numbers as they are."""
    is_nan = (bits & 0x7FFF_FFFF) > 0x7F80_0000
    return bits | 0x40_0000 if is_nan else bits


@compiled
def _extreme32(a: int, b: int, greatest: bool) -> int:
    x, y = float32_of(a), float32_of(b)
    if is_signalling32(a):
        return quiet32(a)
    if is_signalling32(b):
        return quiet32(b)
    if math.isnan(x):
        return b
    if math.isnan(y):
        return a
    if x == 0 and y == 0:
        return a if (a & 0x8000_0000 != 0) != greatest else b
    return a if (x > y if greatest else x < y) else b


@compiled
def minimum32(a: int, b: int) -> int:
    """V_MIN_F32 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme32(a, b, False)


@compiled
def maximum32(a: int, b: int) -> int:
    """V_MAX_F32 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme32(a, b, True)


@compiled
def is_signalling64(bits: int) -> bool:
    """True for a signalling NaN of float64."""
    mantissa = bits & ((1 << 52) - 1)
    return (bits >> 52) & 0x7FF == 0x7FF and mantissa != 0 and not mantissa >> 51


@compiled
def _extreme64(a: int, b: int, greatest: bool) -> int:
    x, y = float64_of(a), float64_of(b)
    if is_signalling64(a):
        return a | (1 << 51)
    if is_signalling64(b):
        return b | (1 << 51)
    if math.isnan(x):
        return b
    if math.isnan(y):
        return a
    if x == 0 and y == 0:
        return a if (a < 0) != greatest else b
    return a if (x > y if greatest else x < y) else b


@compiled
def minimum64(a: int, b: int) -> int:
    """V_MIN_F64 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme64(a, b, False)


@compiled
def maximum64(a: int, b: int) -> int:
    """V_MAX_F64 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme64(a, b, True)


@compiled
def is_signalling16(bits: int) -> bool:
    """True for a signalling NaN of float16."""
    return (bits & 0x7C00) == 0x7C00 and (bits & 0x3FF) != 0 and not bits & 0x200


@compiled
def _extreme16(a: int, b: int, greatest: bool) -> int:
    x, y = float16_of(a), float16_of(b)
    if is_signalling16(a):
        return a | 0x200
    if is_signalling16(b):
        return b | 0x200
    if math.isnan(x):
        return b
    if math.isnan(y):
        return a
    if x == 0 and y == 0:
        return a if (a & 0x8000 != 0) != greatest else b
    return a if (x > y if greatest else x < y) else b


@compiled
def minimum16(a: int, b: int) -> int:
    """V_MIN_F16 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme16(a, b, False)


@compiled
def maximum16(a: int, b: int) -> int:
    """V_MAX_F16 in IEEE mode, on bits: a signalling NaN wins, a quiet one loses; -0 < +0."""
    return _extreme16(a, b, True)


@compiled
def saturated(number: float, least: float, most: float) -> int:
    """A number cut to an integer toward zero, within limits; NaN is 0."""
    if math.isnan(number):
        return 0
    return int(np.trunc(max(least, min(most, number))))


@compiled
def byte_float_bits(bits: int, exponent_bits: int, mantissa_bits: int) -> int:
    """The 8 bits of a float32, rounded to nearest, in the formats of gfx942 that have one zero.

    NaN, infinities and numbers that are too large become NaN, the code of -0 in other formats.
    """
    magnitude = float64(float32_of(bits & 0x7FFF_FFFF))
    if not magnitude < 3.0e38:  # true for a NaN, too
        return 0x80
    bias = 1 << (exponent_bits - 1)
    step = power_of_two(1 - bias - mantissa_bits)  # between denormal numbers
    exponent = ((bits >> 23) & 0xFF) - 127
    if exponent > 1 - bias:
        step = power_of_two(exponent - mantissa_bits)
    rounded = round_half_even(magnitude / step) * step
    if rounded == 0.0:
        return 0
    largest = (2.0 - power_of_two(-mantissa_bits)) * power_of_two((1 << exponent_bits) - 1 - bias)
    if rounded > largest:
        return 0x80
    sign = (bits >> 31) << 7
    if rounded < power_of_two(1 - bias):
        return sign | int64(rounded / power_of_two(1 - bias - mantissa_bits))
    if rounded >= power_of_two(exponent + 1):  # rounding has reached the next power of two
        exponent += 1
    fraction = int64((rounded / power_of_two(exponent) - 1.0) * (1 << mantissa_bits))
    return sign | (exponent + bias) << mantissa_bits | fraction


@compiled
def round_half_even(number: float) -> float:
    """A positive float64 below 2**52 rounded to an integer."""
    floor = math.floor(number)
    rest = number - floor
    if rest > 0.5 or (rest == 0.5 and int64(floor) & 1):
        floor += 1
    return float64(floor)


@compiled
def class_of_32(bits: int) -> int:
    """The bit of V_CMP_CLASS_F32 that a number belongs to, from 0 to 9."""
    negative = bits >> 31
    if is_signalling32(bits):
        return 0
    if math.isnan(float32_of(bits)):
        return 1
    if (bits & 0x7FFF_FFFF) == 0x7F80_0000:
        return 2 if negative else 9
    if bits & 0x7F80_0000:
        return 3 if negative else 8
    if bits & 0x7F_FFFF:
        return 4 if negative else 7
    return 5 if negative else 6
