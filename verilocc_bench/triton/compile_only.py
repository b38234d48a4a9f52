"""A driver for Triton that has a target and no GPU: kernels are compiled, launches are dropped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.targets import get_target
from verilocc_bench.triton.benchmarks import called_once

_FIRST_DEVICE = 1 << 20
_REGISTERS = 64
"""The registers that a kernel is said to take: scripts divide by it to size their grids."""
_devices = itertools.count(_FIRST_DEVICE)
_AMD = {
    "max_shared_mem": 65_536,
    "max_num_regs": 65_536,
    "max_threads_per_sm": 2_048,
    "warpSize": 64,
    "hip": "6.4",
}
_GPU = "no GPU, compiled for "
DEVICES: Mapping[str, Mapping[str, Any]] = {
    "gfx90a": {
        **_AMD,
        "name": _GPU + "gfx90a",
        "capability": (9, 0),
        "multiprocessor_count": 104,
        "sm_clock_rate": 1_700_000,
        "mem_clock_rate": 1_600_000,
        "mem_bus_width": 4_096,
    },
    "gfx942": {
        **_AMD,
        "name": _GPU + "gfx942",
        "capability": (9, 4),
        "multiprocessor_count": 304,
        "sm_clock_rate": 2_100_000,
        "mem_clock_rate": 2_600_000,
        "mem_bus_width": 8_192,
    },
    "sm_80": {
        "name": _GPU + "sm_80",
        "capability": (8, 0),
        "max_shared_mem": 166_912,
        "max_num_regs": 65_536,
        "max_threads_per_sm": 2_048,
        "warpSize": 32,
        "multiprocessor_count": 108,
        "sm_clock_rate": 1_410_000,
        "mem_clock_rate": 1_215_000,
        "mem_bus_width": 5_120,
        "hip": None,
    },
    "sm_90": {
        "name": _GPU + "sm_90",
        "capability": (9, 0),
        "max_shared_mem": 232_448,
        "max_num_regs": 65_536,
        "max_threads_per_sm": 2_048,
        "warpSize": 32,
        "multiprocessor_count": 132,
        "sm_clock_rate": 1_830_000,
        "mem_clock_rate": 2_619_000,
        "mem_bus_width": 5_120,
        "hip": None,
    },
}
"""What scripts ask of a GPU, by architecture: an MI210, an MI300X, an A100 and an H100.

Compute units and local memory of AMD's stand in ROCm's table of hardware specifications.
Clocks (in kHz) and bus widths give the published bandwidths; no source was read for them. Scripts
choose configurations and grids by these figures; they do not get into a kernel's row.
"""


def device_figures(arch: str) -> Mapping[str, Any]:
    """The row of DEVICES. Raises InputError for an architecture without one."""
    if arch not in DEVICES:
        known = ", ".join(DEVICES)
        raise InputError(f"scripts are compiled for {known}, not for {get_target(arch).name}")
    return DEVICES[arch]


class CompileOnlyDriver:
    """Triton's driver for one target. Each instance is a device of its own.

    So Triton compiles a kernel again that it has compiled for another instance. A
    launch compiles, and runs nothing. Autotuning compiles every configuration, and
    chooses the first one: nothing is measured.
    """

    def __init__(self, arch: str) -> None:
        self.target = triton_target(arch)
        self._device = next(_devices)
        self.utils = SimpleNamespace(
            get_device_properties=lambda _device: dict(device_figures(arch)),
            load_binary=lambda *_: (None, None, _REGISTERS, 0, 1 << 20),
        )

    @classmethod
    def is_active(cls) -> bool:
        """False: Triton never chooses this driver by itself."""
        return False

    def get_current_target(self) -> Any:
        """The target that kernels are compiled for."""
        return self.target

    def get_current_device(self) -> int:
        """The number of the device."""
        return self._device

    def set_current_device(self, _device: int) -> None:
        """Does nothing: there is one device."""

    def get_current_stream(self, _device: int | None = None) -> int:
        """The stream that launches are dropped into."""
        return 0

    def get_active_torch_device(self) -> Any:
        """torch's first GPU, which a capture takes as the CPU."""
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """The part of torch that stands for the device."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        """Runs a call once, so that it is compiled, and says the same time of every call."""
        return called_once

    def get_empty_cache_for_benchmark(self) -> None:
        """None: nothing is measured."""

    def clear_cache(self, _cache: Any) -> None:
        """Does nothing."""

    def launcher_cls(self, _source: Any, _metadata: Any) -> Callable[..., None]:
        """A launcher that launches nothing."""
        return lambda *_arguments, **_options: None

    def map_python_to_cpp_type(self, kind: str) -> str:
        """The name of a type, as it is: no launcher is written."""
        return kind

    def assemble_tensormap_to_arg(self, _tensormaps: Any, arguments: Any) -> Any:
        """The arguments, as they are."""
        return arguments


def triton_target(arch: str) -> Any:
    """Triton's name of a target. Raises InputError for an unknown one."""
    from triton.backends.compiler import GPUTarget

    target = get_target(arch)
    if target.name.startswith("sm_"):
        return GPUTarget("cuda", int(target.name.removeprefix("sm_")), 32)
    if target.name.startswith("gfx"):
        return GPUTarget("hip", target.name, 64)
    raise InputError(f"Triton has no target {target.name!r}")
