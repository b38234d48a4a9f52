"""Checks that a folder has the manifest's files, unchanged, no others and no missing shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dataset_builders.building.install import MANIFEST
from dataset_builders.inspection.findings import CheckKind, Findings
from dataset_builders.inspection.layout import (
    CARD,
    LEAKAGE,
    REJECTED,
    ROW_LIST,
    ParquetPlace,
    parquet_place,
)
from dataset_builders.sweeps.captured import CAPTURED
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.files import file_sha256
from verilocc_bench.ir.text import FORMAT_LINE
from verilocc_bench.views.chat import chat_file

_REQUIRED = (MANIFEST, CARD, ROW_LIST, REJECTED, LEAKAGE)


def check_files(
    folder: Path, files: Sequence[str], manifest: Mapping[str, Any] | None, findings: Findings
) -> None:
    """Compares the files of the folder with the manifest's list."""
    present = set(files)
    listed: Mapping[str, str] = {} if manifest is None else manifest["files"]
    required = set(_REQUIRED)
    if manifest is not None and manifest["sweep"] == CAPTURED:
        required.remove(LEAKAGE)
    for name in sorted(required):
        if name not in present and name not in listed:
            findings.add(CheckKind.MISSING_FILE, name, "the file is missing")
    if manifest is None:
        return
    for name, expected in sorted(listed.items()):
        if name not in present:
            findings.add(CheckKind.MISSING_FILE, name, "the manifest lists it, it is not there")
        elif (found := file_sha256(folder / name)) != expected:
            message = f"its SHA-256 is {found}, the manifest says {expected}"
            findings.add(CheckKind.HASH, name, message)
    for name in sorted(present - set(listed) - {MANIFEST}):
        findings.add(CheckKind.UNLISTED_FILE, name, "the manifest does not list this file")
    if manifest["format"] != FORMAT_LINE:
        message = f"the format is {manifest['format']!r}, expected {FORMAT_LINE!r}"
        findings.add(CheckKind.MANIFEST, MANIFEST, message)


def check_shards(files: Iterable[str], findings: Findings) -> list[ParquetPlace]:
    """The Parquet files with paths of rows or raw rows. Reports incomplete sets of shards."""
    found = {file: parquet_place(file) for file in files}
    places = [place for place in found.values() if place is not None]
    rows = (Path(place.file) for place in places if not place.raw)
    chats = {path.as_posix() for each in rows if (path := chat_file(each)) is not None}
    for file in sorted(chats - found.keys()) if chats & found.keys() else ():
        findings.add(CheckKind.MISSING_FILE, file, "other rows have conversations, these have not")
    for file, place in found.items():
        if place is not None or file in chats:
            continue
        if file.endswith(".parquet") or file.startswith(("data/", "split/", "raw/")):
            message = "expected [raw/]data|split/ARCH/FAMILY/SPLIT-00000-of-0000N.parquet"
            findings.add(CheckKind.LAYOUT, file, message)
    if not places:
        findings.add(CheckKind.LAYOUT, "data", "there are no rows")
    series: dict[tuple[bool, tuple[str, str, str, str]], list[ParquetPlace]] = {}
    for place in places:
        series.setdefault((place.raw, place.bucket), []).append(place)
        if place.split not in SPLITS:
            message = f"unknown split {place.split!r}; known are {', '.join(SPLITS)}"
            findings.add(CheckKind.LAYOUT, place.file, message)
    for group in series.values():
        _check_series(group, findings)
    return places


def _check_series(group: Sequence[ParquetPlace], findings: Findings) -> None:
    first = group[0]
    if len({place.shards for place in group}) > 1:
        findings.add(CheckKind.SHARDS, first.file, "the shards beside it have other totals")
        return
    missing = sorted(set(range(first.shards)) - {place.shard for place in group})
    if missing:
        message = f"of {first.shards} shards there is no {', '.join(map(str, missing))}"
        findings.add(CheckKind.SHARDS, first.file, message)
    for place in group:
        if place.shard >= first.shards:
            message = f"there are shards 0 to {first.shards - 1} alone"
            findings.add(CheckKind.SHARDS, place.file, message)
