"""Captured rows as a dataset folder: the layout and the lists of a build, with one split."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from dataset_builders.capturing.rows import CapturedRows
from dataset_builders.compilers.built_kernel import BuiltKernel
from dataset_builders.compilers.toolchains import toolchains_of
from dataset_builders.release.card import card_configs
from dataset_builders.sweeps.captured import CAPTURED
from verilocc_bench.dataset import row_digest
from verilocc_bench.dataset.parquet import write_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.ir.text import FORMAT_LINE

SPLIT = "test"
_FILE = f"{SPLIT}-00000-of-00001.parquet"
_FOLDERS = {"assign": "data", "split": "split"}
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
    writer = _FolderWriter(folder)
    lines: list[dict[str, Any]] = []
    for (place, arch), bucket in sorted(_buckets(rows.built).items()):
        lines += writer.add_bucket(Path(place, arch, CAPTURED, _FILE), bucket)
    writer.add_lines("rows.jsonl", lines)
    rejected = [
        {
            "point": each.point.key,
            "family": CAPTURED,
            "arch": each.point.arch,
            "kernel": each.point.kernel,
            "params": each.point.parameters_json,
            "kind": each.kind,
            "reason": each.reason,
        }
        for each in rows.refusals
    ]
    writer.add_lines("rejected.jsonl", rejected)
    writer.add_text("README.md", _card(rows.built))
    manifest = _manifest(rows, Counter(each.kind for each in rows.refusals)) | {
        "files": writer.hashes
    }
    write_atomically(
        folder / "manifest.json", json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    )


class _FolderWriter:
    """Writes files and keeps their hashes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}

    def add_bucket(self, path: Path, built: list[BuiltKernel]) -> list[dict[str, Any]]:
        """Writes the rows and the raw rows of one file; returns the lines of its rows."""
        write_parquet([each.row for each in built], self.folder / path)
        write_parquet([each.raw for each in built], self.folder / "raw" / path)
        self._note(path)
        self._note("raw" / path)
        return [_line(each, path) for each in built]

    def add_lines(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Writes a file of one JSON object a line."""
        self.add_text(name, "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))

    def add_text(self, name: str, text: str) -> None:
        """Writes a file of text."""
        write_atomically(self.folder / name, text)
        self._note(Path(name))

    def _note(self, path: Path) -> None:
        data = (self.folder / path).read_bytes()
        self.hashes[path.as_posix()] = hashlib.sha256(data).hexdigest()


def _buckets(built: Iterable[BuiltKernel]) -> dict[tuple[str, str], list[BuiltKernel]]:
    found: dict[tuple[str, str], list[BuiltKernel]] = {}
    for each in built:
        found.setdefault((_FOLDERS[each.row.track], each.row.arch), []).append(each)
    return found


def _line(built: BuiltKernel, path: Path) -> dict[str, Any]:
    row = built.row
    return {
        "id": row.id,
        "point": json.loads(row.provenance)["point"],
        "arch": row.arch,
        "family": row.family,
        "kernel": row.kernel,
        "params": json.loads(row.params),
        "track": row.track,
        "split": SPLIT,
        "group": row.group,
        "cluster": row.cluster,
        "file": path.as_posix(),
        "row_sha256": row_digest(row),
        "raw_sha256": row_digest(built.raw),
    }


def _manifest(rows: CapturedRows, rejected: Mapping[str, int]) -> dict[str, Any]:
    archs = {each.row.arch for each in rows.built} | {each.point.arch for each in rows.refusals}
    versions = {name: version(name) for name in ("triton", "pyarrow", "verilocc-bench")}
    flags: dict[str, list[str]] = {}
    for toolchain in toolchains_of(archs):
        versions |= toolchain.versions()
        flags |= {name: list(options) for name, options in toolchain.options.items()}
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
    counts = Counter((_FOLDERS[each.row.track], each.row.arch, CAPTURED, SPLIT) for each in built)
    head = yaml.safe_dump({"configs": list(card_configs(counts))}, sort_keys=False)
    return f"---\n{head}---\n\n{_CARD}"
