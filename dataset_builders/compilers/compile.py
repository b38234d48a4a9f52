"""From a sweep point to a row, for every architecture."""

from __future__ import annotations

from pathlib import Path

from dataset_builders.compilers.built_kernel import BuiltKernel
from dataset_builders.compilers.compile_amdgpu import build_amdgpu_kernel
from dataset_builders.compilers.compile_nvidia import build_nvidia_kernel
from dataset_builders.compilers.llvm import LLVMCompiler
from dataset_builders.sweeps.point import SweepPoint


def build_kernel(point: SweepPoint, llvm: LLVMCompiler, cache: Path | None = None) -> BuiltKernel:
    """The row of one point. Raises RejectedKernel, with the reason, if there is none.

    `cache` is a folder in which Triton may keep files.
    """
    if point.arch == "sm_80":
        return build_nvidia_kernel(point, cache)
    return build_amdgpu_kernel(point, llvm, cache)
