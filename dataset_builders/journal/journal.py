"""The working folder of a build: every finished piece of work, by its key.

Each piece is a small file, `KEY.json.gz`, which is written aside, forced to the disk
and renamed. So a process that is killed at any time loses nothing that it stored, and
half-written files are never read. The folder is deleted when the dataset is complete.

The document of a point is `{"timings", "row", "raw"}` or `{"timings", "rejection"}`. `row`
lacks the columns that only the whole dataset can give. Journals of an earlier version
have no `timings`.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import shutil
import sys
import zlib
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
from dataset_builders.execution.storage import storage_errors_named
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_json, write_atomically

_SUFFIX = ".json.gz"
_AGAIN = "give the command again, which compiles it anew"


def encode_document(document: Mapping[str, Any]) -> bytes:
    """The bytes for `Journal.store_encoded`: JSON, packed by gzip without a date."""
    return gzip.compress(json.dumps(document).encode(), compresslevel=3, mtime=0)


def decode_document(data: bytes) -> dict[str, Any]:
    """The document that `encode_document` has packed."""
    document = json.loads(gzip.decompress(data))
    if not isinstance(document, dict):
        raise TypeError("no JSON object")
    return document


class Journal:
    """JSON documents by key in `folder`. A context manager: one process at a time holds it.

    Keys must be safe as file names. Raises InputError for a folder that another
    fingerprint began. Damaged files found when the folder is opened are
    deleted, with a note on standard error; their work is done again.
    """

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
        try:
            self._check_fingerprint()
            with storage_errors_named(self.folder):
                self._put_in_order()
        except BaseException:
            self._lock.close()
            raise
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
        """The file of a document."""
        return self.folder / f"{key}{_SUFFIX}"

    def has(self, key: str) -> bool:
        """True if there is a document with this key."""
        return self.path(key).exists()

    def store(self, key: str, document: Mapping[str, Any]) -> None:
        """Writes a document. It is on the disk when this returns."""
        self.store_encoded(key, encode_document(document))

    def store_encoded(self, key: str, data: bytes) -> None:
        """Writes a document that encode_document has made."""
        write_atomically(self.path(key), data)

    def load_document(self, key: str) -> dict[str, Any]:
        """The document of a key. Raises InputError with the file's name if damaged or missing."""
        try:
            return decode_document(self.path(key).read_bytes())
        except (OSError, EOFError, TypeError, ValueError, zlib.error):
            raise InputError(f"the file is damaged: {_AGAIN}", source=self.path(key)) from None

    def load(self, key: str) -> PointResult:
        """The result of a sweep point, from the document that a build stored."""
        try:
            return result_from_document(self.load_document(key))
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "holds no result as this version writes it: remove the folder",
                source=self.path(key),
            ) from None

    def remove(self) -> None:
        """Deletes the folder when the dataset is complete."""
        with storage_errors_named(self.folder):
            shutil.rmtree(self.folder)

    def _check_fingerprint(self) -> None:
        path = self.folder / "fingerprint.json"
        if not path.exists():
            write_atomically(path, json.dumps(self.fingerprint, sort_keys=True, indent=1))
            return
        found = read_json(path)
        if found != self.fingerprint:
            changed = sorted(k for k in self.fingerprint if found.get(k) != self.fingerprint[k])
            raise InputError(
                f"the unfinished build here was begun with another {', '.join(changed)}; "
                "remove the folder to begin anew",
                source=self.folder,
            )

    def _put_in_order(self) -> None:
        """Deletes damaged files, and what killed processes left behind."""
        for path in list(self.folder.iterdir()):
            if path.name.startswith(".") and path.is_file():
                path.unlink()  # of write_atomically, which was killed before the rename
            elif path.name.endswith(_SUFFIX) and not _is_whole(path):
                path.unlink()
                print(f"{path}: damaged; what was in it is done again", file=sys.stderr)


def _is_whole(path: Path) -> bool:
    try:
        gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        return False
    return True


@dataclass(frozen=True, slots=True)
class PointResult:
    """A row with its raw code (machine IR or a cubin), or the kind and the reason of a rejection.

    `timings` is None if nothing was measured.
    """

    row: Row | None
    raw: RawRow | None
    rejection: tuple[str, str] | None
    timings: Timings | None = None


def result_document(result: BuiltKernel | RejectedKernel) -> dict[str, Any]:
    """The journal's document of a result."""
    if isinstance(result, RejectedKernel):
        return {"timings": None, "rejection": [result.kind, result.reason]}
    columns = asdict(result.row)
    for name in RELEASE_COLUMNS:
        del columns[name]
    return {"timings": astuple(result.timings), "row": columns, "raw": asdict(result.raw)}


def result_from_document(document: Mapping[str, Any]) -> PointResult:
    """The result of a document. Raises KeyError, TypeError or ValueError for other documents."""
    measured = document.get("timings")
    timings = None if measured is None else Timings(*measured)
    if "rejection" in document:
        kind, reason = document["rejection"]
        return PointResult(None, None, (str(kind), str(reason)), timings)
    row = Row(**{**RELEASE_COLUMNS, **document["row"]})
    return PointResult(row, RawRow(**document["raw"]), None, timings)
