"""Datasets by name: the embedded one, a folder as `build` writes it, or one on the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from verilocc_bench.dataset.hub import read_hub, stream_hub
from verilocc_bench.dataset.parquet import Budget
from verilocc_bench.dataset.rows import RawRow, Row, iterate_parquet, rows_hash
from verilocc_bench.errors import InputError

__all__ = [
    "EMBEDDED",
    "Dataset",
    "embedded_path",
    "is_local",
    "iterate_rows",
    "load_raw_row",
    "load_rows",
]

EMBEDDED = "mini"
TRACKS = {"assign": "data", "split": "split"}
"""Track to folder, in a dataset on disk."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows with the name they came by. `hash` identifies their content."""

    name: str
    revision: str | None
    split: str
    track: str
    rows: tuple[Row, ...]

    @property
    def hash(self) -> str:
        """SHA-256 over ids and labels, whatever the order of the rows."""
        return rows_hash(self.rows)


def embedded_path() -> Path:
    """The folder of the embedded dataset."""
    return Path(str(files("verilocc_bench").joinpath("data", EMBEDDED)))


def load_rows(
    name: str, *, split: str = "test", track: str = "assign", revision: str | None = None
) -> Dataset:
    """The rows of one split of one track.

    `name` is `mini`, a folder, or a dataset id on the Hugging Face Hub, for
    which `revision` counts. Raises InputError where there are no such rows.
    """
    config = _config(track)
    folder = _folder(name)
    rows: Iterable[Row]
    if folder is not None:
        rows = _rows_of_folder(folder, split, track, Budget())
    else:
        rows = read_hub(name, config, split, revision, Row)
    return Dataset(name, revision, split, track, tuple(sorted(rows, key=_order)))


def iterate_rows(
    name: str, *, split: str = "test", track: str = "assign", revision: str | None = None
) -> Iterator[Row]:
    """The same rows one after the other, in the order of the files, without holding them all.

    Of a dataset on the Hub nothing is put into the local cache. Raises
    InputError as load_rows does, before the first row.
    """
    config = _config(track)
    folder = _folder(name)
    if folder is not None:
        yield from _rows_of_folder(folder, split, track)
    else:
        yield from stream_hub(name, config, split, revision, Row)


def _config(track: str) -> str:
    """The config on the Hub that has a track."""
    if track not in TRACKS:
        raise InputError(f"unknown track {track!r}; known: {', '.join(TRACKS)}")
    return "default" if track == "assign" else track


def load_raw_row(
    name: str, identifier: str, *, split: str = "test", revision: str | None = None
) -> RawRow:
    """The compiler's machine IR or machine code of one row, from the config `raw`.

    Raises InputError where the split has none under that id.
    """
    folder = _folder(name)
    rows: Iterable[RawRow]
    if folder is not None:
        paths = sorted(folder.glob(f"raw/*/*/*/{split}-*.parquet"))
        rows = (row for path in paths for row in iterate_parquet(path, RawRow))
    else:
        rows = read_hub(name, "raw", split, revision, RawRow)
    for row in rows:
        if row.id == identifier:
            return row
    raise InputError(
        f"the dataset has no machine code of {identifier!r} in the split {split!r}", source=name
    )


def _folder(name: str) -> Path | None:
    """The folder of a dataset on disk; None for an id on the Hub."""
    if name == EMBEDDED:
        return embedded_path()
    if Path(name).is_dir():
        return Path(name)
    if Path(name).exists() or name.startswith((".", "/")) or name.count("/") != 1:
        raise InputError(
            f"expected {EMBEDDED!r}, the folder of a dataset or a dataset id on the Hub "
            f"such as 'verilocc/regalloc', not {name!r}"
        )
    return None


def is_local(name: str) -> bool:
    """Whether a dataset's name means files here: `mini` or a folder."""
    return name == EMBEDDED or Path(name).is_dir()


def _order(row: Row) -> tuple[str, str, int, str]:
    return row.arch, row.family, row.n_instructions, row.id


def _rows_of_folder(
    folder: Path, split: str, track: str, memory: Budget | None = None
) -> Iterator[Row]:
    base = folder / TRACKS[track]
    paths = sorted(base.glob(f"*/*/{split}-*.parquet"))
    if not paths:
        present = sorted({p.name.split("-")[0] for p in base.glob("*/*/*.parquet")})
        raise InputError(
            f"there is no split {split!r} of the {track} track here; "
            + (f"splits: {', '.join(present)}" if present else f"expected files in {base.name}/"),
            source=folder,
        )
    return (row for path in paths for row in iterate_parquet(path, Row, memory))
