"""Compilation by numba, and the bit patterns of floating-point numbers in compiled code.

Compiled code is kept beside this package (or in numba's cache folder, where
that cannot be written), so that only the first call of all waits for it.

Compiled code counts in int64 throughout, because numba makes a float of an
int64 and a uint64 together. A 32-bit register is a number from 0 to 2**32 - 1,
a pair of registers any int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from verilocc_bench.errors import MissingExtraError

__all__ = ["compiled", "float32_bits", "float32_of", "float64_bits", "float64_of", "fused32",
           "fused64"]  # fmt: skip

try:
    import numba
    from numba.core import types
    from numba.extending import intrinsic
except ModuleNotFoundError:
    raise MissingExtraError("numba", "execute", "the execution of machine code") from None

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function compiled to machine code, at its first call for each set of types.

    Division by zero gives infinity or NaN, as the hardware does it.
    """
    return cast("Function", numba.njit(cache=True, error_model="numpy")(function))


@intrinsic  # type: ignore[untyped-decorator]
def float32_of(_context: Any, bits: Any) -> Any:
    """The float32 with the low 32 bits of an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        narrow = builder.trunc(arguments[0], ir.IntType(32))
        return builder.bitcast(narrow, ir.FloatType())

    return types.float32(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def float32_bits(_context: Any, number: Any) -> Any:
    """The bits of a float32, from 0 to 2**32 - 1."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.zext(builder.bitcast(arguments[0], ir.IntType(32)), ir.IntType(64))

    return types.int64(types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def float64_of(_context: Any, bits: Any) -> Any:
    """The float64 with the bits of an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def float64_bits(_context: Any, number: Any) -> Any:
    """The bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def fused32(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` in float32, rounded once."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def fused64(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` in float64, rounded once."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate
