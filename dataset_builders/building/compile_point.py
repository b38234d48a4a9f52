"""The task of a build: compiles a sweep point into the journal's document."""

from __future__ import annotations

import atexit
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.compilers.compile_amdgpu import amdgpu_kernel_of_llvm_ir
from dataset_builders.compilers.compile_nvidia import nvidia_kernel_of_ptx
from dataset_builders.compilers.llvm import LLVMCompiler
from dataset_builders.compilers.triton_compiler import CompiledKernel, compile_kernel
from dataset_builders.execution.storage import is_storage_error, temporary_folder_is_full
from dataset_builders.experts.registry import SOURCES
from dataset_builders.journal.journal import encode_document, result_document
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.experts import ExpertPoint
from verilocc_bench.backends import backend_of
from verilocc_bench.errors import InputError, RejectedKernel


def compile_point(point: SweepPoint | ExpertPoint) -> bytes:
    """The encoded document of a point: its row with its raw code, or its rejection.

    The compilers start when they are first needed, and are kept. Do not call it
    from several threads: Triton works on the environment of the whole process.
    Raises MemoryError, and InputError for a full disk: these are not the
    kernel's fault, so they are not rejections.
    """
    try:
        result: BuiltKernel | RejectedKernel = _build(point)
    except RejectedKernel as rejection:
        cause = rejection.__cause__
        if isinstance(cause, MemoryError):
            raise cause from None
        if (cause is not None and is_storage_error(cause)) or temporary_folder_is_full():
            folder = tempfile.gettempdir()
            raise InputError("cannot be written: no room is left", source=folder) from None
        result = rejection
    return encode_document(result_document(result))


def _build(point: SweepPoint | ExpertPoint) -> BuiltKernel:
    if isinstance(point, ExpertPoint):
        return SOURCES[point.library].build(point)
    try:
        return _build_own(point)
    except RejectedKernel as rejection:
        if rejection.kind != "llvm-crashed":
            raise
    # LLVM may have been killed from outside. A kernel that crashes it does so again.
    return _build_own(point)


def _build_own(point: SweepPoint) -> BuiltKernel:
    timings = Timings()
    started = time.perf_counter()
    kernel = compile_kernel(point, _cache_folder())
    timings.triton_seconds = time.perf_counter() - started
    return _BUILDERS[backend_of(point.arch).vendor](point, kernel, timings)


@cache
def _llvm() -> LLVMCompiler:
    compiler = LLVMCompiler()
    atexit.register(compiler.__exit__, None, None, None)
    return compiler


@cache
def _cache_folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="verilocc-bench-triton-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


_BUILDERS: Mapping[str, Callable[[SweepPoint, CompiledKernel, Timings], BuiltKernel]] = {
    "amd": lambda point, kernel, timings: amdgpu_kernel_of_llvm_ir(point, kernel, _llvm(), timings),
    "nvidia": nvidia_kernel_of_ptx,
}
"""By vendor: the row of what Triton made of a point."""
