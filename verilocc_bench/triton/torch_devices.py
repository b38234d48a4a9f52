"""torch without a GPU: what a script puts on a GPU lies on the CPU, and says that it does not.

Kernels are not run, so no number of a script means anything. Comparisons of tensors
therefore hold, large matrix products are not computed, and what torch says of its GPU
comes from a table.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Self
from unittest import mock

_GPUS = ("cuda", "hip", "xpu")
_LARGE_PRODUCT = 1 << 28
"""Multiplications that take the CPU about a second in half precision."""


@contextlib.contextmanager
def on_the_cpu(device: Mapping[str, Any]) -> Iterator[None]:
    """torch's functions and methods take a GPU as the CPU, in this thread. Nothing without torch.

    `device=`, `tensor.to("cuda")` and `tensor.cuda()` are covered, and the functions of
    `torch.cuda` that tell of devices, streams, events and memory. `device` is a row of
    `compile_only.DEVICES`. A tensor says that it is on `cuda:0`.
    """
    if find_spec("torch") is None:
        yield
        return
    import torch

    with contextlib.ExitStack() as stack:
        for name, value in _cuda_functions(torch, device).items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        stack.enter_context(mock.patch.object(torch.version, "hip", device["hip"]))
        stack.enter_context(mock.patch.object(torch.testing, "assert_close", _nothing))
        stack.enter_context(_mode(torch))
        yield


def _nothing(*_arguments: Any, **_options: Any) -> None:
    """Does nothing."""


def _mode(torch: Any) -> Any:
    from torch.overrides import TorchFunctionMode

    gpu, cpu = torch.device("cuda", 0), torch.device("cpu")
    answers: dict[Any, Any] = {
        torch.allclose: True,
        torch.equal: True,
        torch.Tensor.allclose: True,
        torch.Tensor.equal: True,
        torch.Tensor.is_cuda.__get__: True,
        torch.Tensor.device.__get__: gpu,
        torch.Tensor.get_device: 0,
    }
    products = {
        torch.matmul,
        torch.mm,
        torch.bmm,
        torch.Tensor.matmul,
        torch.Tensor.__matmul__,
        torch.Tensor.mm,
        torch.Tensor.bmm,
    }

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type in _GPUS:
            return cpu
        is_name = isinstance(value, str) and value.partition(":")[0] in _GPUS
        return "cpu" if is_name else value

    class CpuMode(TorchFunctionMode):  # type: ignore[misc]  # torch's types are not read
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function in answers:
                return answers[function]
            if function is torch.device:
                return function(*args, **(kwargs or {}))
            if function is torch.Tensor.cuda:
                return args[0]
            if function in products and len(args) == 2 and not kwargs and _is_large(*args):
                return _uncomputed_product(torch, *args)
            return function(
                *map(moved, args), **{key: moved(value) for key, value in (kwargs or {}).items()}
            )

    return CpuMode()


def _is_large(left: Any, right: Any) -> bool:
    """True if a product of matrices is large, and nobody asks for its gradient."""
    if min(left.ndim, right.ndim) < 2 or left.requires_grad or right.requires_grad:
        return False
    multiplications: int = math.prod(left.shape) * right.shape[-1]
    return multiplications > _LARGE_PRODUCT


def _uncomputed_product(torch: Any, left: Any, right: Any) -> Any:
    """Memory for a product, which nobody has written."""
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return torch.empty((*batch, *left.shape[-2:-1], *right.shape[-1:]), dtype=left.dtype)


class _GpuEvent:
    """An event of a stream. Between any two of them lies a millisecond: nothing is measured."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.cuda_event = 0

    def record(self, stream: Any = None) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def query(self) -> bool:
        """True: there is nothing to wait for."""
        return True

    def elapsed_time(self, _end: Any) -> float:
        """One millisecond."""
        return 1.0


class _GpuStream:
    """A stream that nothing is put into. It is a context manager as `torch.cuda.stream` is."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.cuda_stream = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing."""

    def record_event(self, event: Any = None) -> Any:
        """The event, or a new one."""
        return event or _GpuEvent()

    def wait_stream(self, _stream: Any) -> None:
        """Does nothing."""

    def wait_event(self, _event: Any) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def query(self) -> bool:
        """True: there is nothing to wait for."""
        return True


def _cuda_functions(torch: Any, device: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for functions of `torch.cuda`, by their names there."""
    major, minor = device["capability"]
    properties = SimpleNamespace(
        name=device["name"],
        major=major,
        minor=minor,
        multi_processor_count=device["multiprocessor_count"],
        warp_size=device["warpSize"],
        max_threads_per_multi_processor=device["max_threads_per_sm"],
        regs_per_multiprocessor=device["max_num_regs"],
        shared_memory_per_block_optin=device["max_shared_mem"],
        gcnArchName=device["name"],
    )

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *_arguments, **_options: value

    stream = _GpuStream()
    values = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        "get_device_name": device["name"],
        "current_stream": stream,
        "default_stream": stream,
        "stream": stream,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        **dict.fromkeys(
            (
                "init",
                "set_device",
                "set_stream",
                "synchronize",
                "empty_cache",
                "manual_seed",
                "manual_seed_all",
                "reset_peak_memory_stats",
            )
        ),
    }
    found = {name: constant(value) for name, value in values.items() if hasattr(torch.cuda, name)}
    return found | {"Event": _GpuEvent, "Stream": _GpuStream}
