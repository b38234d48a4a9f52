"""From what Triton compiled for a user's script to rows, in the way of the builders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.compilers.compile_amdgpu import amdgpu_kernel_of_llvm_ir
from dataset_builders.compilers.compile_nvidia import nvidia_kernel_of_ptx
from dataset_builders.compilers.llvm import LLVMCompiler
from dataset_builders.compilers.toolchains import toolchain_of
from dataset_builders.compilers.triton_compiler import CompiledKernel
from dataset_builders.sweeps.captured import CapturedPoint
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.backends import backend_of
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.targets import TARGETS

_Build = Callable[[CapturedPoint, CompiledKernel, LLVMCompiler], BuiltKernel]

_BUILD: dict[str, _Build] = {
    "amd": lambda point, kernel, llvm: amdgpu_kernel_of_llvm_ir(point, kernel, llvm, Timings()),
    "nvidia": lambda point, kernel, _: nvidia_kernel_of_ptx(point, kernel, Timings()),
}


@dataclass(frozen=True, slots=True)
class CapturedCode:
    """One kernel that Triton compiled: what it was compiled with, and its text."""

    point: CapturedPoint
    kernel: CompiledKernel


@dataclass(frozen=True, slots=True)
class RefusedKernel:
    """A kernel that cannot become a row. `kind` groups the reasons."""

    point: CapturedPoint
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class CapturedRows:
    """Rows with their raw code, in the order of compilation, and the kernels without a row."""

    built: tuple[BuiltKernel, ...]
    refusals: tuple[RefusedKernel, ...]


def captured_rows(captured: Iterable[CapturedCode], license_name: str) -> CapturedRows:
    """The rows of kernels. Of equal functions the first one has a row.

    Raises MissingExtraError if a compiler is not installed.
    """
    built: dict[str, BuiltKernel] = {}
    refusals: list[RefusedKernel] = []
    with LLVMCompiler() as llvm:
        for code in captured:
            point = code.point
            if point.arch not in TARGETS:
                known = ", ".join(TARGETS)
                reason = f"compiled for {point.arch}; expected one of {known}"
                refusals.append(RefusedKernel(point, "unknown-architecture", reason))
                continue
            toolchain_of(point.arch).check("compiling captured kernels")
            try:
                found = _BUILD[backend_of(point.arch).vendor](point, code.kernel, llvm)
            except RejectedKernel as rejection:
                refusals.append(RefusedKernel(point, rejection.kind, rejection.reason))
            except InputError as error:
                refusals.append(RefusedKernel(point, "unsupported", error.message))
            else:
                first = built.get(found.row.id)
                if first is not None:
                    reason = f"the same function as {first.row.kernel} {first.row.params}"
                    refusals.append(RefusedKernel(point, "duplicate", reason))
                    continue
                row = found.row
                conflicts = None
                if row.label is not None:
                    problem = AllocationProblem.from_text(row.normalized)
                    conflicts = count_bank_conflicts(problem, row.label).any
                row = replace(row, license=license_name, cluster=row.id, bank_conflicts=conflicts)
                built[found.row.id] = replace(found, row=row)
    return CapturedRows(tuple(built.values()), tuple(refusals))
