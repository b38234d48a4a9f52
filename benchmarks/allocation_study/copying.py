"""Copies kernels of a study into a small dataset, for commands that take a whole one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.allocation_study.records import Measurement
from benchmarks.allocation_study.running import read_study
from verilocc_bench.dataset import RawRow, Row, iterate_rows
from verilocc_bench.dataset.parquet import iterate_parquet, write_parquet
from verilocc_bench.errors import InputError

SPLIT = "test"
"""The split of the folder with the copied rows."""


def copy_sample(folder: Path, path: Path, output: Path) -> None:
    """Copies the measured kernels of the study in `path`, with their machine code.

    Raises InputError if `folder` holds another dataset.
    """
    found = read_study(path).measurements.values()
    copy_rows(folder, [each for each in found if each.lost is None], output)


def copy_rows(folder: Path, kernels: Iterable[Measurement], output: Path) -> dict[str, Row]:
    """The rows of kernels, by id, and a dataset of them with their machine code in `output`."""
    by_split: dict[str, set[str]] = {}
    for each in kernels:
        by_split.setdefault(each.split, set()).add(each.id)
    rows: dict[str, Row] = {}
    for split, ids in by_split.items():
        found = {row.id: row for row in iterate_rows(str(folder), split=split) if row.id in ids}
        missing = ids - set(found)
        if missing:
            message = f"the split {split} has no row {min(missing)}: expected the study's dataset"
            raise InputError(message, source=folder)
        rows |= found
        for (arch, family), cell in _cells(found.values()).items():
            raw = _raw(folder / "raw/data" / arch / family, split, set(cell))
            for identifier, row in cell.items():
                name = f"{arch}/{family}/{SPLIT}-{identifier}.parquet"
                write_parquet([row], output / "data" / name)
                write_parquet([raw[identifier]], output / "raw/data" / name)
    return rows


def _cells(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    cells: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row.arch, row.family), {})[row.id] = row
    return cells


def _raw(folder: Path, split: str, ids: set[str]) -> dict[str, RawRow]:
    found = {
        raw.id: raw
        for path in sorted(folder.glob(f"{split}-*.parquet"))
        for raw in iterate_parquet(path, RawRow)
        if raw.id in ids
    }
    missing = ids - set(found)
    if missing:
        raise InputError(f"there is no machine code of {min(missing)}", source=folder)
    return found
