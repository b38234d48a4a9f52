"""The two libraries that nvcc compiles: CUTLASS and FlashAttention-2."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.experts.archives import Archive
from dataset_builders.experts.cuda_rows import row_of_cubin
from dataset_builders.experts.cutlass import cutlass_points, cutlass_text
from dataset_builders.experts.flash import flash_points, flash_text
from dataset_builders.experts.nvcc import OPTIONS, compile_cubin, compiler_versions, folder_hash
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.sweeps.experts import ExpertPoint
from verilocc_bench.backends.nvidia.tools import CUDA_OPTIONS, CUDA_TOOLS, find_tool, tool_version

OWN_HEADERS = Path(__file__).with_name("headers")
"""Headers of this project in place of PyTorch's: see its README.md."""

CUTLASS_ARCHIVE = Archive(
    "nvidia-cutlass",
    "4.2.0.0",
    "nvidia_cutlass-4.2.0.0-py3-none-any.whl",
    "f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6",
    6_440_597,
    ("cutlass_library/source/include", "nvidia_cutlass-4.2.0.0.dist-info/licenses"),
    "nvidia_cutlass-4.2.0.0.dist-info/licenses/LICENSE.txt",
)
FLASH_ARCHIVE = Archive(
    "flash-attn",
    "2.8.3.post2",
    "flash_attn-2.8.3.post2.tar.gz",
    "d0f9f0b08a986cdeadbffcf5ec8b3a8f514366c68ad1853d3ab061bc83cc340b",
    8_453_127,
    ("csrc/flash_attn/src", "csrc/cutlass/include", "LICENSE"),
    "LICENSE",
)
_HASHES = ("source_sha256", "machine_code_sha256")


@dataclass(frozen=True, slots=True)
class CudaLibrary(ExpertSource):
    """A library of C++ templates, of which nvcc compiles one kernel at a time.

    `headers` are its folders of headers, in the archive. `own_headers` are those
    of this project that it needs besides. `text` writes the C++ of a candidate.
    """

    headers: tuple[str, ...]
    own_headers: Path | None
    options: tuple[str, ...]
    candidates: Callable[[], Sequence[ExpertPoint]]
    text: Callable[[ExpertPoint], str]

    def points(self) -> Sequence[ExpertPoint]:
        """The candidates."""
        return self.candidates()

    def build(self, point: ExpertPoint) -> BuiltKernel:
        """The row of one candidate. Raises RejectedKernel, with the reason, if there is none."""
        timings = Timings()
        started = time.perf_counter()
        text = self.text(point)
        unpacked = self.archive.folder()
        headers = {f"library{place}": unpacked / name for place, name in enumerate(self.headers)}
        if self.own_headers is not None:
            headers["stand_ins"] = self.own_headers
        cubin = compile_cubin(text, headers, self.options)
        timings.compiler_seconds = time.perf_counter() - started
        own = {}
        if self.own_headers is not None:
            own = {
                "stand_ins": "headers of this project in place of three of PyTorch's: "
                "ATen/cuda/CUDAGeneratorImpl.h, ATen/cuda/detail/UnpackRaw.cuh, "
                "c10/cuda/CUDAException.h",
                "stand_ins_sha256": folder_hash(self.own_headers),
            }
        built = row_of_cubin(
            self, point, cubin, source=text.encode(), timings=timings, provenance=own
        )
        timings.own_seconds = time.perf_counter() - started - timings.compiler_seconds
        return built

    def versions(self) -> dict[str, str]:
        """The versions of the library and of the compilers."""
        return {
            self.library: self.archive.version,
            **compiler_versions(),
            **{tool: tool_version(tool) for tool in CUDA_TOOLS},
        }

    def flags(self) -> dict[str, tuple[str, ...]]:
        """The options of the compiler for this library, and of the disassembler."""
        readers = {name: options for name, options in CUDA_OPTIONS.items() if name != "ptxas"}
        return {f"nvcc {self.library}": (*OPTIONS, *self.options), **readers}

    def sources(self) -> dict[str, str]:
        """The hashes of the archive, and of headers of this project."""
        found = ExpertSource.sources(self)
        if self.own_headers is not None:
            found[f"{self.library} headers in place of PyTorch's"] = folder_hash(self.own_headers)
        return found

    def label_source(self, versions: Mapping[str, str]) -> str:
        """The assembler, whose allocation it is."""
        return f"ptxas {versions.get('ptxas')}"

    def check(self, purpose: str) -> None:
        """Raises InputError or MissingExtraError if a compiler or the archive is missing."""
        del purpose
        compiler_versions()
        for tool in CUDA_TOOLS:
            find_tool(tool)
        self.archive.folder()


CUTLASS = CudaLibrary(
    "cutlass",
    "BSD-3-Clause",
    "sm_80",
    CUTLASS_ARCHIVE,
    _HASHES,
    ("cutlass_library/source/include",),
    None,
    (),
    cutlass_points,
    cutlass_text,
)
FLASH_ATTENTION = CudaLibrary(
    "flash-attention",
    "BSD-3-Clause",
    "sm_80",
    FLASH_ARCHIVE,
    _HASHES,
    ("csrc/flash_attn/src", "csrc/cutlass/include"),
    OWN_HEADERS,
    ("--use_fast_math",),
    flash_points,
    flash_text,
)
