"""The differences between two dataset folders: rows, columns, splits, versions, rejections.

Rows are identified by their ids. A kernel whose function changed has another
id; such rows are paired by their sweep points. Folders of older layouts can be
compared, too: a column that one of them lacks counts as null.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.inspection.layout import (
    MANIFEST,
    REJECTED,
    ROW_LIST,
    files_in,
    locate_dataset,
    parquet_places,
    read_manifest,
)
from dataset_builders.inspection.parquet_stream import stream_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import file_sha256, parse_json

_RAW_COLUMNS = ("format", "content")
_BY_CONTENT = {MANIFEST, REJECTED, ROW_LIST}
"""Files that are compared by content, or that follow from the rows."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row with different columns; the names of its raw row's begin with `raw `.

    `registers` are the vector registers of the label before and after, if the
    label changed.
    """

    id: str
    columns: tuple[str, ...]
    registers: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class DatasetDiff:
    """All differences, in a stable order.

    Rows are named by id. `replaced` has (point, id before, id after), `moved`
    has (id, split before, split after). `manifest` has the values before and
    after by key, `rejected` the kinds before and after by point, null for none.
    `files` are other files with different bytes.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    replaced: tuple[tuple[str, str, str], ...]
    moved: tuple[tuple[str, str, str], ...]
    changed: tuple[RowChange, ...]
    manifest: Mapping[str, tuple[Any, Any]]
    rejected: Mapping[str, tuple[str | None, str | None]]
    files: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """True if there is no difference."""
        return not any(
            (
                *(self.added, self.removed, self.replaced, self.moved, self.changed),
                *(self.manifest, self.rejected, self.files),
            )
        )

    @property
    def columns(self) -> dict[str, int]:
        """The number of rows that differ in each column."""
        return dict(sorted(Counter(c for row in self.changed for c in row.columns).items()))

    def to_json(self) -> dict[str, Any]:
        """The differences as one JSON document."""
        return {"equal": self.equal, "columns": self.columns, **asdict(self)}


@dataclass(slots=True)
class _Row:
    """A row by short hashes of its columns."""

    split: str
    point: str
    registers: int | None
    columns: dict[str, int]


_NULL = 0


def diff_datasets(old: Path, new: Path, *, progress: bool = True) -> DatasetDiff:
    """The differences between two folders. Raises InputError if one is not a dataset."""
    folders = [locate_dataset(str(folder)) for folder in (old, new)]
    before, after = (_read_rows(folder, progress) for folder in folders)
    added, removed, replaced = _pair(before, after)
    common = [identifier for identifier in before if identifier in after]
    moved = [(each, before[each].split, after[each].split) for each in common]
    changes = (_change(each, before[each], after[each]) for each in common)
    manifests = [_flat_manifest(folder) for folder in folders]
    return DatasetDiff(
        added=tuple(added),
        removed=tuple(removed),
        replaced=tuple(replaced),
        moved=tuple(sorted(entry for entry in moved if entry[1] != entry[2])),
        changed=tuple(sorted((c for c in changes if c is not None), key=lambda c: c.id)),
        manifest=_differences(*manifests),
        rejected=_differences(*(_rejected(folder) for folder in folders)),
        files=tuple(sorted(_differences(*(_other_files(folder) for folder in folders)))),
    )


def _read_rows(folder: Path, progress: bool) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    places = parquet_places(folder, raw=False) + parquet_places(folder, raw=True)
    for place in tqdm(places, desc="read", unit="file", disable=None if progress else True):
        for values in _values(folder / place.file):
            identifier = values.pop("id")
            row = rows.get(identifier)
            if not place.raw:
                if row is not None:
                    message = f"the id {identifier!r} stands in the dataset twice: check it first"
                    raise InputError(message, source=folder / place.file)
                rows[identifier] = _Row(
                    place.split,
                    str(_member(values.get("provenance"), "point") or ""),
                    _member(values.get("registers_used"), "vector"),
                    {name: _hash(value) for name, value in values.items()},
                )
            elif row is not None:
                row.columns |= {f"raw {name}": _hash(values.get(name)) for name in _RAW_COLUMNS}
    return rows


def _values(path: Path) -> Iterator[dict[str, Any]]:
    for batch in stream_rows(path):
        for values in batch:
            if not isinstance(values.get("id"), str):
                raise InputError("expected rows with a column 'id'", source=path)
            yield values


def _member(text: object, key: str) -> Any:
    """A member of a JSON object; None if there is none."""
    try:
        value = json.loads(str(text))
    except ValueError:
        return None
    return value.get(key) if isinstance(value, dict) else None


def _hash(value: object) -> int:
    if value is None:
        return _NULL
    digest = hashlib.blake2b(json.dumps(value).encode(), digest_size=12).digest()
    return int.from_bytes(digest, "big")


def _pair(
    before: Mapping[str, _Row], after: Mapping[str, _Row]
) -> tuple[list[str], list[str], list[tuple[str, str, str]]]:
    """The ids that are new, the ids that are gone, and (point, old id, new id) of common points."""
    gone = {row.point: each for each, row in before.items() if each not in after}
    new = {row.point: each for each, row in after.items() if each not in before}
    replaced = [(point, gone[point], new[point]) for point in sorted(gone.keys() & new.keys())]
    paired = {each for _, *both in replaced for each in both}
    added = sorted(each for each in after if each not in before and each not in paired)
    removed = sorted(each for each in before if each not in after and each not in paired)
    return added, removed, replaced


def _change(identifier: str, old: _Row, new: _Row) -> RowChange | None:
    names = [*old.columns, *(name for name in new.columns if name not in old.columns)]
    changed = tuple(n for n in names if old.columns.get(n, _NULL) != new.columns.get(n, _NULL))
    if not changed:
        return None
    registers = (old.registers, new.registers) if "assignment" in changed else None
    return RowChange(identifier, changed, registers)


def _flat_manifest(folder: Path) -> dict[str, Any]:
    """Values by key, and by key and name for objects, without the hashes of files."""
    flat: dict[str, Any] = {}
    for key, value in read_manifest(folder).items():
        if isinstance(value, dict):
            flat |= {f"{key}.{name}": each for name, each in value.items() if key != "files"}
        else:
            flat[key] = value
    return flat


def _rejected(folder: Path) -> dict[str, str]:
    """The kinds of rejection by point."""
    path = folder / REJECTED
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    kinds: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        entry = parse_json(line, path, number)
        if not isinstance(entry, dict) or not isinstance(entry.get("point"), str):
            raise InputError("expected an object with a 'point'", source=path, line=number)
        kinds[entry["point"]] = str(entry.get("kind"))
    return kinds


def _other_files(folder: Path) -> dict[str, str]:
    names: Iterable[str] = files_in(folder)
    return {
        name: file_sha256(folder / name)
        for name in names
        if not name.endswith(".parquet") and name not in _BY_CONTENT
    }


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        key: (old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    }
