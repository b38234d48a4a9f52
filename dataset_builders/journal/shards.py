"""Many documents in one Parquet file, listed with its hash in a manifest.

A shard counts only if the manifest names it; other files come from a process
that was killed. Both kinds of files are replaced whole.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically

SHARD_MANIFEST = "shards.json"
CACHED_SHARDS = 4
"""The number of unpacked shards in memory; each has about 30 MB."""


class Shards:
    """The shards of a folder. Reading keeps the last few in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries: dict[str, dict[str, Any]] = {}
        self._shard_of: dict[str, str] = {}
        self._cache: OrderedDict[str, dict[str, bytes]] = OrderedDict()

    def open(self) -> list[Path]:
        """Reads the manifest and checks every shard's hash.

        Returns the damaged files; they are no longer listed. A damaged manifest
        is made again from the shards in the folder.
        """
        path = self.folder / SHARD_MANIFEST
        damaged = []
        try:
            listed = json.loads(path.read_bytes())
            entries = {str(each["file"]): dict(each) for each in listed}
        except FileNotFoundError:
            entries = {}
        except (OSError, ValueError, TypeError, KeyError):
            entries = dict(self._found())
            damaged.append(path)
        for name, entry in entries.items():
            if self._hash(name) == entry["sha256"]:
                self._add(entry)
            else:
                damaged.append(self.folder / name)
        return damaged

    def __contains__(self, key: str) -> bool:
        return key in self._shard_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._shard_of)

    def files(self) -> set[str]:
        """The names of the shards that the manifest lists."""
        return set(self._entries)

    def write(self, documents: Mapping[str, bytes]) -> None:
        """Writes these documents as one shard, and lists it."""
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table(
            {
                "key": pa.array(documents.keys(), pa.string()),
                "document": pa.array(documents.values(), pa.binary()),
            }
        )
        sink = pa.BufferOutputStream()
        parquet.write_table(
            table, sink, compression="zstd", compression_level=3, use_dictionary=False
        )
        data = sink.getvalue().to_pybytes()
        digest = hashlib.sha256(data).hexdigest()
        entry: dict[str, Any] = {
            "file": _file_name(digest),
            "sha256": digest,
            "keys": list(documents),
        }
        write_atomically(self.folder / entry["file"], data)
        self._write_manifest([*self._entries.values(), entry])
        self._add(entry)

    def read(self, key: str) -> bytes:
        """The document of a key in a shard. Raises InputError if its shard has changed."""
        name = self._shard_of[key]
        if name not in self._cache:
            self._cache[name] = self._load(name)
        self._cache.move_to_end(name)
        while len(self._cache) > CACHED_SHARDS:
            self._cache.popitem(last=False)
        return self._cache[name][key]

    def rewrite_manifest(self) -> None:
        """Writes the manifest of the shards that are still whole."""
        self._write_manifest(list(self._entries.values()))

    def _found(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Entries for the shards in the folder whose bytes have the hash that their name says."""
        for path in sorted(self.folder.glob("shard-*.parquet")):
            digest = self._hash(path.name)
            if digest is not None and path.name == _file_name(digest):
                keys = list(self._load(path.name))
                yield path.name, {"file": path.name, "sha256": digest, "keys": keys}

    def _load(self, name: str) -> dict[str, bytes]:
        import pyarrow as pa
        from pyarrow import parquet

        path = self.folder / name
        try:
            table = parquet.ParquetFile(path).read()
            keys, documents = (table.column(c).to_pylist() for c in ("key", "document"))
        except (pa.ArrowException, OSError, ValueError, KeyError):
            raise InputError(
                "the file was damaged meanwhile: give the command again, which compiles anew "
                "what was in it",
                source=path,
            ) from None
        return dict(zip(keys, documents, strict=True))

    def _add(self, entry: dict[str, Any]) -> None:
        name = entry["file"]
        self._entries[name] = entry
        self._shard_of |= dict.fromkeys(entry["keys"], name)

    def _hash(self, name: str) -> str | None:
        try:
            with (self.folder / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None

    def _write_manifest(self, entries: list[dict[str, Any]]) -> None:
        write_atomically(self.folder / SHARD_MANIFEST, json.dumps(entries))


def _file_name(digest: str) -> str:
    return f"shard-{digest[:16]}.parquet"
