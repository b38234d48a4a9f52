"""Back ends: read problems from the machine code of each vendor, and write answers into it.

To add one, write a package beside `amdgpu` and `nvidia` with the modules that
`backend` lists, and name it in BACKENDS.
"""

from __future__ import annotations

from typing import Any

from verilocc_bench.backends.amdgpu.backend import AmdgpuBackend
from verilocc_bench.backends.backend import Backend
from verilocc_bench.backends.kernel import (
    CodeComparison,
    ComparedAllocation,
    Kernel,
    LoweredCode,
    ReadOptions,
)
from verilocc_bench.backends.nvidia.backend import NvidiaBackend
from verilocc_bench.targets import Target, get_target

__all__ = [
    "BACKENDS",
    "Backend",
    "CodeComparison",
    "ComparedAllocation",
    "Kernel",
    "LoweredCode",
    "ReadOptions",
    "backend_of",
    "backend_of_file",
    "raw_bytes",
]

BACKENDS: tuple[Backend[Any], ...] = (NvidiaBackend(), AmdgpuBackend())
"""The back ends in the order in which they are asked about a file; text comes last."""


def backend_of(target: Target | str) -> Backend[Any]:
    """The back end of a target or of its name. Raises InputError for an unknown name."""
    vendor = (get_target(target) if isinstance(target, str) else target).vendor
    return next(backend for backend in BACKENDS if backend.vendor == vendor)


def backend_of_file(data: bytes) -> Backend[Any]:
    """The back end for the code in a file. Text of no known form counts as machine IR."""
    return next((backend for backend in BACKENDS if backend.holds(data)), BACKENDS[-1])


def raw_bytes(raw_format: str, content: str) -> bytes:
    """The bytes in the column `content` of a raw row of that format.

    Content of an unknown format counts as text. Raises ValueError for content that
    contradicts its format.
    """
    for backend in BACKENDS:
        if backend.raw_format == raw_format:
            return backend.raw_bytes(content)
    return content.encode()
