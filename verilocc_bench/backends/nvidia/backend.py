"""The back end of sm_80."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.kernel import (
    CodeComparison,
    ComparedAllocation,
    LoweredCode,
    ReadOptions,
)
from verilocc_bench.backends.nvidia import compare, lower
from verilocc_bench.backends.nvidia.cubin import is_cubin
from verilocc_bench.backends.nvidia.kernel import (
    SassKernel,
    read_kernel,
    read_kernels,
    read_raw_kernel,
)
from verilocc_bench.edits import Answer


class NvidiaBackend:
    """See Backend. Files are cubins, with the compiler's registers; lowering patches them."""

    vendor = "nvidia"
    raw_format = "cubin"
    raw_hash = "machine_code_sha256"
    own_allocation = None

    def holds(self, data: bytes) -> bool:
        """See Backend."""
        return is_cubin(data)

    def read(self, data: bytes, source: Path, options: ReadOptions) -> SassKernel:
        """See Backend."""
        return read_kernel(data, source, options)

    def read_all(
        self, data: bytes, source: Path, options: ReadOptions
    ) -> Iterator[tuple[str, SassKernel | str]]:
        """See Backend."""
        return read_kernels(data, source, options)

    def read_raw(self, content: str, problem: AllocationProblem, source: str) -> SassKernel:
        """See Backend."""
        return read_raw_kernel(content, problem, source)

    def raw_bytes(self, content: str) -> bytes:
        """See Backend."""
        return base64.b64decode(content, validate=True)

    def check_output(self, output: Path) -> None:
        """See Backend."""
        lower.check_output(output)

    def check_answer(self, answer: Answer, source: str | Path) -> None:
        """See Backend."""
        lower.check_answer(answer, source)

    def lower(self, kernel: SassKernel, answer: Answer, output: Path) -> LoweredCode:
        """See Backend."""
        return lower.lower(kernel, answer, output)

    def check_comparison(self) -> None:
        """Does nothing: reading the cubin has found nvdisasm already."""

    def compare(
        self, kernel: SassKernel, sides: Sequence[ComparedAllocation], *, with_files: bool
    ) -> CodeComparison:
        """See Backend."""
        return compare.compare(kernel, sides, with_files=with_files)
