"""Builds a launch: random inputs, rows that lie apart in memory, outputs with their masks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.references.numbers import STORAGE, Array, decode, encode, filler
from verilocc_bench.references.reference_launch import Buffer, Expectation, Launch, Scalar
from verilocc_bench.references.signatures import needed_arguments

# Half a unit in the last place is 2**-11 of an fp16 number, 2**-8 of a bf16 number: twice
# that. fp32 sums differ from 64 bits by the order of addition. Integers are exact.
TOLERANCES = {"fp16": 1e-3, "bf16": 8e-3, "fp32": 1e-5, "int32": 0.0}
"""How far each element type may differ from the reference, relative to the largest value."""

_APART_ALIGNED, _APART = 16, 3


def tile_count(length: int, block: int) -> int:
    """How many blocks cover the length."""
    return -(-length // block)


def pipeline_blocks(problem: KernelProblem) -> int:
    """How many blocks a loop takes: enough to fill the software pipeline and go around it."""
    return problem.depth or max(3, problem.integer("num_stages") + 2)


class KernelProblem:
    """A kernel's launch while it is put together.

    `tiles` is how many tiles each tiled dimension of the grid has. With `aligned` among
    the parameters every size and stride is a multiple of 16, as the compiled code was
    promised; without it sizes are odd. `depth` is how many blocks loops take. `sampled` asks
    for a larger grid of which as many work-groups run.
    """

    def __init__(
        self,
        kernel: str,
        parameters: Mapping[str, Any],
        *,
        tiles: int,
        seed: int,
        sampled: bool = False,
        depth: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.depth = depth
        self.parameters = parameters
        self.tiles = tiles
        self.sampled = sampled and tiles > 1
        text = json.dumps([kernel, dict(parameters), tiles, seed], sort_keys=True)
        digest = hashlib.sha256(text.encode()).digest()
        self._random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        self._buffers: dict[str, Buffer] = {}
        self._scalars: dict[str, int | float] = {}
        self._row_lengths: dict[str, int] = {}
        self._expectations: list[Expectation] = []

    def on(self, parameter: str) -> bool:
        """Whether a parameter is there and switched on."""
        return self.parameters.get(parameter, False) not in (False, 0, "none")

    def integer(self, parameter: str) -> int:
        """A parameter that is a number."""
        return int(self.parameters[parameter])

    def element(self, parameter: str = "dtype") -> str:
        """The element type that a parameter names."""
        return str(self.parameters[parameter])

    @property
    def tolerance(self) -> float:
        """The tolerance of the type that the kernel computes with or stores, the wider one."""
        names = (self.element(), self.element("out_dtype" if self.on("out_dtype") else "dtype"))
        return max(TOLERANCES.get(name, 0.0) for name in names)

    def length(self, blocks: int, block: int, *, even: bool, less: int = 1) -> int:
        """A length that `blocks` blocks cover: all of it if `even`, else not the last quite.

        `less` says by how many steps it falls short. An aligned length cannot fall short
        of a block of 16.
        """
        if even:
            return blocks * block
        step = _APART_ALIGNED if self.parameters["aligned"] else _APART
        while less > 1 and less * step >= block:
            less -= 1
        return blocks * block - (less * step if less * step < block else 0)

    def normal(self, *shape: int, scale: float = 1.0) -> NDArray[np.float64]:
        """Normally distributed numbers."""
        return self._random.standard_normal(shape) * scale

    def integers(self, low: int, high: int, *shape: int) -> NDArray[np.int64]:
        """Whole numbers from `low` up to and without `high`."""
        return self._random.integers(low, high, shape)

    def operand(self, *shape: int, element: str, scale: float = 1.0) -> NDArray[np.float64]:
        """Random numbers that the element type holds exactly: all of int8, else normal."""
        if element == "int8":
            return self.integers(-128, 128, *shape).astype(np.float64)
        return decode(encode(self.normal(*shape, scale=scale), element), element)

    def put(self, name: str, numbers: Array, element: str, *, apart: str | None = None) -> Array:
        """Adds an input buffer that holds the numbers; its stored form.

        With `apart`, the name of the distance of its rows, the last two axes are longer in
        memory than the numbers: what lies between is a filler that no kernel may read.
        """
        stored = encode(numbers, element)
        if apart is not None:
            frame = np.full(self._apart(stored.shape, apart), filler(element), STORAGE[element])
            frame[tuple(slice(n) for n in stored.shape)] = stored
            stored = frame
        self._buffers[name] = Buffer(name, element, np.ascontiguousarray(stored))
        return self._buffers[name].initial

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The numbers that a buffer holds before the launch."""
        buffer = self._buffers[name]
        return decode(buffer.initial, buffer.element)

    def expect(
        self,
        name: str,
        wanted: Array,
        element: str,
        *,
        tolerance: float | None = None,
        apart: str | None = None,
        written: Array | None = None,
        initial: Array | None = None,
    ) -> Array:
        """Adds an output buffer and what must be in it; its stored form before the launch.

        `written` masks what the kernel writes (default: all that is wanted). `initial` are
        numbers that it finds there; a filler otherwise.
        """
        shape = wanted.shape if apart is None else self._apart(wanted.shape, apart)
        inside = tuple(slice(n) for n in wanted.shape)
        frame = np.full(shape, filler(element), STORAGE[element])
        if initial is not None:
            frame[inside] = encode(initial, element)
        values, mask = np.zeros(shape), np.zeros(shape, bool)
        values[inside] = wanted
        mask[inside] = True if written is None else written
        self._buffers[name] = Buffer(name, element, frame)
        allowed = self.tolerance if tolerance is None else tolerance
        self._expectations.append(Expectation(name, values, mask, allowed))
        return frame

    def set(self, **scalars: float) -> None:
        """Sets arguments that are passed by value; those that are not needed are dropped."""
        self._scalars |= scalars

    def strides(self, name: str, stored: Array, axes: str) -> None:
        """Sets the distances in elements along the first axes, as `name_axis`."""
        for axis, label in enumerate(axes.split()):
            self._scalars[f"{name}_{label}"] = int(np.prod(stored.shape[axis + 1 :]))

    def launch(self, *grid: int, columns: Sequence[int] | None = None) -> Launch:
        """The launch. KeyError where an argument is missing.

        `columns` are the first numbers of the work-groups to run, None for all.
        """
        arguments: list[Buffer | Scalar] = []
        for name in needed_arguments(self.kernel, self.parameters):
            if name in self._buffers:
                arguments.append(self._buffers[name])
            else:
                value = self._scalars[name]
                element = "fp32" if isinstance(value, float) else "i32"
                arguments.append(Scalar(name, element, value))
        names = {argument.name for argument in arguments}
        expectations = tuple(e for e in self._expectations if e.name in names)
        x, y, z = (*grid, 1, 1)[:3]
        groups = None
        if columns is not None:
            groups = tuple((c, r, p) for p, r, c in product(range(z), range(y), columns))
        return Launch(self.kernel, tuple(arguments), (x, y, z), expectations, groups)

    def row_length(self, length: int, stride: str) -> int:
        """The length in memory of rows of `length` elements, which are `stride` apart.

        It is longer, and equals no other size or stride that is known: an answer that takes
        one for the other is wrong.
        """
        if stride not in self._row_lengths:
            step, longer = _APART, length + _APART
            if self.parameters["aligned"]:
                step, longer = _APART_ALIGNED, tile_count(length, 16) * 16 + _APART_ALIGNED
            while longer in {*self._scalars.values(), *self._row_lengths.values()}:
                longer += step
            self._row_lengths[stride] = longer
        return self._row_lengths[stride]

    def _apart(self, shape: tuple[int, ...], stride: str) -> tuple[int, ...]:
        """The shape in memory: a longer last axis, and more rows before it."""
        longer = self.row_length(shape[-1], stride)
        if len(shape) < 3:
            return (*shape[:-1], longer)
        return (*shape[:-2], shape[-2] + 1 + list(self._row_lengths).index(stride), longer)
