"""Runs the kernels in Triton's interpreter, on numpy arrays, without torch or a GPU.

Only for processes that were started with TRITON_INTERPRET=1 (see `kernel_cases`).
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataset_builders.kernels.specifications import (
    KERNELS,
    OPTIONS,
    TYPES,
    Argument,
    ParameterValue,
)

Array: TypeAlias = NDArray[Any]

# All bits set is NaN in every float type. Wide enough for a tile that runs over.
_GUARD_BYTES = 1 << 14
_GUARD_VALUE = 0xFF


def hasten() -> None:
    """From now on the interpreter leaves out what takes three quarters of its time.

    It patches the language once for each function, not at every call: the process can compile
    nothing any more. And it does sums of integers once, like compiled code, not in 64 bits too.
    """
    from triton.runtime import interpreter

    options = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.interpreter_builder.options = options
    patch = interpreter._patch_lang

    @functools.cache
    def patch_first(function: Any) -> Any:
        patch(function)
        return interpreter._LangPatchScope()  # nothing is restored after the call

    interpreter._patch_lang = patch_first


class Tensor:
    """What the interpreter asks of a torch tensor: a contiguous copy of an array, guarded.

    The memory on both sides is NaN, which a stray load carries into the result
    and a stray store destroys. It is its own storage, and already on the CPU.
    """

    def __init__(self, array: Array) -> None:
        self._memory = np.full(array.nbytes + 2 * _GUARD_BYTES, _GUARD_VALUE, np.uint8)
        inside = self._memory[_GUARD_BYTES : _GUARD_BYTES + array.nbytes]
        self.values: Array = inside.view(array.dtype).reshape(array.shape)
        self.values[...] = array
        self.dtype = array.dtype

    def guards_are_untouched(self) -> bool:
        sides = self._memory[:_GUARD_BYTES], self._memory[-_GUARD_BYTES:]
        return all(bool((side == _GUARD_VALUE).all()) for side in sides)

    def data_ptr(self) -> int:
        return int(self.values.ctypes.data)

    def untyped_storage(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def new_empty(self, *_: object, **__: object) -> Tensor:
        return self

    def set_(self, *_: object) -> None:
        pass

    def copy_(self, _: Tensor) -> None:
        pass

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.values.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.values.itemsize for step in self.values.strides)


def run_kernel(
    name: str,
    grid: tuple[int, ...],
    parameters: Mapping[str, ParameterValue],
    **arguments: Array | float,
) -> None:
    """Interprets a kernel over the grid; what it stores is in the arrays afterwards.

    `parameters` replace the specification's defaults. As when compiling, an argument that the
    parameters switch off is not passed, given or not. TypeError for names that the specification
    lacks and for arguments that are missing; AssertionError for a store just outside of an array.
    """
    specification = KERNELS[name]
    values = dict(specification.defaults) | dict(parameters)
    known = {argument.name for argument in specification.arguments}
    needed = {a.name for a in specification.arguments if _is_needed(a, values)}
    unknown = ({*parameters} - specification.parameter_names) | ({*arguments} - known)
    missing = needed - {*arguments}
    if unknown or missing:
        raise TypeError(f"{name}: unknown {sorted(unknown)}, missing {sorted(missing)}")

    passed: dict[str, Any] = dict.fromkeys(known)
    passed |= {n.upper(): v for n, v in values.items() if n not in {*OPTIONS, *TYPES}}
    passed |= {n: _to_tensor(arguments[n]) for n in needed}
    # Masked elements may overflow or be divided by zero; wrong results show by themselves.
    with np.errstate(all="ignore"):
        _interpreted(specification.module, name)[grid](**passed)
    for argument, tensor in passed.items():
        if isinstance(tensor, Tensor):
            assert tensor.guards_are_untouched(), f"{name} stores outside of {argument}"
            arguments[argument][...] = tensor.values


def _is_needed(argument: Argument, values: Mapping[str, ParameterValue]) -> bool:
    return not argument.needed_by or values[argument.needed_by] not in (False, 0, "none")


def _to_tensor(value: Array | float) -> Tensor | float:
    return Tensor(value) if isinstance(value, np.ndarray) else value


def _interpreted(module: str, name: str) -> Any:
    from triton.runtime.interpreter import InterpretedFunction

    function = getattr(importlib.import_module(f"dataset_builders.kernels.{module}"), name)
    if not isinstance(function, InterpretedFunction):
        raise TypeError("TRITON_INTERPRET was not set when the kernels were imported")
    # Ours chooses an instruction by target; the interpreter knows only Triton's own builtins.
    for path, loaded in list(sys.modules.items()):
        if path.startswith("dataset_builders.kernels.") and hasattr(loaded, "power_of_two"):
            loaded.power_of_two = _power_of_two
    return function


def _power_of_two(x: Any) -> Any:
    from triton import language

    # Looked up at each call: the interpreter replaces it while a kernel runs.
    return language.exp2(x)
