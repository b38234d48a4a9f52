"""Which files are the dataset: those of a folder, and those that are owned in a repository."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.errors import InputError

__all__ = ["LocalFile", "is_owned", "is_published", "local_files"]

FOLDERS = ("data", "split", "raw", "plots")
FILES = frozenset({"README.md", "manifest.json", "rows.jsonl", "rejected.jsonl", "leakage.json"})
KEPT_FILES = frozenset({"eval.yaml"})
"""Published where a folder has them, left alone where it has not: `build` writes none."""

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of the folder. `path` is relative to it, with slashes.

    `sha256` is what the Hub knows a large file by, `blob_id` (git's SHA-1)
    what it knows any other by.
    """

    path: str
    location: Path
    size_bytes: int
    sha256: str
    blob_id: str


def is_owned(path: str) -> bool:
    """Whether a file of a repository is the dataset's, and goes when the folder has it no more."""
    return path in FILES or (path.split("/", maxsplit=1)[0] in FOLDERS and "/" in path)


def is_published(path: str) -> bool:
    """Whether a file of the folder belongs to the dataset."""
    return is_owned(path) or path in KEPT_FILES


def local_files(folder: Path) -> dict[str, LocalFile]:
    """The dataset's files in a folder by path, without hidden ones.

    Raises InputError for links and anything else that is no plain file.
    """
    found = {}
    for location in sorted(_walk(folder)):
        path = location.relative_to(folder).as_posix()
        if is_published(path):
            found[path] = _read(path, location)
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))
        yield from (Path(parent, name) for name in folders if Path(parent, name).is_symlink())


def _refuse(error: OSError) -> None:
    raise InputError(f"cannot be read: {error.strerror}", source=error.filename)


def _read(path: str, location: Path) -> LocalFile:
    if location.is_symlink() or not location.is_file():
        raise InputError("expected a plain file, no link", source=location)
    try:
        size = location.stat().st_size
        sha256 = hashlib.sha256()
        blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with location.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                sha256.update(block)
                blob.update(block)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=location) from None
    return LocalFile(path, location, size, sha256.hexdigest(), blob.hexdigest())
