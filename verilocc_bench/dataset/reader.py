"""Datasets by name: the embedded one, a folder as `build` writes it, or one on the Hub."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from verilocc_bench.dataset.rows import Row, read_parquet, rows_from_table, rows_hash
from verilocc_bench.errors import InputError

__all__ = ["EMBEDDED", "Dataset", "embedded_path", "is_local", "load_rows"]

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
    if track not in TRACKS:
        raise InputError(f"unknown track {track!r}; known: {', '.join(TRACKS)}")
    if name == EMBEDDED:
        rows = _read_folder(embedded_path(), split, track)
    elif Path(name).is_dir():
        rows = _read_folder(Path(name), split, track)
    elif Path(name).exists() or name.startswith((".", "/")) or name.count("/") != 1:
        raise InputError(
            f"expected {EMBEDDED!r}, the folder of a dataset or a dataset id on the Hub "
            f"such as 'verilocc/regalloc', not {name!r}"
        )
    else:
        rows = _read_hub(name, split, track, revision)
    return Dataset(name, revision, split, track, tuple(sorted(rows, key=_order)))


def is_local(name: str) -> bool:
    """Whether a dataset's name means files here: `mini` or a folder."""
    return name == EMBEDDED or Path(name).is_dir()


def _order(row: Row) -> tuple[str, str, int, str]:
    return row.arch, row.family, row.n_instructions, row.id


def _read_folder(folder: Path, split: str, track: str) -> list[Row]:
    base = folder / TRACKS[track]
    paths = sorted(base.glob(f"*/*/{split}-*.parquet"))
    if not paths:
        present = sorted({p.name.split("-")[0] for p in base.glob("*/*/*.parquet")})
        raise InputError(
            f"there is no split {split!r} of the {track} track here; "
            + (f"splits: {', '.join(present)}" if present else f"expected files in {base.name}/"),
            source=folder,
        )
    return [row for path in paths for row in read_parquet(path, Row)]


def _read_hub(name: str, split: str, track: str, revision: str | None) -> list[Row]:
    import datasets

    config = "default" if track == "assign" else track
    try:
        loaded = datasets.load_dataset(name, config, split=split, revision=revision)
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"cannot be loaded from the Hub: {reason}", source=name) from None
    return rows_from_table(loaded.data.table, Row, name)
