"""Compilation by numba, and the bit patterns of floating-point numbers in compiled code.

Compiled code is kept beside this package (or in numba's cache folder, where
that cannot be written), so that only the first call of all waits for it.

Compiled code counts in int64 throughout, because numba makes a float of an
int64 and a uint64 together. A 32-bit register is a number from 0 to 2**32 - 1,
a pair of registers any int64.
"""

from __future__ import annotations

import fcntl
import hashlib
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np

from verilocc_bench.errors import MissingExtraError

try:
    import numba
    from numba.core import types
    from numba.core.caching import IndexDataCacheFile
    from numba.extending import intrinsic
except ModuleNotFoundError:
    raise MissingExtraError("numba", "execute", "the execution of machine code") from None

_INTERPRETED = {
    "__init__", "code_object", "decoding", "denormal_decoding", "disassembly",
    "execution", "launch", "operand_text", "code_rows", "stepping",
}  # fmt: skip
"""Files that define neither compiled code nor the numbers in it."""

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function compiled to machine code, at its first call for each set of types.

    Division by zero gives infinity or NaN, as the hardware does it. Code of the
    functions that it calls is part of it: what is kept is of no use as soon as
    any file of this room changes. (numba by itself looks at the function's own
    file alone.) A number written at a call is an int64 like any other: numba would
    compile the function, and all that it calls, once for each of them. One process at a
    time compiles; the others wait, and take what it kept.
    """
    dispatcher = numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    typed_call, plain = dispatcher.get_call_template, types.unliteral  # type: ignore[attr-defined]
    dispatcher.get_call_template = lambda arguments, keywords: typed_call(
        tuple(map(plain, arguments)), {name: plain(each) for name, each in keywords.items()}
    )
    kept = dispatcher._cache._impl
    dispatcher._cache._cache_file = IndexDataCacheFile(
        kept.locator.get_cache_path(), f"{kept.filename_base}-{_sources()}", _sources()
    )
    turn, alone = _turn(kept.locator.get_cache_path()), dispatcher.compile

    def compile_in_turn(signature: object) -> object:
        with turn:
            return alone(signature)

    dispatcher.compile = compile_in_turn
    return cast("Function", dispatcher)


class _Turn:
    """The right to compile, of one thread of one process; within it, it can be asked for again.

    Where the file cannot be written, every process has it at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> None:
        self._threads.acquire()
        self._depth += 1
        try:
            if self._depth == 1:
                self._lock_file()
        except BaseException:  # the wait was interrupted
            self.__exit__()
            raise

    def _lock_file(self) -> None:
        try:
            self._file = self._path.open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            return

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            self._file.close()
            self._file = None
        self._threads.release()


@cache
def _turn(folder: str) -> _Turn:
    return _Turn(Path(folder) / "compiling.lock")


@cache
def _sources() -> str:
    """A digest of this room's source code, without what never gets into compiled code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _INTERPRETED:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


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
