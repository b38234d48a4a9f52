"""Element types of buffers: how numpy stores them, and the numbers that the bits mean.

`bf16` and the 8-bit floats have no numpy type; their buffers hold the bits as unsigned
integers. `fp8e4b8` and `fp8e5b16` are Triton's names of the 8-bit floats of gfx942:
one zero, no infinity, and one NaN with the bits 0x80.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

STORAGE: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "fp8e4b8": np.dtype(np.uint8),
    "fp8e5b16": np.dtype(np.uint8),
    "i32": np.dtype(np.int32),
    "int32": np.dtype(np.int32),
    "int8": np.dtype(np.int8),
}
"""The numpy type that holds each element type."""

# (bits of the exponent, its bias)
_BYTE_FLOATS = {"fp8e4b8": (4, 8), "fp8e5b16": (5, 16)}
# What no kernel computes: NaN, or the least integer.
_FILLERS = {"bf16": 0x7FC1, "fp8e4b8": 0x80, "fp8e5b16": 0x80}


def encode(numbers: Array, element: str) -> Array:
    """The stored form of the numbers, each rounded to the nearest, ties to even."""
    if element == "bf16":
        bits = np.asarray(numbers, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if element in _BYTE_FLOATS:
        return _encode_bytes(np.asarray(numbers, np.float64), element)
    if STORAGE[element].kind == "i":
        return np.rint(numbers).astype(STORAGE[element])
    return np.asarray(numbers).astype(STORAGE[element])


def decode(stored: Array, element: str) -> NDArray[np.float64]:
    """The numbers that stored bits mean."""
    if element == "bf16":
        with np.errstate(invalid="ignore"):
            wide: NDArray[np.uint32] = stored.astype(np.uint32) << np.uint32(16)
            return wide.view(np.float32).astype(np.float64)
    if element in _BYTE_FLOATS:
        numbers: NDArray[np.float64] = _byte_numbers(element)[stored]
        return numbers
    return stored.astype(np.float64)


def filler(element: str) -> Any:
    """The stored bits of an element that no kernel may read or write."""
    if element in _FILLERS:
        return _FILLERS[element]
    storage = STORAGE[element]
    return np.iinfo(storage).min if storage.kind == "i" else np.nan


@cache
def _byte_numbers(element: str) -> NDArray[np.float64]:
    exponent_bits, bias = _BYTE_FLOATS[element]
    mantissa_bits = 7 - exponent_bits
    codes = np.arange(256)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    magnitude = (fraction + (exponent > 0)) * 2.0 ** (np.maximum(exponent, 1) - bias)
    numbers = np.where(codes >> 7, -magnitude, magnitude)
    numbers[0x80] = np.nan
    return np.asarray(numbers, np.float64)


def _encode_bytes(numbers: NDArray[np.float64], element: str) -> Array:
    positive = _byte_numbers(element)[:0x80]
    magnitude = np.minimum(np.abs(numbers), positive[-1])
    above = np.searchsorted(positive, magnitude)
    below = np.maximum(above - 1, 0)
    up, down = positive[above] - magnitude, magnitude - positive[below]
    # Codes of neighbours differ in their last bit, so one of the two is even.
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    negative = (numbers < 0) & (code > 0)  # a negative zero would be the NaN
    return np.asarray(np.where(negative, code | 0x80, code), np.uint8)
