"""The working folder of a build: one small file for each finished sweep point.

A result is there whole or not at all, so a build that was killed resumes
where it was. The folder goes when the dataset is complete.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from dataset_builders.compilers.built_kernel import BuiltKernel
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_json, write_atomically

__all__ = ["Journal", "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a sweep point: a row with its raw machine IR, or a rejection."""

    row: Row | None
    raw: RawRow | None
    rejection: tuple[str, str] | None


class Journal:
    """Results by point key in `folder`. A context manager: one build at a time holds it."""

    def __init__(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        self.folder = folder
        self.fingerprint = dict(fingerprint)
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / "lock").open("w")
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"cannot be written: {reason}", source=self.folder) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InputError("another build is at work here", source=self.folder) from None
        path = self.folder / "fingerprint.json"
        if path.exists():
            found = read_json(path)
            if found != self.fingerprint:
                changed = sorted(k for k in self.fingerprint if found.get(k) != self.fingerprint[k])
                raise InputError(
                    f"the unfinished build here was begun with another {', '.join(changed)}; "
                    "remove the folder to begin anew",
                    source=self.folder,
                )
        else:
            write_atomically(path, json.dumps(self.fingerprint, sort_keys=True, indent=1))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()

    def path(self, key: str) -> Path:
        """The file of a point's result."""
        return self.folder / f"{key}.json.gz"

    def has(self, key: str) -> bool:
        """Whether the point is done."""
        return self.path(key).exists()

    def store(self, key: str, result: BuiltKernel | RejectedKernel) -> None:
        """Writes a point's result."""
        document: dict[str, Any]
        if isinstance(result, RejectedKernel):
            document = {"rejection": [result.kind, result.reason]}
        else:
            document = {"row": asdict(result.row), "raw": asdict(result.raw)}
        data = gzip.compress(json.dumps(document).encode(), compresslevel=3, mtime=0)
        write_atomically(self.path(key), data)

    def load(self, key: str) -> Result:
        """Reads a point's result."""
        try:
            document = json.loads(gzip.decompress(self.path(key).read_bytes()))
        except (OSError, EOFError, ValueError, zlib.error):
            raise InputError("the file is damaged: remove it", source=self.path(key)) from None
        if "rejection" in document:
            kind, reason = document["rejection"]
            return Result(None, None, (kind, reason))
        return Result(Row(**document["row"]), RawRow(**document["raw"]), None)

    def remove(self) -> None:
        """Deletes the folder: the dataset is complete."""
        shutil.rmtree(self.folder)
