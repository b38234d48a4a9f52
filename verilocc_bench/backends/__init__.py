"""Back ends: read problems from the machine code of each vendor, and write answers into it.

To add one, write a package beside `amdgpu` and `nvidia` with the modules that
`backend` lists, and a class here that joins them to a Backend.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.backends.amdgpu import code_cost as amdgpu_code_cost
from verilocc_bench.backends.amdgpu import compare as amdgpu_compare
from verilocc_bench.backends.amdgpu import kernel as amdgpu_kernel
from verilocc_bench.backends.amdgpu import label as amdgpu_label
from verilocc_bench.backends.amdgpu import lower as amdgpu_lower
from verilocc_bench.backends.amdgpu import remarks as amdgpu_remarks
from verilocc_bench.backends.backend import Backend
from verilocc_bench.backends.kernel import (
    CodeComparison,
    ComparedAllocation,
    Kernel,
    LoweredCode,
    ReadOptions,
)
from verilocc_bench.backends.nvidia import compare as nvidia_compare
from verilocc_bench.backends.nvidia import kernel as nvidia_kernel
from verilocc_bench.backends.nvidia import lower as nvidia_lower
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.machine.code_object import is_code_object
from verilocc_bench.targets import Target, get_target

__all__ = [
    "BACKENDS",
    "AmdgpuBackend",
    "Backend",
    "CodeComparison",
    "ComparedAllocation",
    "Kernel",
    "LoweredCode",
    "ReadOptions",
    "backend_of",
    "backend_of_file",
    "code_cost_of",
    "raw_bytes",
    "runnable_problem",
]


class AmdgpuBackend:
    """gfx90a and gfx942. Files are LLVM IR, machine IR before allocation, or code objects.

    A code object's own registers are its label. llc does the rest.
    """

    vendor = "amd"
    raw_format = "mir"
    raw_hash = "machine_ir_sha256"
    own_allocation = "llc's own"
    inserts_waits = True

    # Machine IR is text, and its first bytes do not identify it.
    holds = staticmethod(is_code_object)
    read = staticmethod(amdgpu_kernel.read_kernel)
    read_all = staticmethod(amdgpu_kernel.read_kernels)
    read_raw = staticmethod(amdgpu_kernel.read_raw_kernel)
    remarks = staticmethod(amdgpu_remarks.remarks)
    check_output = staticmethod(amdgpu_lower.check_output)
    lower = staticmethod(amdgpu_lower.lower)
    compiler_answer = staticmethod(amdgpu_label.compiler_answer)
    check_comparison = staticmethod(amdgpu_compare.check_tools)
    compare = staticmethod(amdgpu_compare.compare)

    def raw_bytes(self, content: str) -> bytes:
        """See Backend."""
        return content.encode()

    def machine_problem(self, kernel: Kernel[Any]) -> AllocationProblem:
        """The problem as it is: llc inserts the waits that an answer needs."""
        return kernel.problem

    def check_answer(self, answer: Answer, source: str | Path) -> None:
        """Accepts every answer, with or without edits."""

    code_costs = amdgpu_code_cost.CompiledCosts


class NvidiaBackend:
    """NVIDIA. Files are cubins, with the compiler's registers, or PTX; lowering patches cubins."""

    vendor = "nvidia"
    raw_format = "cubin"
    raw_hash = "machine_code_sha256"
    own_allocation = None
    inserts_waits = False

    holds = staticmethod(nvidia_kernel.holds_code)
    read = staticmethod(nvidia_kernel.read_kernel)
    read_all = staticmethod(nvidia_kernel.read_kernels)
    read_raw = staticmethod(nvidia_kernel.read_raw_kernel)
    machine_problem = staticmethod(nvidia_kernel.machine_problem)
    check_output = staticmethod(nvidia_lower.check_output)
    check_answer = staticmethod(nvidia_lower.check_answer)
    lower = staticmethod(nvidia_lower.lower)
    compare = staticmethod(nvidia_compare.compare)

    def raw_bytes(self, content: str) -> bytes:
        """See Backend."""
        return base64.b64decode(content, validate=True)

    def remarks(self, kernel: nvidia_kernel.SassKernel) -> tuple[str, ...]:
        """None: a cubin is finished code."""
        del kernel
        return ()

    def code_costs(self, kernel: nvidia_kernel.SassKernel) -> Callable[[NamedAssignment], CodeCost]:
        """Nothing: an answer changes no instruction but its registers."""
        del kernel
        return lambda _: CodeCost(0, 0)

    def compiler_answer(self, kernel: nvidia_kernel.SassKernel) -> tuple[NamedAssignment, str]:
        """The registers in the cubin."""
        assert kernel.label is not None
        return kernel.label, "ptxas"

    def check_comparison(self) -> dict[str, str]:
        """No tools: reading the cubin has found nvdisasm already."""
        return {}


BACKENDS: tuple[Backend[Any], ...] = (AmdgpuBackend(), NvidiaBackend())
"""The back ends in the order in which they are asked about a file."""


def backend_of(target: Target | str) -> Backend[Any]:
    """The back end of a target or of its name. Raises InputError for an unknown name."""
    vendor = (get_target(target) if isinstance(target, str) else target).vendor
    return next(backend for backend in BACKENDS if backend.vendor == vendor)


def backend_of_file(data: bytes) -> Backend[Any]:
    """The back end for the code in a file. Text of no known form counts as machine IR."""
    return next((backend for backend in BACKENDS if backend.holds(data)), BACKENDS[0])


def runnable_problem(
    problem: AllocationProblem, kernel: Callable[[], Kernel[Any]]
) -> AllocationProblem:
    """The problem whose answers run by the compiler's own rules.

    It is `problem` itself where waits are inserted after allocation. `kernel` reads
    the compiled code, and is called only if it is needed.
    """
    backend = backend_of(problem.target)
    return problem if backend.inserts_waits else backend.machine_problem(kernel())


def code_cost_of(
    problem: AllocationProblem, kernel: Callable[[], Kernel[Any]]
) -> Callable[[NamedAssignment], CodeCost] | None:
    """The cost of an answer's machine code, as a function of the answer.

    None where the compiler changes nothing after allocation. `kernel` reads the compiled
    code. Raises InputError if a tool is missing.
    """
    backend = backend_of(problem.target)
    if not backend.inserts_waits:
        return None
    backend.check_comparison()
    return backend.code_costs(kernel())


def raw_bytes(raw_format: str, content: str) -> bytes:
    """The bytes in the column `content` of a raw row of that format.

    Content of an unknown format counts as text. Raises ValueError for content that
    contradicts its format.
    """
    for backend in BACKENDS:
        if backend.raw_format == raw_format:
            return backend.raw_bytes(content)
    return content.encode()
