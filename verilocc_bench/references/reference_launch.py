"""One launch of a kernel: its arguments in order, its grid, and what it must leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.numbers import STORAGE, Array, decode

_LEAST_MARK = 1e29

Grid: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A pointer argument: the memory behind it, before the launch.

    `element` is the element's type by the name that parameters use (`fp16`, `bf16`,
    `fp8e4b8`, `i32`, …); `initial` holds its bits in the numpy type of `STORAGE`.
    """

    name: str
    element: str
    initial: Array


@dataclass(frozen=True, slots=True)
class Scalar:
    """An argument passed by value: `i32` or `fp32`."""

    name: str
    element: str
    value: int | float


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """What a buffer holds after the launch.

    `written` marks the elements that the kernel writes; `wanted` holds their values.
    All others keep their initial bits. `tolerance` bounds the largest difference,
    relative to the largest magnitude that is wanted. Magnitudes from 1e29 on are marks
    (the score of a hidden key), which are compared among themselves.
    """

    name: str
    wanted: NDArray[np.float64]
    written: NDArray[np.bool_]
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A kernel, its run-time arguments in the order of its signature, and its grid.

    Arguments that the kernel's parameters switch off are not there. Compilers may
    append arguments of their own: Triton's two scratch pointers, which these kernels
    do not read. `groups` are the work-groups to run, None for the whole grid; expectations
    are about what these write.
    """

    kernel: str
    arguments: tuple[Buffer | Scalar, ...]
    grid: Grid
    expectations: tuple[Expectation, ...]
    groups: tuple[Grid, ...] | None = None

    @property
    def buffers(self) -> dict[str, Buffer]:
        """The pointer arguments by name."""
        return {a.name: a for a in self.arguments if isinstance(a, Buffer)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A buffer after a run against what it must hold.

    `error` is the largest difference relative to the largest magnitude wanted; infinite
    where a result is not finite. `stray_writes` counts elements that changed although
    the kernel must not write them. Both are 0 for a buffer that is only read and intact.
    """

    name: str
    error: float
    tolerance: float
    stray_writes: int

    @property
    def agrees(self) -> bool:
        """True if values are within the tolerance and nothing else was written."""
        return self.error <= self.tolerance and not self.stray_writes


def compare(launch: Launch, memory: Mapping[str, Array]) -> tuple[Comparison, ...]:
    """Compares every buffer with what the launch must leave in it.

    `memory` has each buffer's bits after the run, in its numpy type; its shape may be flat.
    """
    expectations = {e.name: e for e in launch.expectations}
    return tuple(
        _compare(buffer, expectations.get(name), memory[name])
        for name, buffer in launch.buffers.items()
    )


def _compare(buffer: Buffer, expectation: Expectation | None, memory: Array) -> Comparison:
    got = np.asarray(memory, STORAGE[buffer.element]).reshape(buffer.initial.shape)
    size = buffer.initial.itemsize
    bits = np.dtype(f"u{size}")
    changed = np.ascontiguousarray(got).view(bits) != np.ascontiguousarray(buffer.initial).view(
        bits
    )
    if expectation is None:
        return Comparison(buffer.name, 0.0, 0.0, int(changed.sum()))
    written = expectation.written
    numbers = decode(got[written], buffer.element)
    wanted = expectation.wanted[written]
    # A mark such as the score of a hidden key would hide every error in ordinary numbers.
    marks = np.abs(wanted) >= _LEAST_MARK
    error = max(
        _relative_error(numbers[marks], wanted[marks]),
        _relative_error(numbers[~marks], wanted[~marks]),
    )
    strays = int((changed & ~written).sum())
    return Comparison(buffer.name, error, expectation.tolerance, strays)


def _relative_error(numbers: Array, wanted: Array) -> float:
    """The largest difference relative to the largest magnitude that is wanted."""
    if not wanted.size:
        return 0.0
    scale = float(np.abs(wanted).max()) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        difference = float(np.abs(numbers - wanted).max()) / scale
    return difference if np.isfinite(difference) else float("inf")
