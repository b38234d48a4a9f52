"""The back end of gfx90a and gfx942."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu import compare, lower
from verilocc_bench.backends.amdgpu.kernel import (
    MachineKernel,
    read_kernel,
    read_kernels,
    read_raw_kernel,
)
from verilocc_bench.backends.kernel import (
    CodeComparison,
    ComparedAllocation,
    LoweredCode,
    ReadOptions,
)
from verilocc_bench.edits import Answer


class AmdgpuBackend:
    """See Backend. Files are LLVM's machine IR before allocation; llc makes machine code."""

    vendor = "amd"
    raw_format = "mir"
    raw_hash = "machine_ir_sha256"
    own_allocation = "llc's own"

    def holds(self, _data: bytes) -> bool:
        """Always False: machine IR is text, and its first bytes do not identify it."""
        return False

    def read(self, data: bytes, source: Path, options: ReadOptions) -> MachineKernel:
        """See Backend."""
        return read_kernel(data, source, options)

    def read_all(
        self, data: bytes, source: Path, options: ReadOptions
    ) -> Iterator[tuple[str, MachineKernel | str]]:
        """See Backend."""
        return read_kernels(data, source, options)

    def read_raw(self, content: str, problem: AllocationProblem, source: str) -> MachineKernel:
        """See Backend."""
        return read_raw_kernel(content, problem, source)

    def raw_bytes(self, content: str) -> bytes:
        """See Backend."""
        return content.encode()

    def check_output(self, output: Path) -> None:
        """See Backend."""
        lower.check_output(output)

    def check_answer(self, answer: Answer, source: str | Path) -> None:
        """Accepts every answer, with or without edits."""

    def lower(self, kernel: MachineKernel, answer: Answer, output: Path) -> LoweredCode:
        """See Backend."""
        return lower.lower(kernel, answer, output)

    def check_comparison(self) -> None:
        """See Backend."""
        compare.check_tools()

    def compare(
        self, kernel: MachineKernel, sides: Sequence[ComparedAllocation], *, with_files: bool
    ) -> CodeComparison:
        """See Backend."""
        return compare.compare(kernel, sides, with_files=with_files)
