"""Fused multiply-add against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verilocc_bench.machine.exact_arithmetic import fused_multiply_add_32, fused_multiply_add_64

EDGES = [
    0.0, -0.0, 1.0, -1.0, 1.0 + 2.0**-23, 2.0**-126, 2.0**-149, 2.0**127, 3.4028234663852886e38,
    2.0**-24, 2.0**-25 + 2.0**-48, -(2.0**-75), 2.0**-1022, 2.0**-1074, 2.0**1023,
    1.7976931348623157e308, 1.0 + 2.0**-52, 2.0**-500, -(2.0**500), np.inf, -np.inf, np.nan,
]  # fmt: skip


def round_to_32(exact: Fraction) -> float:
    """The float32 nearest to a rational number, ties to even, by integers alone."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = -149
    while magnitude / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    units = round(magnitude / Fraction(2) ** exponent)  # ties to even
    value = Fraction(units) * Fraction(2) ** exponent
    rounded = float("inf") if value >= Fraction(2) ** 128 else float(value)
    return rounded if exact > 0 else -rounded


def same(got: float, wanted: float) -> bool:
    if np.isnan(wanted):
        return bool(np.isnan(got))
    return bool(got == wanted and np.signbit(got) == np.signbit(wanted))


def wanted_32(a: float, b: float, c: float) -> float:
    if not np.isfinite([a, b, c]).all():
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return a * b + c if exact == 0 else round_to_32(exact)


def wanted_64(a: float, b: float, c: float) -> float:
    if not np.isfinite([a, b, c]).all():
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float(np.copysign(np.inf, 1 if exact > 0 else -1))


@pytest.mark.parametrize("bits", [32, 64])
def test_edge_values(bits: int) -> None:
    kind = np.float32 if bits == 32 else np.float64
    with np.errstate(all="ignore"):
        edges = np.array(EDGES).astype(kind)
    a, b, c = (x.ravel() for x in np.meshgrid(edges, edges, edges))
    function, wanted = (
        (fused_multiply_add_32, wanted_32) if bits == 32 else (fused_multiply_add_64, wanted_64)
    )
    got = function(a, b, c)
    wrong = [
        (x, y, z, g)
        for x, y, z, g in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True)
        if not same(g, wanted(x, y, z))
    ]
    assert wrong == []


@pytest.mark.parametrize("bits", [32, 64])
def test_near_ties_are_rounded_once(bits: int) -> None:
    """Addends half a unit from the product, where two roundings go wrong."""
    random = np.random.default_rng(7)
    kind = np.float32 if bits == 32 else np.float64
    digits = 24 if bits == 32 else 53
    count = 3000
    a, b = (random.integers(1, 2**digits, count).astype(kind) for _ in range(2))
    product = a.astype(np.float64) * b.astype(np.float64)
    half = 2.0 ** (np.floor(np.log2(product)) + random.integers(-digits - 2, digits + 2, count))
    c = (half * random.choice([-1, 1, 0.5, 1.5], count)).astype(kind)
    function, wanted = (
        (fused_multiply_add_32, wanted_32) if bits == 32 else (fused_multiply_add_64, wanted_64)
    )
    got = function(a, b, c).tolist()
    for x, y, z, g in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        assert same(g, wanted(x, y, z)), (x, y, z)
