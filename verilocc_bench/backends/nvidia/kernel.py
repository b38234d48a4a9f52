"""Kernels of cubins as allocation problems, from files and from raw rows."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.machine_live_ranges import MachineProblem
from verilocc_bench.backends.kernel import Kernel, ReadOptions
from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.cubin import CubinKernel, is_cubin
from verilocc_bench.backends.nvidia.fat_binary import cubin_with, cubins_of, is_fat_binary
from verilocc_bench.backends.nvidia.kept_apart import machine_live_ranges
from verilocc_bench.backends.nvidia.normalize import NormalizedSass
from verilocc_bench.backends.nvidia.read import GatedFunction, load_kernel, load_kernels
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.tools import assemble, ptx_target
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import decode_text
from verilocc_bench.targets import get_target
from verilocc_bench.targets.nvidia import COMPILER_REGISTERS

_VENDOR = "nvidia"
PTX_HEAD_BYTES = 1 << 16
"""The lines `.version` and `.target` stand at the top, below comments."""


@dataclass(frozen=True, slots=True)
class SassCode:
    """The bytes of a cubin, and one kernel: its place in them, disassembled, and normalized."""

    cubin: bytes
    place: CubinKernel
    function: SassFunction
    normalized: NormalizedSass


SassKernel = Kernel[SassCode]

_PTX = re.compile(rb"^\s*\.version\s+\d+\.\d+\s*$.*?^\s*\.target\s+sm_", re.MULTILINE | re.DOTALL)


def holds_code(data: bytes) -> bool:
    """True for a cubin, a fat binary, or the text of PTX."""
    return is_cubin(data) or is_fat_binary(data) or _PTX.search(data[:PTX_HEAD_BYTES]) is not None


def _cubin_of(data: bytes, source: Path, architecture: str | None) -> bytes:
    """The cubin itself, or the one that ptxas makes of PTX.

    Without `architecture` PTX is assembled for the one that it names if that is known, else
    for sm_80.
    """
    if is_cubin(data):
        return data
    ptx = decode_text(data, source)
    if architecture is None:
        named = (ptx_target(ptx) or "").removesuffix("a")
        architecture = named if named in ARCHITECTURES else "sm_80"
    try:
        return assemble(ptx, architecture=architecture)
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=source) from None


def read_kernel(data: bytes, source: Path, options: ReadOptions) -> SassKernel:
    """The kernel that the options name, or the only one of the cubin.

    Raises InputError if the data is not a whole cubin for sm_80, or contains
    instructions with unknown effects.
    """
    _check_architecture(source, options)
    if is_fat_binary(data):
        data = cubin_with(data, source, options.function, options.arch)
    data = _cubin_of(data, source, options.arch)
    try:
        cubin_kernel, gated = load_kernel(data, source, options.function)
        _check_own_architecture(gated, options)
        limit = _register_limit(cubin_kernel, options.max_threads)
        return _kernel(data, cubin_kernel, gated, limit, str(source))
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=source) from None
    except InputError as error:
        raise error.located(source) from None


def read_kernels(
    data: bytes, source: Path, options: ReadOptions
) -> Iterator[tuple[str, SassKernel | str]]:
    """Each kernel of the file by its name, or the reason why it cannot be read."""
    _check_architecture(source, options)
    cubins = (
        cubins_of(data, source, options.arch)
        if is_fat_binary(data)
        else [_cubin_of(data, source, options.arch)]
    )
    for cubin in cubins:
        yield from _kernels_of(cubin, source, options)


def _kernels_of(
    data: bytes, source: Path, options: ReadOptions
) -> Iterator[tuple[str, SassKernel | str]]:
    for cubin_kernel, gated in load_kernels(data, source):
        if isinstance(gated, str):
            yield cubin_kernel.name, gated
            continue
        limit = _register_limit(cubin_kernel, options.max_threads)
        try:
            _check_own_architecture(gated, options)
            yield cubin_kernel.name, _kernel(data, cubin_kernel, gated, limit, str(source))
        except RejectedKernel as rejection:
            yield cubin_kernel.name, rejection.reason
        except InputError as error:
            yield cubin_kernel.name, error.message


def read_raw_kernel(content: str, problem: AllocationProblem, source: str) -> SassKernel:
    """The kernel of a raw row's cubin, in base64.

    Raises InputError if the code is not `problem`.
    """
    try:
        cubin = base64.b64decode(content, validate=True)
    except binascii.Error:
        raise InputError("expected the cubin in base64", source=source) from None
    # The row's budget gives the register limit that it was made with.
    budget = next(file.count for file in problem.function.files if file.name == "R")
    try:
        place, gated = load_kernel(cubin, source)
        kernel = _kernel(cubin, place, gated, budget + COMPILER_REGISTERS, source)
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=source) from None
    if kernel.problem.id != problem.id:
        raise InputError(f"the cubin is of another function, {kernel.problem.id}", source=source)
    return kernel


def machine_problem(kernel: SassKernel) -> MachineProblem:
    """The kernel's problem with live ranges as the machine sees them.

    The compiler's own assignment solves it, as far as it keeps to the budget.
    """
    code, problem = kernel.code, kernel.problem
    ranges = machine_live_ranges(code.function, code.normalized, problem.liveness)
    return MachineProblem(problem, ranges)


def _check_architecture(source: Path, options: ReadOptions) -> None:
    if options.arch is not None and get_target(options.arch).vendor != _VENDOR:
        raise InputError(f"expected machine IR for {options.arch}, this is a cubin", source=source)


def _check_own_architecture(gated: GatedFunction, options: ReadOptions) -> None:
    found = gated.function.architecture
    if options.arch not in (None, found):
        raise InputError(f"expected a cubin for {options.arch}, this is one for {found}")


def _register_limit(kernel: CubinKernel, max_threads: int | None) -> int:
    """The registers of a thread; `max_threads` replaces the size of the block in the cubin."""
    bounds = kernel.launch_bounds
    if max_threads is not None:
        bounds = replace(bounds, threads=max_threads)
    return bounds.register_limit


def _kernel(
    cubin: bytes, place: CubinKernel, gated: GatedFunction, limit: int, source: str
) -> SassKernel:
    normalized, problem = gated.normalized(limit)
    return Kernel(
        name=normalized.name,
        problem=problem,
        original_names=normalized.original_names,
        label=answer_from_assignment(problem, normalized.assignment),
        source=source,
        code=SassCode(cubin, place, gated.function, normalized),
    )
