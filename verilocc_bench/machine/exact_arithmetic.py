"""Fused multiply-add with one rounding, on numpy arrays.

numpy has no fused multiply-add. Both functions compute `a * b + c` as if exactly
and round the result once, to nearest, ties to even (IEEE 754-2019, 5.4.1
fusedMultiplyAdd). Denormals are kept. A NaN result carries whatever bits numpy
gives; callers that store bits make NaNs canonical.

Method for 64 bits: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly
rounded sums: proved algorithms using rounding to odd", IEEE Transactions on
Computers 57(4), 2008. Its proof excludes overflow and underflow, so operands near
the ends of the exponent range go through exact rational arithmetic instead.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["fused_multiply_add_32", "fused_multiply_add_64"]

Floats32: TypeAlias = NDArray[np.float32]
Floats64: TypeAlias = NDArray[np.float64]

_SPLITTER = 134_217_729.0  # 2**27 + 1, Dekker's constant for 53 bits
# Products and addends in this range keep every error term a normal number.
_SAFE_LEAST, _SAFE_MOST = 2.0**-400, 2.0**400


def fused_multiply_add_32(a: Floats32, b: Floats32, c: Floats32) -> Floats32:
    """`a * b + c` in float32, rounded once; the arguments broadcast.

    The product is exact in 64 bits. The sum is rounded to odd in 64 bits, so that
    rounding it again to 32 bits gives what a single rounding gives: 53 bits are
    more than twice 24 bits and two.
    """
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        total, error = _two_sum(product, c.astype(np.float64))
        return _round_to_odd(total, error).astype(np.float32)


def fused_multiply_add_64(a: Floats64, b: Floats64, c: Floats64) -> Floats64:
    """`a * b + c` in float64, rounded once; the arguments broadcast."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        product, product_error = _two_product(a, b)
        low_sum, low_error = _two_sum(c, product_error)
        high_sum, high_error = _two_sum(product, low_sum)
        tail, tail_error = _two_sum(low_error, high_error)
        result = np.asarray(high_sum + _round_to_odd(tail, tail_error))
        plain = a * b + c
        special = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
        zero = (a == 0) | (b == 0)
        result = np.where(special | zero, plain, result)
        safe = zero | special | (_is_moderate(a) & _is_moderate(b) & (_is_moderate(c) | (c == 0)))
        exact_zero = safe & (result == 0)
        result = np.where(exact_zero, plain, result)
    if not safe.all():
        result = result.copy()
        for place in zip(*np.nonzero(~safe), strict=True):
            result[place] = _fused_by_fractions(float(a[place]), float(b[place]), float(c[place]))
    return result


def _is_moderate(x: Floats64) -> NDArray[np.bool_]:
    magnitude = np.abs(x)
    return (magnitude > _SAFE_LEAST) & (magnitude < _SAFE_MOST)


def _two_sum(a: Floats64, b: Floats64) -> tuple[Floats64, Floats64]:
    """The rounded sum and its exact error (Knuth)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def _two_product(a: Floats64, b: Floats64) -> tuple[Floats64, Floats64]:
    """The rounded product and its exact error (Dekker, Veltkamp)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _split(a: Floats64) -> tuple[Floats64, Floats64]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _round_to_odd(total: Floats64, error: Floats64) -> Floats64:
    """The exact `total + error`, rounded to odd, where `total` is the nearest number.

    An inexact sum goes to whichever neighbour has an odd last bit.
    """
    bits = np.ascontiguousarray(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    even = (bits & 1) == 0
    # Away from zero where the error has the sum's sign: the next magnitude up.
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact & even, bits + step, bits).view(np.float64)


def _fused_by_fractions(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return exact.numerator / exact.denominator  # Python rounds this once
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
