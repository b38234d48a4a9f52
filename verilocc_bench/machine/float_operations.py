"""Floating-point instructions of 32 bits as functions of one lane, on bits.

Rounding is to nearest, ties to even. Add, subtract, multiply, fused multiply-add
and conversions keep denormals. What the hardware approximates (reciprocal,
square root, exponential, logarithm, sine) is computed in float64 and rounded
once; of these, denormal inputs count as zero and denormal results become zero,
because the hardware's units do not handle denormals (LLVM's AMDGPU back end
scales around them). Source: chapter "Instructions" of the "AMD Instinct MI200" and
"AMD Instinct MI300" Instruction Set Architecture guides.
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
)
from verilocc_bench.machine.number_formats import (
    byte_float_bits,
    float16_bits,
    float16_bits_toward_zero,
    float16_of,
    maximum32,
    minimum32,
    power_of_two,
    quiet32,
    saturated,
)

(
    ADD, SUBTRACT, SUBTRACT_REVERSED, MULTIPLY, MULTIPLY_LEGACY, FUSED, MINIMUM, MAXIMUM,
    MINIMUM3, MAXIMUM3, MEDIAN3, DIVIDE_FIXUP, DIVIDE_FUSED,
    FRACTION, TRUNCATE, CEILING, ROUND_EVEN, FLOOR,
    EXPONENTIAL, LOGARITHM, RECIPROCAL, RECIPROCAL_ROOT, ROOT, SINE, COSINE,
    SCALE, EXPONENT, MANTISSA,
    FROM_I32, FROM_U32, TO_U32, TO_I32, TO_I32_NEAREST, TO_I32_FLOOR, TO_F16, FROM_F16,
    FROM_BYTE0, FROM_BYTE1, FROM_BYTE2, FROM_BYTE3, TO_F64, FROM_F64, TO_F16_PAIR, FUSED_TO_F16,
    DOT2_F16, DOT2_F16_ACCUMULATE, MULTIPLY_ADD_LEGACY, TO_FP8_PAIR, TO_BF8_PAIR,
) = range(49)  # fmt: skip

FLOAT32_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "v_add_f32": (ADD, 1, (1, 1)),
    "v_sub_f32": (SUBTRACT, 1, (1, 1)),
    "v_subrev_f32": (SUBTRACT_REVERSED, 1, (1, 1)),
    "v_mul_f32": (MULTIPLY, 1, (1, 1)),
    "v_mul_legacy_f32": (MULTIPLY_LEGACY, 1, (1, 1)),
    "v_fma_f32": (FUSED, 1, (1, 1, 1)),
    "v_min_f32": (MINIMUM, 1, (1, 1)),
    "v_max_f32": (MAXIMUM, 1, (1, 1)),
    "v_min3_f32": (MINIMUM3, 1, (1, 1, 1)),
    "v_max3_f32": (MAXIMUM3, 1, (1, 1, 1)),
    "v_med3_f32": (MEDIAN3, 1, (1, 1, 1)),
    "v_div_fixup_f32": (DIVIDE_FIXUP, 1, (1, 1, 1)),
    "v_div_fmas_f32": (DIVIDE_FUSED, 1, (1, 1, 1)),
    "v_fract_f32": (FRACTION, 1, (1,)),
    "v_trunc_f32": (TRUNCATE, 1, (1,)),
    "v_ceil_f32": (CEILING, 1, (1,)),
    "v_rndne_f32": (ROUND_EVEN, 1, (1,)),
    "v_floor_f32": (FLOOR, 1, (1,)),
    "v_exp_f32": (EXPONENTIAL, 1, (1,)),
    "v_log_f32": (LOGARITHM, 1, (1,)),
    "v_rcp_f32": (RECIPROCAL, 1, (1,)),
    "v_rcp_iflag_f32": (RECIPROCAL, 1, (1,)),
    "v_rsq_f32": (RECIPROCAL_ROOT, 1, (1,)),
    "v_sqrt_f32": (ROOT, 1, (1,)),
    "v_sin_f32": (SINE, 1, (1,)),
    "v_cos_f32": (COSINE, 1, (1,)),
    "v_ldexp_f32": (SCALE, 1, (1, 1)),
    "v_frexp_exp_i32_f32": (EXPONENT, 1, (1,)),
    "v_frexp_mant_f32": (MANTISSA, 1, (1,)),
    "v_cvt_f32_i32": (FROM_I32, 1, (1,)),
    "v_cvt_f32_u32": (FROM_U32, 1, (1,)),
    "v_cvt_u32_f32": (TO_U32, 1, (1,)),
    "v_cvt_i32_f32": (TO_I32, 1, (1,)),
    "v_cvt_rpi_i32_f32": (TO_I32_NEAREST, 1, (1,)),
    "v_cvt_flr_i32_f32": (TO_I32_FLOOR, 1, (1,)),
    "v_cvt_f16_f32": (TO_F16, 1, (1,)),
    "v_cvt_f32_f16": (FROM_F16, 1, (1,)),
    "v_cvt_f32_ubyte0": (FROM_BYTE0, 1, (1,)),
    "v_cvt_f32_ubyte1": (FROM_BYTE1, 1, (1,)),
    "v_cvt_f32_ubyte2": (FROM_BYTE2, 1, (1,)),
    "v_cvt_f32_ubyte3": (FROM_BYTE3, 1, (1,)),
    "v_cvt_f64_f32": (TO_F64, 2, (1,)),
    "v_cvt_f32_f64": (FROM_F64, 1, (2,)),
    "v_cvt_pkrtz_f16_f32": (TO_F16_PAIR, 1, (1, 1)),
    "v_cvt_pk_fp8_f32": (TO_FP8_PAIR, 1, (1, 1)),
    "v_cvt_pk_bf8_f32": (TO_BF8_PAIR, 1, (1, 1)),
    "v_dot2_f32_f16": (DOT2_F16, 1, (1, 1, 1)),
}
"""Each opcode: its number here, the registers of its result, and of each source."""


@compiled
def _flushed(bits: int) -> int:
    """Denormals as zeros of their sign."""
    return bits & 0x8000_0000 if bits & 0x7F80_0000 == 0 else bits


@compiled
def _exponent(bits: int) -> int:
    return (bits >> 23) & 0xFF


@compiled
def _is_denormal(bits: int) -> bool:
    return (bits & 0x7F80_0000) == 0 and (bits & 0x7F_FFFF) != 0


@compiled
def _scaled(bits: int, exponent: int) -> int:
    """The number times 2**exponent, rounded once, for any exponent."""
    number = float64_of(float64_bits(float64(float32_of(bits))))
    exponent = max(-600, min(600, exponent))
    return float32_bits(float32(number * power_of_two(exponent)))


@compiled
def divide_scale32(a: int, b: int, c: int) -> tuple[int, bool]:
    """V_DIV_SCALE_F32 of the source, the denominator and the numerator: result, and its VCC bit.

    Two places of the guides' text cannot be meant, for quotients would be wrong.
    They compare `1.0 / 64'F(S1)` with denormals: here that is a reciprocal that
    is denormal in float32. Where the quotient is denormal, too, they multiply the
    denominator, already near the largest number, by 2**64: here that is 2**-64.
    """
    numerator, denominator = float32_of(c), float32_of(b)
    if numerator == 0 or denominator == 0:
        return 0x7FC0_0000, False
    is_denominator, is_numerator = float32_of(a) == denominator, float32_of(a) == numerator
    reciprocal_is_denormal = _is_denormal(float32_bits(float32(1) / denominator))
    quotient_is_denormal = _is_denormal(float32_bits(numerator / denominator))
    if _exponent(c) - _exponent(b) >= 96:
        return (_scaled(a, 64) if is_denominator else a), True
    if _is_denormal(b):
        return _scaled(a, 64), False
    if reciprocal_is_denormal and quotient_is_denormal:
        return (_scaled(a, -64) if is_denominator else a), True
    if reciprocal_is_denormal:
        return _scaled(a, -64), False
    if quotient_is_denormal:
        return (_scaled(a, 64) if is_numerator else a), True
    if _exponent(c) <= 23:
        return _scaled(a, 64), False
    return a, False


@compiled
def _divide_fixup(a: int, b: int, c: int) -> int:
    """V_DIV_FIXUP_F32 of the quotient, the denominator and the numerator.

    A quotient that overflows arrives here as NaN (infinity minus infinity) and
    becomes infinity. The guides have `exponent(S1) == 255` in this place, which
    the lines before it leave no operands for.
    """
    sign = (b ^ c) & 0x8000_0000
    numerator, denominator = float32_of(c), float32_of(b)
    if math.isnan(numerator):
        return quiet32(c)
    if math.isnan(denominator):
        return quiet32(b)
    if denominator == 0 and numerator == 0:
        return 0xFFC0_0000
    if math.isinf(denominator) and math.isinf(numerator):
        return 0xFFC0_0000
    if denominator == 0 or math.isinf(numerator):
        return sign | 0x7F80_0000
    if math.isinf(denominator) or numerator == 0:
        return sign
    if _exponent(c) - _exponent(b) < -150:
        return sign
    if math.isnan(float32_of(a)):
        return sign | 0x7F80_0000
    return sign | (a & 0x7FFF_FFFF)


@compiled
def _divide_fused(a: int, b: int, c: int, scale: bool) -> int:
    """V_DIV_FMAS_F32: undoes what V_DIV_SCALE_F32 did to one of the two operands.

    The guides write 2**32 whatever the operands are, which undoes neither a
    denominator times 2**64 nor a numerator times 2**64. Which one it was follows
    from the size of the quotient's estimate.
    """
    if not scale:
        return float32_bits(fused32(float32_of(a), float32_of(b), float32_of(c)))
    product = float64(float32_of(a)) * float64(float32_of(b))  # exact
    addend = float64(float32_of(c))
    wide = product + addend
    part = wide - product
    error = (product - (wide - part)) + (addend - part)
    if error != 0 and math.isfinite(error):
        # An odd last bit tells the rounding to 32 bits that something is left.
        bits = float64_bits(wide)
        if bits & 1 == 0:
            wide = float64_of(bits + (1 if (error > 0) == (wide > 0) else -1))
    return float32_bits(float32(wide * power_of_two(64 if _exponent(c) > 127 else -64)))


@compiled
def _median(a: int, b: int, c: int) -> int:
    x, y, z = float32_of(a), float32_of(b), float32_of(c)
    if math.isnan(x) or math.isnan(y) or math.isnan(z):
        return minimum32(minimum32(a, b), c)
    largest = float32_of(maximum32(maximum32(a, b), c))
    if largest == x:
        return maximum32(b, c)
    if largest == y:
        return maximum32(a, c)
    return maximum32(a, b)


@compiled
def _rounded(operation: int, a: int) -> int:
    """Rounding to integers. A float64 holds every float32, so that nothing rounds twice."""
    number = float64(float32_of(a))
    if not math.isfinite(number):
        if operation == FRACTION and math.isinf(number):
            return 0x7FC0_0000
        return quiet32(a)
    if operation == FRACTION:
        fraction = float32(number - np.floor(number))  # of -0: +0
        return float32_bits(min(fraction, float32(0.99999994)))
    if operation == TRUNCATE:
        result = np.trunc(number)
    elif operation == CEILING:
        result = np.ceil(number)
    elif operation == FLOOR:
        result = np.floor(number)
    else:
        result = np.rint(number)
    return float32_bits(float32(np.copysign(result, number)))


@compiled
def _approximated(operation: int, a: int) -> int:
    """What the hardware approximates; see the module's head."""
    a = _flushed(a)
    x = float64(float32_of(a))
    if math.isnan(x):
        return quiet32(a)
    if operation == EXPONENTIAL:
        result = np.exp2(x)
    elif operation == LOGARITHM:
        if x < 0:
            return 0x7FC0_0000
        if x == 0:
            return 0xFF80_0000
        result = np.log2(x)
    elif operation == RECIPROCAL:
        if x == 0:
            return (a & 0x8000_0000) | 0x7F80_0000
        result = 1.0 / x
    elif operation == RECIPROCAL_ROOT:
        if x == 0:
            return (a & 0x8000_0000) | 0x7F80_0000
        if x < 0:
            return 0x7FC0_0000
        result = 1.0 / math.sqrt(x)
    elif operation == ROOT:
        if x < 0:
            return 0x7FC0_0000
        result = math.sqrt(x)
    else:
        if math.isinf(x):
            return 0x7FC0_0000
        turn = x - np.floor(x)
        result = math.sin(turn * 2 * math.pi)
        if operation == COSINE:
            result = math.cos(turn * 2 * math.pi)
    return _flushed(float32_bits(float32(result)))


@compiled
def _converted(operation: int, a: int, b: int) -> int:
    if operation == FROM_I32:
        return float32_bits(float32(signed32(a)))
    if operation == FROM_U32:
        return float32_bits(float32(a))
    x = float64(float32_of(a))
    if operation == TO_U32:
        return saturated(x, 0.0, 4294967295.0)
    if operation == TO_I32:
        return saturated(x, -2147483648.0, 2147483647.0)
    if operation == TO_I32_NEAREST:
        return saturated(np.floor(x + 0.5), -2147483648.0, 2147483647.0)
    if operation == TO_I32_FLOOR:
        return saturated(np.floor(x), -2147483648.0, 2147483647.0)
    if operation == TO_F16:
        return float16_bits(x)
    if operation == FROM_F16:
        return float32_bits(float32(float16_of(a & 0xFFFF)))
    if operation == FROM_BYTE0:
        return float32_bits(float32(a & 0xFF))
    if operation == FROM_BYTE1:
        return float32_bits(float32((a >> 8) & 0xFF))
    if operation == FROM_BYTE2:
        return float32_bits(float32((a >> 16) & 0xFF))
    if operation == FROM_BYTE3:
        return float32_bits(float32((a >> 24) & 0xFF))
    if operation == TO_F64:
        return float64_bits(x)
    if operation == FROM_F64:
        return float32_bits(float32(float64_of(a)))
    return float16_bits_toward_zero(x) | (float16_bits_toward_zero(float64(float32_of(b))) << 16)


@compiled
def _exponent_and_mantissa(operation: int, a: int) -> int:
    x = float64(float32_of(a))
    if operation == MANTISSA:
        if not math.isfinite(x) or x == 0:
            return quiet32(a)
        return float32_bits(float32(math.frexp(x)[0]))
    if not math.isfinite(x) or x == 0:
        return 0
    return math.frexp(x)[1]


@compiled
def _dot2_f16(a: int, b: int, c: int) -> int:
    """V_DOT2_F32_F16: two exact products, added to the third source one after the other."""
    total = fused32(float32(float16_of(a & 0xFFFF)), float32(float16_of(b & 0xFFFF)), float32_of(c))
    return float32_bits(fused32(float32(float16_of(a >> 16)), float32(float16_of(b >> 16)), total))


@compiled
def float32_operation(operation: int, a: int, b: int, c: int, flag: bool) -> int:
    """The result of an instruction for one lane. `flag` is the lane's bit of VCC."""
    if operation == MULTIPLY:
        return float32_bits(float32_of(a) * float32_of(b))
    if operation == FUSED:
        return float32_bits(fused32(float32_of(a), float32_of(b), float32_of(c)))
    if operation == ADD:
        return float32_bits(float32_of(a) + float32_of(b))
    if operation == SUBTRACT:
        return float32_bits(float32_of(a) - float32_of(b))
    if operation == SUBTRACT_REVERSED:
        return float32_bits(float32_of(b) - float32_of(a))
    if operation == MULTIPLY_LEGACY:
        if float32_of(a) == 0 or float32_of(b) == 0:
            return 0
        return float32_bits(float32_of(a) * float32_of(b))
    if operation == MINIMUM:
        return minimum32(a, b)
    if operation == MAXIMUM:
        return maximum32(a, b)
    if operation == MINIMUM3:
        return minimum32(minimum32(a, b), c)
    if operation == MAXIMUM3:
        return maximum32(maximum32(a, b), c)
    if operation == MEDIAN3:
        return _median(a, b, c)
    if operation == DIVIDE_FIXUP:
        return _divide_fixup(a, b, c)
    if operation == DIVIDE_FUSED:
        return _divide_fused(a, b, c, flag)
    if operation == FUSED_TO_F16:
        return float16_bits(float64(fused32(float32_of(a), float32_of(b), float32_of(c))))
    if FRACTION <= operation <= FLOOR:
        return _rounded(operation, a)
    if EXPONENTIAL <= operation <= COSINE:
        return _approximated(operation, a)
    if operation == SCALE:
        return _scaled(a, signed32(b))
    if operation == EXPONENT or operation == MANTISSA:
        return _exponent_and_mantissa(operation, a)
    if operation == DOT2_F16:
        return _dot2_f16(a, b, c)
    if operation == TO_FP8_PAIR:
        return byte_float_bits(a, 4, 3) | byte_float_bits(b, 4, 3) << 8
    if operation == TO_BF8_PAIR:
        return byte_float_bits(a, 5, 2) | byte_float_bits(b, 5, 2) << 8
    return _converted(operation, a, b)
