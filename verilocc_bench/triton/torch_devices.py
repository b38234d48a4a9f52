"""torch without a GPU: what a script puts on a GPU goes to the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

_GPUS = ("cuda", "hip", "xpu")


@contextlib.contextmanager
def on_the_cpu() -> Iterator[None]:
    """torch's functions and methods take a GPU as the CPU, in this thread. Nothing without torch.

    `device=`, `tensor.to("cuda")` and `tensor.cuda()` are covered; the functions of
    `torch.cuda` are not.
    """
    if find_spec("torch") is None:
        yield
        return
    import torch
    from torch.overrides import TorchFunctionMode

    class CpuMode(TorchFunctionMode):  # type: ignore[misc]  # torch's types are not read
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function is torch.Tensor.cuda:
                return args[0]
            return function(
                *map(moved, args), **{key: moved(value) for key, value in (kwargs or {}).items()}
            )

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type in _GPUS:
            return torch.device("cpu")
        is_name = isinstance(value, str) and value.partition(":")[0] in _GPUS
        return "cpu" if is_name else value

    with CpuMode():
        yield
