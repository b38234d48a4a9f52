"""Compilation by numba, and the bit patterns of floating-point numbers in compiled code.

Compiled code counts in int64 throughout, because numba makes a float of an
int64 and a uint64 together. A 32-bit register is a number from 0 to 2**32 - 1,
a pair of registers any int64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from verilocc_bench.errors import MissingExtraError

try:
    from numba.core import types
    from numba.extending import intrinsic

    from verilocc_bench.compilation import Compilation
except ModuleNotFoundError:
    raise MissingExtraError("numba", "execute", "the execution of machine code") from None

_INTERPRETED = {
    "__init__", "code_object", "decoding", "mode_decoding", "disassembly",
    "execution", "launch", "operand_text", "code_rows", "stepping",
}  # fmt: skip

# Division by zero gives infinity or NaN, as the hardware does it.
compiled = Compilation(
    Path(__file__).parent,
    "the interpreter of machine code (half a minute)",
    _INTERPRETED,
    error_model="numpy",
    _nrt=False,
).compiled

# Conversions in compiled code, where they give plain numbers.
int64: Any = np.int64
uint32: Any = np.uint32
float32: Any = np.float32
float64: Any = np.float64


def _reinterpreted(narrow: Any, result: Any) -> Callable[..., Any]:
    """Code that takes the bits of a number (of an int64 the low ones) as another type's."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (bits,) = arguments
        if narrow is not signature.args[0]:
            bits = builder.trunc(bits, context.get_value_type(narrow))
        if signature.return_type is result:
            return builder.bitcast(bits, context.get_value_type(result))
        bits = builder.bitcast(bits, context.get_value_type(result))
        return builder.zext(bits, context.get_value_type(signature.return_type))

    return generate


@intrinsic  # type: ignore[untyped-decorator]
def float32_of(_context: Any, bits: Any) -> Any:
    """The float32 with the low 32 bits of an int64."""
    return types.float32(types.int64), _reinterpreted(types.int32, types.float32)


@intrinsic  # type: ignore[untyped-decorator]
def float32_bits(_context: Any, number: Any) -> Any:
    """The bits of a float32, from 0 to 2**32 - 1."""
    return types.int64(types.float32), _reinterpreted(types.float32, types.int32)


@intrinsic  # type: ignore[untyped-decorator]
def float64_of(_context: Any, bits: Any) -> Any:
    """The float64 with the bits of an int64."""
    return types.float64(types.int64), _reinterpreted(types.int64, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def float64_bits(_context: Any, number: Any) -> Any:
    """The bits of a float64 as an int64."""
    return types.int64(types.float64), _reinterpreted(types.float64, types.int64)


def _fused(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.fma(*arguments)


@intrinsic  # type: ignore[untyped-decorator]
def fused32(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` in float32, rounded once."""
    return types.float32(types.float32, types.float32, types.float32), _fused


@intrinsic  # type: ignore[untyped-decorator]
def fused64(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` in float64, rounded once."""
    return types.float64(types.float64, types.float64, types.float64), _fused
