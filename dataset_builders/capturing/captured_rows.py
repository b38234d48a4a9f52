"""From what Triton compiled for a user's script to rows, and to a dataset folder.

The folder has the layout and the lists of a build, with one split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.compilers.compile_amdgpu import amdgpu_kernel_of_llvm_ir
from dataset_builders.compilers.compile_nvidia import nvidia_kernel_of_ptx
from dataset_builders.compilers.llvm import LLVMCompiler
from dataset_builders.compilers.toolchains import toolchain_of, toolchains_of
from dataset_builders.compilers.triton_compiler import CompiledKernel
from dataset_builders.release.card import card_configs
from dataset_builders.release.folder import TRACK_FOLDERS, FolderWriter, rejected_line, row_line
from dataset_builders.sweeps.captured import CAPTURED, CapturedPoint
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.backends import backend_of
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir.text import FORMAT_LINE
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


SPLIT = "test"
_FILE = f"{SPLIT}-00000-of-00001.parquet"
_CARD = """\
# Captured kernels

Kernels of a script, compiled by Triton without a GPU, as register allocation problems with the
compiler's own answer; written by verilocc-bench. `rejected.jsonl` says which kernels have no row,
and why.
"""


def write_captured(rows: CapturedRows, folder: Path) -> None:
    """Writes a dataset folder that every command reads.

    Raises InputError if there are no rows, or if the folder is there and not empty.
    """
    if not rows.built:
        reasons = "; ".join(f"{each.point.kernel}: {each.reason}" for each in rows.refusals)
        raise InputError(f"no kernel can become a row{': ' if reasons else ''}{reasons}")
    if folder.exists() and any(folder.iterdir()):
        raise InputError("expected a new or empty folder", source=folder)
    writer = FolderWriter(folder)
    lines: list[dict[str, Any]] = []
    buckets: dict[tuple[str, str], list[BuiltKernel]] = {}
    for each in rows.built:
        buckets.setdefault((TRACK_FOLDERS[each.row.track], each.row.arch), []).append(each)
    for (place, arch), bucket in sorted(buckets.items()):
        path = Path(place, arch, CAPTURED, _FILE)
        writer.add_rows(path, [each.row for each in bucket])
        writer.add_rows("raw" / path, [each.raw for each in bucket])
        lines += [row_line(each.row, each.raw, SPLIT, path) for each in bucket]
    writer.add_lines("rows.jsonl", lines)
    rejected = [rejected_line(each.point, each.kind, each.reason) for each in rows.refusals]
    writer.add_lines("rejected.jsonl", rejected)
    counts = {(*bucket, CAPTURED, SPLIT): len(found) for bucket, found in buckets.items()}
    head = yaml.safe_dump({"configs": list(card_configs(counts))}, sort_keys=False)
    writer.add_text("README.md", f"---\n{head}---\n\n{_CARD}")
    writer.add_manifest(_manifest(rows, Counter(each.kind for each in rows.refusals)))


def _manifest(rows: CapturedRows, rejected: Mapping[str, int]) -> dict[str, Any]:
    archs = {each.row.arch for each in rows.built} | {each.point.arch for each in rows.refusals}
    versions = {name: version(name) for name in ("triton", "pyarrow", "verilocc-bench")}
    flags: dict[str, list[str]] = {}
    for toolchain in toolchains_of(archs):
        versions |= toolchain.versions()
        flags |= {name: list(options) for name, options in toolchain.options(archs).items()}
    return {
        "sweep": CAPTURED,
        "archs": sorted(archs),
        "points": len(rows.built) + len(rows.refusals),
        "format": FORMAT_LINE,
        "versions": versions,
        "flags": flags,
        "kernel_sources": {},
        "rejected": dict(sorted(rejected.items())),
    }
