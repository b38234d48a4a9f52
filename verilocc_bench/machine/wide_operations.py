"""Floating-point instructions of 64 and of 16 bits as functions of one lane, on bits.

Rounding is to nearest, ties to even; denormals are kept. Source: chapter
"Instructions" of the "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set
Architecture guides.
"""

from __future__ import annotations

import math

import numpy as np

from verilocc_bench.machine.bit_functions import signed32
from verilocc_bench.machine.compiled import compiled, float64, float64_bits, float64_of, fused64
from verilocc_bench.machine.number_formats import (
    float16_bits,
    float16_of,
    maximum16,
    maximum64,
    minimum16,
    minimum64,
    power_of_two,
    saturated,
)

(
    ADD, SUBTRACT, SUBTRACT_REVERSED, MULTIPLY, FUSED, MINIMUM, MAXIMUM, MINIMUM3, MAXIMUM3,
    MEDIAN3, DIVIDE_FIXUP, DIVIDE_FUSED, FRACTION, TRUNCATE, CEILING, ROUND_EVEN, FLOOR,
    EXPONENTIAL, LOGARITHM, RECIPROCAL, RECIPROCAL_ROOT, ROOT, SCALE, EXPONENT, MANTISSA,
    FROM_I, FROM_U, TO_U, TO_I,
) = range(29)  # fmt: skip

FLOAT64_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "v_add_f64": (ADD, 2, (2, 2)),
    "v_mul_f64": (MULTIPLY, 2, (2, 2)),
    "v_fma_f64": (FUSED, 2, (2, 2, 2)),
    "v_min_f64": (MINIMUM, 2, (2, 2)),
    "v_max_f64": (MAXIMUM, 2, (2, 2)),
    "v_div_fixup_f64": (DIVIDE_FIXUP, 2, (2, 2, 2)),
    "v_div_fmas_f64": (DIVIDE_FUSED, 2, (2, 2, 2)),
    "v_fract_f64": (FRACTION, 2, (2,)),
    "v_trunc_f64": (TRUNCATE, 2, (2,)),
    "v_ceil_f64": (CEILING, 2, (2,)),
    "v_rndne_f64": (ROUND_EVEN, 2, (2,)),
    "v_floor_f64": (FLOOR, 2, (2,)),
    "v_rcp_f64": (RECIPROCAL, 2, (2,)),
    "v_rsq_f64": (RECIPROCAL_ROOT, 2, (2,)),
    "v_sqrt_f64": (ROOT, 2, (2,)),
    "v_ldexp_f64": (SCALE, 2, (2, 1)),
    "v_frexp_exp_i32_f64": (EXPONENT, 1, (2,)),
    "v_frexp_mant_f64": (MANTISSA, 2, (2,)),
    "v_cvt_f64_i32": (FROM_I, 2, (1,)),
    "v_cvt_f64_u32": (FROM_U, 2, (1,)),
    "v_cvt_u32_f64": (TO_U, 1, (2,)),
    "v_cvt_i32_f64": (TO_I, 1, (2,)),
}
FLOAT16_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "v_add_f16": (ADD, 1, (1, 1)),
    "v_sub_f16": (SUBTRACT, 1, (1, 1)),
    "v_subrev_f16": (SUBTRACT_REVERSED, 1, (1, 1)),
    "v_mul_f16": (MULTIPLY, 1, (1, 1)),
    "v_fma_f16": (FUSED, 1, (1, 1, 1)),
    "v_min_f16": (MINIMUM, 1, (1, 1)),
    "v_max_f16": (MAXIMUM, 1, (1, 1)),
    "v_min3_f16": (MINIMUM3, 1, (1, 1, 1)),
    "v_max3_f16": (MAXIMUM3, 1, (1, 1, 1)),
    "v_med3_f16": (MEDIAN3, 1, (1, 1, 1)),
    "v_div_fixup_f16": (DIVIDE_FIXUP, 1, (1, 1, 1)),
    "v_fract_f16": (FRACTION, 1, (1,)),
    "v_trunc_f16": (TRUNCATE, 1, (1,)),
    "v_ceil_f16": (CEILING, 1, (1,)),
    "v_rndne_f16": (ROUND_EVEN, 1, (1,)),
    "v_floor_f16": (FLOOR, 1, (1,)),
    "v_exp_f16": (EXPONENTIAL, 1, (1,)),
    "v_log_f16": (LOGARITHM, 1, (1,)),
    "v_rcp_f16": (RECIPROCAL, 1, (1,)),
    "v_rsq_f16": (RECIPROCAL_ROOT, 1, (1,)),
    "v_sqrt_f16": (ROOT, 1, (1,)),
    "v_ldexp_f16": (SCALE, 1, (1, 1)),
    "v_cvt_f16_i16": (FROM_I, 1, (1,)),
    "v_cvt_f16_u16": (FROM_U, 1, (1,)),
    "v_cvt_u16_f16": (TO_U, 1, (1,)),
    "v_cvt_i16_f16": (TO_I, 1, (1,)),
}
"""Each opcode: its number here, the registers of its result, and of each source."""


@compiled
def _exponent(bits: int) -> int:
    return (bits >> 52) & 0x7FF


@compiled
def _is_denormal(number: float) -> bool:
    return number != 0 and abs(number) < 2.2250738585072014e-308


@compiled
def _scaled(number: float, exponent: int) -> float:
    """The number times 2**exponent, rounded once."""
    if not math.isfinite(number):
        return number
    exponent = max(-2200, min(2200, exponent))
    while exponent > 1000:
        number *= power_of_two(1000)
        exponent -= 1000
    if exponent < -1000:
        # The factors before the last leave a normal number, or all of them lead to zero.
        mantissa, own = math.frexp(number)
        number, exponent = mantissa, exponent + own
        if exponent < -1100:
            return number * 0.0
        # Exact, for the result is normal; of the factors below only the last one rounds.
        number *= power_of_two(-60)
        exponent += 60
    return (
        number * power_of_two(exponent)
        if exponent >= -1022
        else (number * power_of_two(exponent + 100)) * power_of_two(-100)
    )


@compiled
def divide_scale64(a: int, b: int, c: int) -> tuple[int, bool]:
    """V_DIV_SCALE_F64 of the source, the denominator and the numerator: result, and VCC bit.

    See divide_scale32 for where this is not the guides' text.
    """
    source, denominator, numerator = float64_of(a), float64_of(b), float64_of(c)
    if numerator == 0 or denominator == 0:
        return 0x7FF8_0000_0000_0000, False
    is_denominator, is_numerator = source == denominator, source == numerator
    reciprocal_is_denormal = _is_denormal(1.0 / denominator)
    quotient_is_denormal = _is_denormal(numerator / denominator)
    if _exponent(c) - _exponent(b) >= 768:
        return (float64_bits(_scaled(source, 128)) if is_denominator else a), True
    if _is_denormal(denominator):
        return float64_bits(_scaled(source, 128)), False
    if reciprocal_is_denormal and quotient_is_denormal:
        return (float64_bits(_scaled(source, -128)) if is_denominator else a), True
    if reciprocal_is_denormal:
        return float64_bits(_scaled(source, -128)), False
    if quotient_is_denormal:
        return (float64_bits(_scaled(source, 128)) if is_numerator else a), True
    if _exponent(c) <= 53:
        return float64_bits(_scaled(source, 128)), False
    return a, False


@compiled
def _divide_fixup(a: int, b: int, c: int) -> int:
    """V_DIV_FIXUP_F64 of the quotient, the denominator and the numerator."""
    quotient, denominator, numerator = float64_of(a), float64_of(b), float64_of(c)
    negative = (b < 0) != (c < 0)
    if math.isnan(numerator):
        return c | (1 << 51)
    if math.isnan(denominator):
        return b | (1 << 51)
    if (denominator == 0 and numerator == 0) or (math.isinf(denominator) and math.isinf(numerator)):
        return float64_bits(-float64(np.nan))
    if denominator == 0 or math.isinf(numerator):
        result = np.inf
    elif math.isinf(denominator) or numerator == 0 or _exponent(c) - _exponent(b) < -1075:
        result = 0.0
    else:
        # A quotient that overflows is NaN here, as with 32 bits.
        result = np.inf if math.isnan(quotient) else abs(quotient)
    return float64_bits(-result if negative else result)


@compiled
def _rounded(operation: int, x: float) -> float:
    if not math.isfinite(x):
        return x - x if operation == FRACTION else x
    if operation == FRACTION:
        # The difference of a small negative number rounds to 1; the hardware stays below.
        return min(x - np.floor(x), 0.9999999999999999)
    if operation == TRUNCATE:
        result = np.trunc(x)
    elif operation == CEILING:
        result = np.ceil(x)
    elif operation == FLOOR:
        result = np.floor(x)
    else:
        result = np.rint(x)
    return np.copysign(result, x)  # a zero keeps the sign


@compiled
def _of_one(operation: int, x: float) -> float:
    if FRACTION <= operation <= FLOOR:
        return _rounded(operation, x)
    if operation == EXPONENTIAL:
        return np.exp2(x)
    if operation == LOGARITHM:
        return np.log2(x)
    if operation == RECIPROCAL:
        return 1.0 / x
    if operation == RECIPROCAL_ROOT:
        return 1.0 / np.sqrt(x)
    if operation == ROOT:
        return np.sqrt(x)
    return math.frexp(x)[0] if math.isfinite(x) else x


@compiled
def float64_operation(operation: int, a: int, b: int, c: int, flag: bool) -> int:
    """The result of an instruction for one lane. `flag` is the lane's bit of VCC."""
    if operation == FROM_I:
        return float64_bits(float64(signed32(a)))
    if operation == FROM_U:
        return float64_bits(float64(a))
    x = float64_of(a)
    if operation == ADD:
        return float64_bits(x + float64_of(b))
    if operation == MULTIPLY:
        return float64_bits(x * float64_of(b))
    if operation == FUSED:
        return float64_bits(fused64(x, float64_of(b), float64_of(c)))
    if operation == MINIMUM:
        return minimum64(a, b)
    if operation == MAXIMUM:
        return maximum64(a, b)
    if operation == DIVIDE_FIXUP:
        return _divide_fixup(a, b, c)
    if operation == DIVIDE_FUSED:
        result = fused64(x, float64_of(b), float64_of(c))
        if flag:
            result = _scaled(result, 128 if _exponent(c) > 1023 else -128)
        return float64_bits(result)
    if operation == SCALE:
        return float64_bits(_scaled(x, signed32(b)))
    if operation == EXPONENT:
        return math.frexp(x)[1] if math.isfinite(x) and x != 0 else 0
    if operation == TO_U:
        return saturated(x, 0.0, 4294967295.0)
    if operation == TO_I:
        return saturated(x, -2147483648.0, 2147483647.0)
    return float64_bits(_of_one(operation, x))


@compiled
def _number16(bits: int) -> float:
    return float16_of(bits & 0xFFFF)


@compiled
def _extreme16(operation: int, a: int, b: int, c: int) -> int:
    """The least, the greatest or the middle one, on bits."""
    if operation == MINIMUM:
        return minimum16(a, b)
    if operation == MAXIMUM:
        return maximum16(a, b)
    least, greatest = minimum16(a, b), maximum16(a, b)
    if operation == MINIMUM3:
        return minimum16(least, c)
    if operation == MAXIMUM3:
        return maximum16(greatest, c)
    if math.isnan(float16_of(a)) or math.isnan(float16_of(b)) or math.isnan(float16_of(c)):
        return minimum16(least, c)
    # The greatest is left out; zeros of either sign are equal.
    most = float16_of(maximum16(greatest, c))
    if most == float16_of(a):
        return maximum16(b, c)
    return maximum16(a, c) if most == float16_of(b) else greatest


@compiled
def _divide_fixup16(a: int, b: int, c: int) -> int:
    """V_DIV_FIXUP_F16 of the quotient, the denominator and the numerator, on bits."""
    denominator, numerator = float16_of(b), float16_of(c)
    if math.isnan(numerator):
        return c | 0x200
    if math.isnan(denominator):
        return b | 0x200
    if (denominator == 0 and numerator == 0) or (math.isinf(denominator) and math.isinf(numerator)):
        return 0xFE00
    result = a & 0x7FFF
    if denominator == 0 or math.isinf(numerator):
        result = 0x7C00
    elif math.isinf(denominator) or numerator == 0:
        result = 0
    return result | ((b ^ c) & 0x8000)


@compiled
def float16_operation(operation: int, a: int, b: int, c: int) -> int:
    """The result of an instruction for one lane, in 16 bits.

    Sums, products and fused multiply-adds of float16 are exact in float64, or
    differ from a tie by more than its last bit: they round once.
    """
    if operation == FROM_I:
        return float16_bits(float64(((a & 0xFFFF) ^ 0x8000) - 0x8000))
    if operation == FROM_U:
        return float16_bits(float64(a & 0xFFFF))
    if MINIMUM <= operation <= MEDIAN3:
        return _extreme16(operation, a & 0xFFFF, b & 0xFFFF, c & 0xFFFF)
    if operation == DIVIDE_FIXUP:
        return _divide_fixup16(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF)
    x, y, z = _number16(a), _number16(b), _number16(c)
    if operation == TO_U:
        return saturated(x, 0.0, 65535.0)
    if operation == TO_I:
        return saturated(x, -32768.0, 32767.0) & 0xFFFF
    if operation == ADD:
        result = x + y
    elif operation == SUBTRACT:
        result = x - y
    elif operation == SUBTRACT_REVERSED:
        result = y - x
    elif operation == MULTIPLY:
        result = x * y
    elif operation == FUSED:
        result = fused64(x, y, z)
    elif operation == SCALE:
        shift = ((b & 0xFFFF) ^ 0x8000) - 0x8000
        result = x * power_of_two(max(-100, min(100, shift)))
    else:
        result = _of_one(operation, x)
        if operation == FRACTION:
            result = min(result, 0.99951171875)
    return float16_bits(result)
