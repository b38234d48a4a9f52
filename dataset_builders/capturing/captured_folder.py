"""Captured rows as a dataset folder: the layout and the lists of a build, with one split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from dataset_builders.capturing.captured_rows import CapturedRows
from dataset_builders.compilers.built_kernel import BuiltKernel
from dataset_builders.compilers.toolchains import toolchains_of
from dataset_builders.release.card import card_configs
from dataset_builders.release.folder import (
    TRACK_FOLDERS,
    FolderWriter,
    rejected_line,
    row_line,
)
from dataset_builders.sweeps.captured import CAPTURED
from verilocc_bench.errors import InputError
from verilocc_bench.ir.text import FORMAT_LINE

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
    for (place, arch), bucket in sorted(_buckets(rows.built).items()):
        path = Path(place, arch, CAPTURED, _FILE)
        writer.add_rows(path, [each.row for each in bucket])
        writer.add_rows("raw" / path, [each.raw for each in bucket])
        lines += [row_line(each.row, each.raw, SPLIT, path) for each in bucket]
    writer.add_lines("rows.jsonl", lines)
    rejected = [rejected_line(each.point, each.kind, each.reason) for each in rows.refusals]
    writer.add_lines("rejected.jsonl", rejected)
    writer.add_text("README.md", _card(rows.built))
    writer.add_manifest(_manifest(rows, Counter(each.kind for each in rows.refusals)))


def _buckets(built: Iterable[BuiltKernel]) -> dict[tuple[str, str], list[BuiltKernel]]:
    found: dict[tuple[str, str], list[BuiltKernel]] = {}
    for each in built:
        found.setdefault((TRACK_FOLDERS[each.row.track], each.row.arch), []).append(each)
    return found


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


def _card(built: Iterable[BuiltKernel]) -> str:
    counts = Counter(
        (TRACK_FOLDERS[each.row.track], each.row.arch, CAPTURED, SPLIT) for each in built
    )
    head = yaml.safe_dump({"configs": list(card_configs(counts))}, sort_keys=False)
    return f"---\n{head}---\n\n{_CARD}"
