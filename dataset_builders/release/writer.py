"""Writes a finished build: Parquet files, rejections, card, manifest."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataset_builders.building.journal import Journal
from dataset_builders.release.card import dataset_card
from dataset_builders.release.splits import split_of
from dataset_builders.sweeps import SweepPoint
from verilocc_bench.dataset import RawRow, Row, write_parquet
from verilocc_bench.files import write_atomically

__all__ = ["Summary", "write_dataset"]

ROWS_PER_FILE = 500
RAW_ROWS_PER_FILE = 200

_Bucket = tuple[str, str, str, str]
"""Track folder, architecture, family, split."""


@dataclass(slots=True)
class Summary:
    """Rows by (track folder, architecture, family, split); rejections by kind."""

    rows: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


def write_dataset(
    points: Sequence[SweepPoint], journal: Journal, output: Path, manifest: Mapping[str, Any]
) -> Summary:
    """Writes the dataset of the points, in their order; the manifest comes last.

    Of kernels with the same normalized text the first stays, the others are
    rejected as its duplicates.
    """
    summary = Summary()
    buckets: dict[_Bucket, list[str]] = {}
    first_point: dict[str, str] = {}
    rejected: list[dict[str, str]] = []
    for point in points:
        result = journal.load(point.key)
        rejection = result.rejection
        if result.row is not None:
            row = result.row
            if row.id in first_point:
                rejection = ("duplicate", f"same normalized text as {first_point[row.id]}")
            else:
                first_point[row.id] = point.key
                folder = "data" if row.track == "assign" else "split"
                split = split_of(str(manifest["sweep"]), row.group)
                buckets.setdefault((folder, row.arch, row.family, split), []).append(point.key)
        if rejection is not None:
            kind, reason = rejection
            summary.rejected[kind] += 1
            rejected.append(_rejection(point, kind, reason))
    hashes: dict[str, str] = {}
    for bucket, keys in sorted(buckets.items()):
        summary.rows[bucket] = len(keys)
        for path, data in _files(bucket, keys, journal, output):
            write_parquet(data, path)
            hashes[path.relative_to(output).as_posix()] = _sha256(path)
    lines = "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in rejected)
    write_atomically(output / "rejected.jsonl", lines)
    write_atomically(output / "README.md", dataset_card(summary.rows, manifest))
    document = {**manifest, "files": hashes, "rejected": dict(sorted(summary.rejected.items()))}
    write_atomically(
        output / "manifest.json", json.dumps(document, indent=1, sort_keys=True) + "\n"
    )
    return summary


def _files(
    bucket: _Bucket, keys: list[str], journal: Journal, output: Path
) -> Iterator[tuple[Path, list[Row] | list[RawRow]]]:
    folder, arch, family, split = bucket
    for start, count, name in _chunks(keys, ROWS_PER_FILE, split):
        rows = [journal.load(key).row for key in keys[start : start + count]]
        yield output / folder / arch / family / name, [row for row in rows if row is not None]
    # Both tracks share the raw config: the folder keeps their files apart.
    for start, count, name in _chunks(keys, RAW_ROWS_PER_FILE, split):
        raws = [journal.load(key).raw for key in keys[start : start + count]]
        yield output / "raw" / folder / arch / family / name, [r for r in raws if r is not None]


def _chunks(keys: list[str], size: int, split: str) -> Iterator[tuple[int, int, str]]:
    total = -(-len(keys) // size)
    for index in range(total):
        yield index * size, size, f"{split}-{index:05d}-of-{total:05d}.parquet"


def _rejection(point: SweepPoint, kind: str, reason: str) -> dict[str, str]:
    return {
        "point": point.key,
        "family": point.family,
        "arch": point.arch,
        "kernel": point.kernel,
        "params": point.parameters_json,
        "kind": kind,
        "reason": reason,
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
