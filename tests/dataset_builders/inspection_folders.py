"""Small dataset folders for tests: kernels of mini, in several splits, with all that belongs to it.

They are written without the code that releases datasets.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from verilocc_bench.dataset import (
    RawRow,
    Row,
    embedded_path,
    read_parquet,
    row_digest,
    write_parquet,
)

SPLITS = {
    "gemm/reduce/f16/16x64": "train",
    "gemm/plain/f16/16x16x64": "validation",
    "gemm/plain/f16/32x64x64": "validation",
    "mha/decode_combine/f16/128x16": "test",
    "gemm/plain/f16/128x128x64": "test",
}
"""By group."""

CHOSEN = {
    *("ff6a8c95c1702273", "283d953e61cef95c", "52dedc6393ee792f"),  # the same on all targets
    *("7705915e057b7b39", "9368e1139eb440c9", "8a0c1350f3e3e019"),
    "56e8316546c07a57",  # of the split track
}
"""The rows of mini that the folder has."""

ROWS_PER_FILE = 1


@dataclass
class Draft:
    """A dataset that can be changed before it is written. `splits` by id."""

    rows: list[Row]
    raws: list[RawRow]
    splits: dict[str, str]
    manifest: dict[str, Any]
    rejected: list[dict[str, str]] = field(default_factory=list)

    def change(self, identifier: str, **columns: Any) -> None:
        """Another row in the place of one."""
        place = [row.id for row in self.rows].index(identifier)
        self.rows[place] = replace(self.rows[place], **columns)

    def write(self, folder: Path) -> Path:
        """Writes everything, consistent but for what the rows themselves say."""
        files = self._write_parquet(folder)
        self._write_lists(folder, files)
        card = yaml.safe_dump({"configs": card_configs(folder)}, sort_keys=False)
        (folder / "README.md").write_text(f"---\n{card}---\n\n# A dataset\n")
        (folder / "leakage.json").write_text(json.dumps(leakage(self.rows, self.splits)))
        (folder / "manifest.json").write_text(json.dumps(self.manifest))
        rehash(folder)
        return folder

    def _write_parquet(self, folder: Path) -> dict[int, str]:
        """The file of each row, by its place in `rows`."""
        raws = {raw.id: raw for raw in self.raws}
        buckets: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            track = "data" if row.track == "assign" else "split"
            name = f"{track}/{row.arch}/{row.family}/{self.splits[row.id]}"
            buckets.setdefault(name, []).append(place)
        files: dict[int, str] = {}
        for bucket, places in buckets.items():
            for shard in range(0, len(places), ROWS_PER_FILE):
                chosen = places[shard : shard + ROWS_PER_FILE]
                total = -(-len(places) // ROWS_PER_FILE)
                name = f"{bucket}-{shard // ROWS_PER_FILE:05d}-of-{total:05d}.parquet"
                files |= dict.fromkeys(chosen, name)
                write_parquet([self.rows[place] for place in chosen], folder / name)
            kept = [raws[self.rows[p].id] for p in places if self.rows[p].id in raws]
            if kept:
                write_parquet(kept, folder / "raw" / f"{bucket}-00000-of-00001.parquet")
        return files

    def _write_lists(self, folder: Path, files: dict[int, str]) -> None:
        raws = {raw.id: raw for raw in self.raws}
        lines = [
            {
                **{name: getattr(row, name) for name in ("id", "arch", "family", "kernel")},
                **{name: getattr(row, name) for name in ("track", "group", "cluster")},
                "point": json.loads(row.provenance)["point"],
                "params": json.loads(row.params),
                "split": self.splits[row.id],
                "file": file,
                "row_sha256": row_digest(row),
                "raw_sha256": row_digest(raws[row.id]) if row.id in raws else "0" * 64,
            }
            for file, _, row in sorted((files[p], p, row) for p, row in enumerate(self.rows))
        ]
        write_lines(folder / "rows.jsonl", lines)
        write_lines(folder / "rejected.jsonl", self.rejected)


@cache
def _mini() -> tuple[tuple[Row, ...], tuple[RawRow, ...]]:
    folder = embedded_path()
    rows = [
        row
        for track in ("data", "split")
        for path in sorted(folder.glob(f"{track}/*/*/*.parquet"))
        for row in read_parquet(path, Row)
        if row.id in CHOSEN
    ]
    ids = {row.id for row in rows}
    raws = [
        raw
        for path in sorted(folder.glob("raw/*/*/*/*.parquet"))
        for raw in read_parquet(path, RawRow)
        if raw.id in ids
    ]
    rows = [replace(row, cluster=row.id) for row in rows]
    return tuple(rows), tuple(raws)


def draft(alone: str | None = None) -> Draft:
    """The rows of mini in `SPLITS`; the first two rows of the split `train` are one cluster.

    With an id there is that row alone.
    """
    rows, raws = _mini()
    manifest = json.loads((embedded_path() / "manifest.json").read_text())
    if alone is not None:
        rows = tuple(row for row in rows if row.id == alone)
        raws = tuple(raw for raw in raws if raw.id == alone)
    manifest |= {"points": len(rows), "files": {}, "rejected": {}}
    manifest["archs"] = sorted({row.arch for row in rows})
    found = Draft(list(rows), list(raws), {row.id: SPLITS[row.group] for row in rows}, manifest)
    cluster = [row.id for row in rows if SPLITS[row.group] == "train"][:2]
    for identifier in cluster:
        found.change(identifier, cluster=cluster[0])
    return found


def rehash(folder: Path) -> None:
    """Puts the hashes of all files into the manifest, as if they were meant to be so."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def card_configs(folder: Path) -> list[dict[str, Any]]:
    """Every file by its full path: no pattern is shared with what is under test."""
    files: dict[str, dict[str, list[str]]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        configs = {"raw": ["raw"], "split": ["split"]}.get(parts[0], ["default", *parts[1:3]])
        for config in configs:
            split = path.name.split("-")[0]
            files.setdefault(config, {}).setdefault(split, []).append(name)
    return [
        {
            "config_name": config,
            "data_files": [{"split": s, "path": paths} for s, paths in splits.items()],
            **({"default": True} if config == "default" else {}),
        }
        for config, splits in files.items()
    ]


def leakage(rows: list[Row], splits: dict[str, str]) -> dict[str, Any]:
    """The nearest training row of each other row, by the definition of edit distance."""
    training = [row for row in rows if splits[row.id] == "train"]
    found = []
    for row in rows:
        if splits[row.id] != "train":
            distance, nearest = min(
                (_distance(row.normalized, t.normalized), t.id) for t in training
            )
            found.append(
                {
                    "id": row.id,
                    "split": splits[row.id],
                    "nearest": nearest,
                    "nearest_split": "train",
                    "distance": round(distance, 4),
                }
            )
    by_split: dict[str, list[float]] = {}
    for entry in found:
        by_split.setdefault(entry["split"], []).append(entry["distance"])
    summary = {
        split: {
            "rows": len(distances),
            "median_distance": statistics.median(distances),
            "minimum_distance": min(distances),
            "share_below": {"0.9": sum(d < 0.9 for d in distances) / len(distances)},
        }
        for split, distances in by_split.items()
    }
    return {"summary": summary, "rows": found}


@cache
def _distance(left: str, right: str) -> float:
    a, b = _tokens(left), _tokens(right)
    return edit_distance(a, b) / max(len(a), len(b))


def edit_distance(left: Sequence[object], right: Sequence[object]) -> int:
    """Wagner and Fischer's table, row by row."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row = row, [i]
        for j, b in enumerate(right, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]


@cache
def _tokens(text: str) -> list[str]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("bb0"))
    return [re.sub(r"%[0-9]+|bb[0-9]+", "", line) for line in lines[start:]]


def kinds(findings: Iterable[Any]) -> Counter[str]:
    return Counter(finding.kind.value for finding in findings)
