"""The task of a build: compiles a sweep point into the journal's document."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from dataset_builders.compilers.built_kernel import BuiltKernel
from dataset_builders.compilers.compile_amdgpu import build_amdgpu_kernel
from dataset_builders.compilers.compile_nvidia import build_nvidia_kernel
from dataset_builders.compilers.llvm import LLVMCompiler
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
    build = _BUILDERS[backend_of(point.arch).vendor]
    try:
        return build(point, _cache_folder())
    except RejectedKernel as rejection:
        if rejection.kind != "llvm-crashed":
            raise
    # LLVM may have been killed from outside. A kernel that crashes it does so again.
    return build(point, _cache_folder())


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


_BUILDERS: Mapping[str, Callable[[SweepPoint, Path], BuiltKernel]] = {
    "amd": lambda point, cache: build_amdgpu_kernel(point, _llvm(), cache),
    "nvidia": build_nvidia_kernel,
}
"""By vendor: the row of one point. Triton keeps files in the folder."""
