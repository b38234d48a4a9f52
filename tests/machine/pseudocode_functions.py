"""Operators, functions and constants of the ISA guides' pseudocode.

What the guides leave to the reader is decided here: conversions from float to integer
saturate and take NaN as 0; UNDERFLOW is zero, OVERFLOW infinity; a number compared with
DENORM is asked whether it is denormal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from operator import add, and_, mul, or_, sub, xor
from typing import Any

from tests.machine import pseudocode_numbers as numbers
from tests.machine.pseudocode_numbers import Number, as_fraction, bits_of, convert

_LARGEST_POWER = 5000
SAME_ZERO = "== with sign"
"""The operator of `== -0.0` and `== +0.0`, which ask for the sign of a zero."""

Environment = dict[str, Any]


class Denormal:
    """The constant DENORM: equal to every denormal number."""


def boolean(value: Number) -> bool:
    return bool(as_fraction(value)) if value.is_float else value.bits != 0


def of_bool(value: bool) -> Number:
    return Number("u", 1, int(value))


def unary(operator: str, value: Any) -> Any:
    if operator == "+":
        return value
    if operator == "!":
        return of_bool(not boolean(value))
    if operator == "~":
        return Number(value.kind, value.width, bits_of(~value.bits, value.width))
    if value.kind == "f":
        return Number("f", value.width, value.bits ^ 1 << (value.width - 1))
    return Number(value.kind, value.width, bits_of(-value.bits, value.width))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    # Less or greater: false of a NaN, unlike !=.
    "<>": lambda a, b: a < b or a > b,
}  # fmt: skip


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": add, "-": sub, "*": mul, "&": and_, "|": or_, "^": xor,
}  # fmt: skip


def binary(operator: str, left: Any, right: Any, environment: Environment) -> Number:
    if isinstance(right, Denormal):
        return of_bool(numbers.is_denormal(left))
    if operator == "**":
        # Beyond this every format has only zero and infinity.
        exponent = min(max(right.integer, -_LARGEST_POWER), _LARGEST_POWER)
        return Number("x", 0, 0, as_fraction(left) ** exponent)
    if operator == SAME_ZERO:
        return of_bool(left.bits == right.bits)
    if operator in _COMPARISONS:
        return _compare(operator, left, right)
    if operator in ("<<", ">>"):
        return _shift(operator, left, right)
    if left.is_float or right.is_float:
        return _float_operation(operator, left, right)
    width = max(left.width, right.width)
    kind = left.kind if left.width >= right.width else right.kind
    if kind == "b":
        kind = "u"
    return Number(kind, width, bits_of(_INTEGER[operator](left.integer, right.integer), width))


def _shift(operator: str, left: Number, right: Number) -> Number:
    value = left.integer << right.integer if operator == "<<" else left.integer >> right.integer
    return Number(left.kind, left.width, bits_of(value, left.width))


def _python_value(number: Number) -> Any:
    """Something that Python compares as numbers compare; NaN as a float NaN."""
    if number.kind != "f":
        return as_fraction(number) if number.kind == "x" else number.integer
    sign = -1.0 if number.bits >> (number.width - 1) else 1.0
    if numbers.is_nan(number):
        return math.nan
    if numbers.is_special(number):
        return math.copysign(math.inf, sign)
    return as_fraction(number) or math.copysign(0.0, sign)


def _compare(operator: str, left: Number, right: Number) -> Number:
    return of_bool(_COMPARISONS[operator](_python_value(left), _python_value(right)))


def _is_zero(number: Number) -> bool:
    return bits_of(number.bits, number.width - 1) == 0


def _float_operation(operator: str, left: Number, right: Number) -> Number:  # noqa: PLR0912
    if left.kind != "f":
        left, right = right, left  # a product with an exact power
    width = max(left.width, right.width if right.kind == "f" else 0)
    if right.kind == "x":
        if numbers.is_special(left):
            return left
        negative = bool(left.bits >> (left.width - 1))
        return numbers.make_float(
            as_fraction(left) * as_fraction(right), width, negative_zero=negative
        )
    a, b = convert(left, "f", width), convert(right, "f", width)
    if operator == "-":
        operator, b = "+", unary("-", b)
    sign_a, sign_b = a.bits >> (width - 1), b.bits >> (width - 1)
    if numbers.is_nan(a) or numbers.is_nan(b):
        return numbers.nan(width)
    special = numbers.is_special(a) or numbers.is_special(b)
    if operator == "+":
        if special:
            if numbers.is_special(a) and numbers.is_special(b) and sign_a != sign_b:
                return numbers.nan(width)
            return a if numbers.is_special(a) else b
        return numbers.make_float(
            as_fraction(a) + as_fraction(b), width, negative_zero=bool(sign_a and sign_b)
        )
    negative = bool(sign_a ^ sign_b)
    if operator == "*":
        if special:
            return (
                numbers.nan(width)
                if _is_zero(a) or _is_zero(b)
                else numbers.infinity(width, negative)
            )
        return numbers.make_float(as_fraction(a) * as_fraction(b), width, negative_zero=negative)
    if numbers.is_special(a):
        return numbers.nan(width) if numbers.is_special(b) else numbers.infinity(width, negative)
    if numbers.is_special(b):
        return numbers.zero(width, negative)
    if _is_zero(b):
        return numbers.nan(width) if _is_zero(a) else numbers.infinity(width, negative)
    return numbers.make_float(as_fraction(a) / as_fraction(b), width, negative_zero=negative)


def _fma(_environment: Environment, a: Number, b: Number, c: Number) -> Number:
    width = max(a.width, b.width, c.width)
    if any(numbers.is_special(x) for x in (a, b, c)):
        if numbers.is_special(c) and not (numbers.is_special(a) or numbers.is_special(b)):
            return c if not numbers.is_nan(c) else numbers.nan(width)
        return _float_operation("+", _float_operation("*", a, b), c)
    negative_product = bool((a.bits ^ b.bits) >> (width - 1))
    negative_zero = negative_product and bool(c.bits >> (width - 1))
    return numbers.make_float(
        as_fraction(a) * as_fraction(b) + as_fraction(c), width, negative_zero=negative_zero
    )


def _scaled_fma(environment: Environment, a: Number, b: Number, c: Number, n: Number) -> Number:
    """`a * b + c`, times a power of two, rounded once."""
    if any(numbers.is_special(x) for x in (a, b, c)):
        return _fma(environment, a, b, c)
    exact = (as_fraction(a) * as_fraction(b) + as_fraction(c)) * Fraction(2) ** n.integer
    if exact == 0:
        return _fma(environment, a, b, c)
    return numbers.make_float(exact, a.width)


def _to_integer(kind: str, width: int) -> Callable[..., Number]:
    """Saturating; NaN gives 0."""
    low, high = (0, 2**width - 1) if kind == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)

    def function(_environment: Environment, x: Number) -> Number:
        if numbers.is_nan(x):
            return Number(kind, width, 0)
        if numbers.is_special(x):
            value = low if x.bits >> (x.width - 1) else high
        elif x.is_float:
            value = math.trunc(as_fraction(x))
        else:
            value = x.integer
        return Number(kind, width, bits_of(min(max(value, low), high), width))

    return function


def _to_float(width: int) -> Callable[..., Number]:
    def function(environment: Environment, x: Number) -> Number:
        toward_zero = isinstance(environment.get("ROUND_MODE"), str)
        result = convert(x, "f", width, toward_zero=toward_zero)
        return numbers.quieted(result) if numbers.is_nan(result) else result

    return function


def _extend(kind: str, width: int) -> Callable[..., Number]:
    return lambda _environment, x: Number(kind, width, bits_of(x.integer, width))


def _rounded(way: Callable[[Fraction], int]) -> Callable[..., Number]:
    def function(_environment: Environment, x: Number) -> Number:
        if numbers.is_special(x):
            return x
        negative = bool(x.bits >> (x.width - 1))
        return numbers.make_float(Fraction(way(as_fraction(x))), x.width, negative_zero=negative)

    return function


def _exponent(_environment: Environment, x: Number) -> Number:
    return Number("i", 32, numbers.fields(x)[1])


def _mantissa(_environment: Environment, x: Number) -> Number:
    """The magnitude between one half and one, with the number's sign."""
    value = as_fraction(x)
    if value == 0:
        return x
    while abs(value) >= 1:
        value /= 2
    while abs(value) < Fraction(1, 2):
        value *= 2
    return numbers.make_float(value, x.width)


def _approximate(function: Callable[[float], float]) -> Callable[..., Number]:
    """A function of the mathematics library, rounded once more."""

    def apply(_environment: Environment, *arguments: Number) -> Number:
        x = arguments[-1]
        value = _python_value(x)
        try:
            result = function(float(value))
        except ValueError:
            result = math.nan
        except OverflowError:
            result = math.inf
        if math.isnan(result):
            return numbers.nan(x.width)
        if math.isinf(result):
            return numbers.infinity(x.width, result < 0)
        return numbers.make_float(
            Fraction(result), x.width, negative_zero=math.copysign(1, result) < 0
        )

    return apply


def _log2(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x)


def _square_root(x: float) -> float:
    return x if x == 0 else math.sqrt(x)


def _fract(environment: Environment, x: Number) -> Number:
    floor = FUNCTIONS["floor"](environment, x)
    return _float_operation("-", x, floor)


def _flush(_environment: Environment, x: Number) -> Number:
    return numbers.zero(x.width, bool(x.bits >> (x.width - 1))) if numbers.is_denormal(x) else x


def _frexp_exponent(_environment: Environment, x: Number) -> Number:
    value, exponent = abs(as_fraction(x)), 0
    while value >= 1:
        value, exponent = value / 2, exponent + 1
    while 0 < value < Fraction(1, 2):
        value, exponent = value * 2, exponent - 1
    return Number("i", 32, bits_of(exponent, 32))


def _of_turn(function: Callable[[float], float]) -> Callable[..., Number]:
    """A function of an angle in turns, which is reduced to one turn exactly."""

    def apply(environment: Environment, x: Number) -> Number:
        if numbers.is_special(x):
            return numbers.nan(x.width)
        angle = numbers.make_float(as_fraction(x) % 1, 64)
        return convert(
            _approximate(lambda turn: function(2 * math.pi * turn))(environment, angle),
            "f",
            x.width,
        )

    return apply


_CONVERSIONS = [
    "f16_to_f32", "f32_to_f16", "f32_to_f64", "f64_to_f32", "i32_to_f32", "u32_to_f32",
    "i32_to_f64", "u32_to_f64", "i16_to_f16", "u16_to_f16", "f32_to_i32", "f32_to_u32",
    "f64_to_i32", "f64_to_u32", "f16_to_i16", "f16_to_u16", "u32_to_u16", "i32_to_i16",
    "i8_to_i32", "u8_to_u32", "i16_to_i32", "u16_to_u32",
]  # fmt: skip


def _conversion(source: str, result: str) -> Callable[..., Number]:
    kind, width = result[0], int(result[1:])
    if kind == "f":
        return _to_float(width)
    is_wider = source[0] != "f" and width > int(source[1:])
    return _extend(kind, width) if is_wider else _to_integer(kind, width)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # Not of the table: for texts that correct it.
    "flush": _flush,
    "round_to_even": _rounded(round),
    "half_up": _rounded(lambda value: math.floor(value + Fraction(1, 2))),
    "frexp_exponent": _frexp_exponent,
    "scaled_fma": _scaled_fma,
    "sin_of_turn": _of_turn(math.sin),
    "cos_of_turn": _of_turn(math.cos),
    # The table's.
    "isNAN": lambda e, x: of_bool(numbers.is_nan(x)),
    "isSignalNAN": lambda e, x: of_bool(numbers.is_signalling(x)),
    "isQuietNAN": lambda e, x: of_bool(numbers.is_nan(x) and not numbers.is_signalling(x)),
    "cvtToQuietNAN": lambda e, x: numbers.quieted(x),
    "abs": lambda e, x: Number("f", x.width, bits_of(x.bits, x.width - 1)),
    "sign": lambda e, x: Number("u", 1, x.bits >> (x.width - 1)),
    "exponent": _exponent,
    "mantissa": _mantissa,
    "fma": _fma,
    "ldexp": lambda e, x, n: _float_operation("*", x, Number("x", 0, 0, Fraction(2) ** n.integer)),
    "floor": _rounded(math.floor),
    "trunc": _rounded(math.trunc),
    "fract": _fract,
    "isEven": lambda e, x: of_bool(not numbers.is_special(x) and as_fraction(x) % 2 == 0),
    "sqrt": _approximate(_square_root),
    "pow": _approximate(lambda x: math.inf if x > 2000 else 2.0**x),
    "log2": _approximate(_log2),
    "sin": _approximate(math.sin),
    "cos": _approximate(math.cos),
    "signext": lambda e, x: Number("i", 64, bits_of(x.integer, 64)),
    "signext_from_bit": lambda e, x, n: _sign_from_bit(x, n.integer),
    **{name: _conversion(*name.split("_to_")) for name in _CONVERSIONS},
}


def _sign_from_bit(x: Number, width: int) -> Number:
    if width == 0:
        return Number("i", x.width, 0)
    low = bits_of(x.bits, width)
    if low >> (width - 1) & 1:
        low -= 1 << width
    return Number("i", x.width, bits_of(low, x.width))


CONSTANTS: dict[str, Any] = {
    "NAN": numbers.nan(64),
    "INF": numbers.infinity(64),
    "DENORM": Denormal(),
    "PI": numbers.make_float(Fraction(math.pi), 64),
    "OVERFLOW_F32": numbers.infinity(32),
    "OVERFLOW_F64": numbers.infinity(64),
    "UNDERFLOW_F32": numbers.zero(32),
    "UNDERFLOW_F64": numbers.zero(64),
    "ROUND_TOWARD_ZERO": "toward zero",
}
