"""A dataset of experts' kernels without their compiler: its code is that of kernels of mini."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.experts.archives import Archive
from dataset_builders.experts.cuda_rows import row_of_cubin
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.experts.registry import SOURCES
from dataset_builders.journal.journal import Journal, encode_document, result_document
from dataset_builders.release import writer
from dataset_builders.sweeps.experts import EXPERT, ExpertPoint, make_expert_point
from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, tool_version
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.dataset.rows import BEST_COLUMNS
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir.text import FORMAT_LINE

ROWS = {
    "cutlass_gemm": ("52dedc6393ee792f", "7705915e057b7b39", "7705915e057b7b39"),
    "flash_attention_forward": ("8a0c1350f3e3e019",),
}
"""The kernels of mini whose code stands for that of a library; one of them twice."""

NOTICE = "Redistribution is permitted, with this notice."


class NoticeArchive(Archive):
    """An archive of which the notice alone is asked for."""

    def notice_text(self) -> str:
        return NOTICE


class FakeLibrary(ExpertSource):
    """A library whose kernels are those of mini; the last candidate has no row."""

    def points(self) -> Sequence[ExpertPoint]:
        kernel = KERNELS[self.library]
        places = range(len(ROWS[kernel]) + 1)
        return [make_expert_point("sm_80", kernel, {"place": place}) for place in places]

    def build(self, point: ExpertPoint) -> BuiltKernel:
        place = point.parameters.integer("place")
        if place == len(ROWS[point.kernel]):
            raise RejectedKernel("nvcc-failed", "error: no such template")
        raw = load_raw_row("mini", ROWS[point.kernel][place])
        return row_of_cubin(
            self, point, base64.b64decode(raw.content), source=b"", timings=Timings(), provenance={}
        )

    def versions(self) -> dict[str, str]:
        return {self.library: "1", **{tool: tool_version(tool) for tool in CUDA_TOOLS}}

    def flags(self) -> dict[str, tuple[str, ...]]:
        return {f"nvcc {self.library}": ("-O3",)}

    def label_source(self, versions: Mapping[str, str]) -> str:
        return f"ptxas {versions.get('ptxas')}"

    def check(self, purpose: str) -> None:
        pass


KERNELS = {"cutlass": "cutlass_gemm", "flash-attention": "flash_attention_forward"}
LIBRARIES = tuple(
    FakeLibrary(
        library,
        "BSD-3-Clause",
        "sm_80",
        NoticeArchive("p", "1", "f.whl", "0" * 64, 1, (), "LICENSE"),
        ("source_sha256", "machine_code_sha256"),
    )
    for library in KERNELS
)


def use_fake_libraries(patch: pytest.MonkeyPatch) -> None:
    """Puts the fakes in place of the libraries."""
    for library in LIBRARIES:
        patch.setitem(SOURCES, library.library, library)  # type: ignore[arg-type]


def write_expert_dataset(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Builds and releases all kernels of the fake libraries, in this process.

    All of them are in mini, which must not count; and their best labels are known there.
    """
    use_fake_libraries(patch)
    functions_of = writer._functions_of
    patch.setattr(
        writer, "_functions_of", lambda *n: {} if n[0][:4] == "mini" else functions_of(*n)
    )
    patch.setattr(writer, "better_labels", _best_of_mini)
    points = [point for library in LIBRARIES for point in library.points()]
    journal = Journal(folder.parent.with_name(f"{folder.parent.name}.work"), {})
    with journal:
        for point in points:
            try:
                result: Any = SOURCES[point.library].build(point)
            except RejectedKernel as rejection:
                result = rejection
            journal.store_encoded(point.key, encode_document(result_document(result)))
        writer.write_dataset(points, journal, folder, _manifest(points), progress=False)
    return folder


def _best_of_mini(rows: Mapping[str, Any], *_rest: Any, **_options: Any) -> dict[str, Any]:
    names = (*BEST_COLUMNS, "bank_conflicts")
    known = {row.id: row for row in load_rows("mini").rows}
    return {each: {name: getattr(known[each], name) for name in names} for each in rows}


def _manifest(points: Sequence[ExpertPoint]) -> dict[str, Any]:
    versions: dict[str, str] = {}
    flags: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for library in LIBRARIES:
        versions |= library.versions()
        flags |= {name: list(options) for name, options in library.flags().items()}
        sources |= library.sources()
    return {
        "sweep": EXPERT,
        "archs": ["sm_80"],
        "points": len(points),
        "format": FORMAT_LINE,
        "versions": versions,
        "flags": flags,
        "kernel_sources": sources,
    }
