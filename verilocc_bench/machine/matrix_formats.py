"""Number formats of matrix instructions: from register bits to numbers.

Each decoder takes register contents of shape (waves, registers, lanes) as uint32
and returns the lane's elements in order, shape (waves, lanes, elements): register
by register, the low bits of a register first.

Sources: "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set Architecture
guides, chapter Matrix Arithmetic Instructions. fp8 and bf8 on gfx942 are the
formats with one zero and one NaN (E4M3 with bias 8, E5M2 with bias 16): MI300 guide,
"FP8 and BF8 data formats"; P. Micikevicius et al. and Graphcore/AMD, arXiv
2206.02915. XF32 ignores the low 13 bits of its inputs: MI300 guide, V_MFMA_F32_16X16X8_XF32
("mantissa is truncated to 10 bits").
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Format", "Registers", "decode"]

Registers: TypeAlias = NDArray[np.uint32]


class Format(Enum):
    """A number format, by the name that mnemonics use."""

    F64 = "f64"
    F32 = "f32"
    XF32 = "xf32"
    F16 = "f16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    I8 = "i8"
    I32 = "i32"

    @property
    def bits(self) -> int:
        """The width of one element."""
        return _BITS[self]


_BITS = {
    Format.F64: 64, Format.F32: 32, Format.XF32: 32, Format.I32: 32,
    Format.F16: 16, Format.BF16: 16, Format.FP8: 8, Format.BF8: 8, Format.I8: 8,
}  # fmt: skip

# The least normal magnitude; below it gfx90a takes 16-bit inputs as zero.
LEAST_NORMAL = {Format.F16: 2.0**-14, Format.BF16: 2.0**-126}


def decode(values: Registers, number_format: Format) -> NDArray[Any]:
    """The elements of each lane: float64, or int64 for the integer formats."""
    return _DECODERS[number_format](values)


def _parts(values: Registers, part_type: type[np.generic]) -> NDArray[Any]:
    """Splits each register in elements of a narrower type, low bits first."""
    waves, registers, lanes = values.shape
    parts = np.ascontiguousarray(values).astype("<u4", copy=False).view(part_type)
    split = parts.reshape(waves, registers, lanes, -1).transpose(0, 2, 1, 3)
    return split.reshape(waves, lanes, -1)


def _f64(values: Registers) -> NDArray[np.float64]:
    pairs = np.ascontiguousarray(values.transpose(0, 2, 1))
    return pairs.view(np.float64)


def _f32(values: Registers) -> NDArray[np.float64]:
    return _parts(values, np.float32).astype(np.float64)


def _xf32(values: Registers) -> NDArray[np.float64]:
    # A NaN whose payload lies in the ignored bits would turn into an infinity.
    kept = values & np.uint32(0xFFFF_E000)
    is_nan = (values & np.uint32(0x7FFF_FFFF)) > np.uint32(0x7F80_0000)
    return _f32(np.where(is_nan, np.uint32(0x7FC0_0000), kept))


def _f16(values: Registers) -> NDArray[np.float64]:
    return _parts(values, np.float16).astype(np.float64)


def _bf16(values: Registers) -> NDArray[np.float64]:
    halves = _parts(values, np.uint16).astype(np.uint32) << np.uint32(16)
    return halves.view(np.float32).astype(np.float64)


def _i8(values: Registers) -> NDArray[np.int64]:
    return _parts(values, np.int8).astype(np.int64)


def _i32(values: Registers) -> NDArray[np.int64]:
    return _parts(values, np.int32).astype(np.int64)


def _byte_floats(exponent_bits: int, bias: int) -> NDArray[np.float64]:
    """The 256 numbers of an 8-bit format with one zero and its NaN at 0x80."""
    mantissa_bits = 7 - exponent_bits
    numbers = np.empty(256, np.float64)
    for code in range(256):
        exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        fraction = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        magnitude = (fraction + (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias)
        numbers[code] = -magnitude if code >> 7 else magnitude
    numbers[0x80] = np.nan
    return numbers


_FP8_NUMBERS = _byte_floats(exponent_bits=4, bias=8)
_BF8_NUMBERS = _byte_floats(exponent_bits=5, bias=16)


def _fp8(values: Registers) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = _FP8_NUMBERS[_parts(values, np.uint8)]
    return numbers


def _bf8(values: Registers) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = _BF8_NUMBERS[_parts(values, np.uint8)]
    return numbers


_DECODERS: dict[Format, Callable[[Registers], NDArray[Any]]] = {
    Format.F64: _f64, Format.F32: _f32, Format.XF32: _xf32, Format.F16: _f16,
    Format.BF16: _bf16, Format.FP8: _fp8, Format.BF8: _bf8, Format.I8: _i8, Format.I32: _i32,
}  # fmt: skip
