"""Writes the files of a dataset folder, and keeps their hashes for the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dataset_builders.sweeps.point import RowPoint
from verilocc_bench.dataset import RawRow, Row, row_digest, write_parquet
from verilocc_bench.files import file_sha256, write_atomically

TRACK_FOLDERS = {"assign": "data", "split": "split"}
"""The folder of each track."""


class FolderWriter:
    """A folder in the making, of rows in the new or the old layout (write_parquet).

    `hashes` are by the names of its files.
    """

    def __init__(self, folder: Path, *, old_layout: bool = False) -> None:
        self.folder, self.old_layout = folder, old_layout
        self.hashes: dict[str, str] = {}

    def add_text(self, name: str, text: str) -> None:
        """Writes a file of text."""
        write_atomically(self.folder / name, text)
        self.note(name)

    def add_lines(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Writes a file of one JSON object a line."""
        self.add_text(name, "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))

    def add_rows(self, path: Path, rows: list[Row] | list[RawRow]) -> None:
        """Writes a Parquet file."""
        write_parquet(rows, self.folder / path, old_layout=self.old_layout)
        self.note(path.as_posix())

    def note(self, name: str) -> None:
        """Keeps the hash of a file."""
        self.hashes[name] = file_sha256(self.folder / name)

    def add_manifest(self, document: Mapping[str, Any]) -> None:
        """Writes the manifest, which comes last."""
        text = json.dumps({**document, "files": self.hashes}, indent=1, sort_keys=True)
        write_atomically(self.folder / "manifest.json", text + "\n")


def row_line(row: Row, raw: RawRow, split: str, file: Path) -> dict[str, Any]:
    """The line of rows.jsonl: what it takes to build the row again and to compare it."""
    return {
        "id": row.id,
        "point": json.loads(row.provenance)["point"],
        "arch": row.arch,
        "family": row.family,
        "kernel": row.kernel,
        "params": json.loads(row.params),
        "track": row.track,
        "split": split,
        "group": row.group,
        "cluster": row.cluster,
        "file": file.as_posix(),
        "row_sha256": row_digest(row),
        "raw_sha256": row_digest(raw),
    }


def rejected_line(point: RowPoint, kind: str, reason: str) -> dict[str, str]:
    """The line of rejected.jsonl."""
    return {
        "point": point.key,
        "family": point.family,
        "arch": point.arch,
        "kernel": point.kernel,
        "params": point.parameters_json,
        "kind": kind,
        "reason": reason,
    }
