"""Typed numbers of the ISA guides' pseudocode, as bits, with exact arithmetic.

Floats are rounded by rational arithmetic, so that nothing here shares code, or a
rounding mistake, with what it checks.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

# width: (bits of the exponent, bits of the mantissa)
_LAYOUTS = {16: (5, 10), 32: (8, 23), 64: (11, 52)}
_POWERS_OF_TWO = {n: Fraction(2) ** n for n in range(-1074, 972)}


class Number(NamedTuple):
    """`kind` is u, i, b (bits), f (float) or x (an exact rational); `bits` are below 2**width."""

    kind: str
    width: int
    bits: int
    exact: Fraction | None = None

    @property
    def integer(self) -> int:
        """The value of an integer."""
        if self.kind == "i" and self.bits >> (self.width - 1) & 1:
            return self.bits - (1 << self.width)
        return self.bits

    @property
    def is_float(self) -> bool:
        return self.kind in "fx"


def bits_of(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def fields(number: Number) -> tuple[int, int, int]:
    """Sign, biased exponent and mantissa field of a float."""
    exponent_bits, mantissa_bits = _LAYOUTS[number.width]
    mantissa = bits_of(number.bits, mantissa_bits)
    exponent = bits_of(number.bits >> mantissa_bits, exponent_bits)
    return number.bits >> (number.width - 1), exponent, mantissa


def is_special(number: Number) -> bool:
    """Infinity or NaN."""
    return number.kind == "f" and fields(number)[1] == (1 << _LAYOUTS[number.width][0]) - 1


def is_nan(number: Number) -> bool:
    return is_special(number) and fields(number)[2] != 0


def is_signalling(number: Number) -> bool:
    return is_nan(number) and not fields(number)[2] >> (_LAYOUTS[number.width][1] - 1)


def quieted(number: Number) -> Number:
    return Number("f", number.width, number.bits | 1 << (_LAYOUTS[number.width][1] - 1))


def is_denormal(number: Number) -> bool:
    _, exponent, mantissa = fields(number)
    return exponent == 0 and mantissa != 0


def infinity(width: int, negative: bool = False) -> Number:
    exponent_bits, mantissa_bits = _LAYOUTS[width]
    return Number("f", width, negative << (width - 1) | ((1 << exponent_bits) - 1) << mantissa_bits)


def nan(width: int) -> Number:
    return quieted(infinity(width))


def zero(width: int, negative: bool = False) -> Number:
    return Number("f", width, negative << (width - 1))


def as_fraction(number: Number) -> Fraction:
    """The exact value of a finite float, or of an integer."""
    if number.kind == "x":
        assert number.exact is not None
        return number.exact
    if number.kind != "f":
        return Fraction(number.integer)
    exponent_bits, mantissa_bits = _LAYOUTS[number.width]
    sign, exponent, mantissa = fields(number)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent:
        mantissa |= 1 << mantissa_bits
    value = mantissa * _POWERS_OF_TWO[max(exponent, 1) - bias - mantissa_bits]
    return -value if sign else value


def make_float(
    exact: Fraction, width: int, *, negative_zero: bool = False, toward_zero: bool = False
) -> Number:
    """The float of that width next to an exact value, ties to even."""
    exponent_bits, mantissa_bits = _LAYOUTS[width]
    if exact == 0:
        return zero(width, negative_zero)
    negative, magnitude = exact < 0, abs(exact)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    unit = Fraction(2) ** (exponent - mantissa_bits)
    scaled = magnitude / unit
    mantissa = math.floor(scaled) if toward_zero else round(scaled)  # round: ties to even
    # A carry into the exponent needs no care: the fields are one number.
    bits = mantissa + (exponent + bias - 1 << mantissa_bits)
    limit = ((1 << exponent_bits) - 1) << mantissa_bits
    if bits >= limit:
        bits = limit - 1 if toward_zero else limit
    return Number("f", width, negative << (width - 1) | bits)


def convert(number: Number, kind: str, width: int, *, toward_zero: bool = False) -> Number:
    """The number as another type: by value, but for bits, which stay bits."""
    if kind == "b" or number.kind == "b":
        return Number(kind, width, bits_of(number.bits, width))
    if kind == "f":
        if number.kind != "f":
            return make_float(as_fraction(number), width, toward_zero=toward_zero)
        if number.width == width:
            return number
        negative = bool(number.bits >> (number.width - 1))
        if is_nan(number):
            return _nan_of_width(number, width)
        if is_special(number):
            return infinity(width, negative)
        return make_float(
            as_fraction(number), width, negative_zero=negative, toward_zero=toward_zero
        )
    if number.is_float:
        return Number(kind, width, bits_of(math.trunc(as_fraction(number)), width))
    return Number(kind, width, bits_of(number.integer, width))


def _nan_of_width(number: Number, width: int) -> Number:
    """A NaN with the leading bits of its payload, quiet or signalling as before."""
    sign, _, mantissa = fields(number)
    ours, theirs = _LAYOUTS[number.width][1], _LAYOUTS[width][1]
    payload = mantissa << (theirs - ours) if theirs >= ours else mantissa >> (ours - theirs)
    return Number("f", width, infinity(width, bool(sign)).bits | (payload or 1))
