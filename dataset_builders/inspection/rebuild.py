"""Compiles rows again from their sweep points alone, and compares them byte for byte.

It compares all columns that compiling determines, and the raw machine IR or
code. Columns that only the whole dataset can give (clusters, better labels)
are left out.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.building.compile_point import compile_point
from dataset_builders.building.install import read_manifest
from dataset_builders.compilers.built_kernel import canonical_json
from dataset_builders.compilers.toolchains import check_packages, toolchains_of
from dataset_builders.execution.tasks import Execution, Lost, run_tasks
from dataset_builders.experts.registry import SOURCES
from dataset_builders.inspection.documents import ROW_LIST_FORM, check_lines
from dataset_builders.inspection.findings import CheckKind, Findings
from dataset_builders.inspection.layout import ROW_LIST, locate_dataset, parquet_place, raw_places
from dataset_builders.inspection.parquet_stream import stream_rows
from dataset_builders.journal.journal import decode_document, result_from_document
from dataset_builders.sweeps import point_from_json
from dataset_builders.sweeps.captured import CAPTURED
from dataset_builders.sweeps.experts import EXPERT_KERNELS, expert_point_from_json
from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, tool_version
from verilocc_bench.dataset import RawRow, Row, read_parquet
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import InputError

_COLUMNS = tuple(field.name for field in fields(Row) if field.name not in RELEASE_COLUMNS)
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result for a row; `difference` is empty if it is the same, byte for byte."""

    id: str
    point: str
    difference: str | None


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The results in the order of rows.jsonl.

    `versions` are (dataset's, this machine's) by tool, if they differ; None
    stands for a tool that is not here.
    """

    rows: tuple[Rebuilt, ...]
    versions: dict[str, tuple[str, str | None]]

    @property
    def equal(self) -> bool:
        """True if every row came out the same."""
        return all(row.difference is None for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON document."""
        return {
            "equal": self.equal,
            "versions": self.versions,
            "rows": [
                {"id": row.id, "point": row.point, "difference": row.difference}
                for row in self.rows
            ],
        }


def rebuild_rows(
    folder: Path,
    *,
    sample: int | None = None,
    seed: int = 0,
    ids: Collection[str] = (),
    jobs: int = 1,
    progress: bool = True,
) -> RebuildReport:
    """Compiles `sample` rows again, or the rows of `ids`, or without both all rows.

    Raises InputError if the folder has no rows.jsonl or lacks an id, and
    MissingExtraError without the packages that compile.
    """
    folder = locate_dataset(str(folder))
    if read_manifest(folder).get("sweep") == CAPTURED:
        raise InputError(
            "captured kernels are not made again: capture their script again, and compare "
            f"{ROW_LIST}",
            source=folder,
        )
    versions = differing_versions(folder)
    chosen = _chosen(_row_list(folder), sample, seed, ids, folder)
    _need_tools(chosen)
    results: dict[str, Rebuilt] = {}
    with (
        closing(run_tasks(partial(_difference, folder), chosen, Execution(jobs))) as outcomes,
        tqdm(
            total=len(chosen), desc="rebuild", unit="row", disable=None if progress else True
        ) as bar,
    ):
        for line, outcome in outcomes:
            reason = f"the process {outcome.reason}" if isinstance(outcome, Lost) else outcome
            results[line["id"]] = Rebuilt(line["id"], line["point"], reason)
            bar.update()
    return RebuildReport(tuple(results[line["id"]] for line in chosen), versions)


def differing_versions(folder: Path) -> dict[str, tuple[str, str | None]]:
    """Tools whose versions here differ from the manifest's, or that are not here."""
    recorded = read_manifest(folder).get("versions")
    differing: dict[str, tuple[str, str | None]] = {}
    for name, there in sorted(recorded.items() if isinstance(recorded, dict) else ()):
        here = _version_here(name)
        if here != there:
            differing[name] = (str(there), here)
    return differing


def _version_here(name: str) -> str | None:
    try:
        for tool in CUDA_TOOLS:
            if tool == name:
                return tool_version(tool)
        return version(name)
    except PackageNotFoundError:
        # The version of a library of kernels, or of a tool that makes its rows.
        for source in SOURCES.values():
            try:
                versions = source.versions()
            except InputError:
                continue
            if name in versions:
                return versions[name]
        return None
    except InputError:
        return None


def _row_list(folder: Path) -> list[dict[str, Any]]:
    """The lines of rows.jsonl. Raises InputError for the first wrong one."""
    path = folder / ROW_LIST
    if not path.is_file():
        message = f"there is no {ROW_LIST}, from which rows are made again"
        raise InputError(message, source=folder)
    findings = Findings()
    lines = [
        line
        for _, line in check_lines(folder, ROW_LIST, ROW_LIST_FORM, CheckKind.ROW_LIST, findings)
    ]
    if findings.found:
        raise InputError(findings.found[0].message, source=path)
    if not lines:
        raise InputError("there are no rows", source=path)
    return lines


def _chosen(
    lines: list[dict[str, Any]], sample: int | None, seed: int, ids: Collection[str], folder: Path
) -> list[dict[str, Any]]:
    """The lines of the rows to compile, in their order."""
    known = {line["id"] for line in lines}
    for identifier in ids:
        if identifier not in known:
            raise InputError(f"there is no row {identifier!r}", source=folder / ROW_LIST)
    if ids:
        return [line for line in lines if line["id"] in ids]
    if sample is None or sample >= len(lines):
        return lines
    places = random.Random(seed).sample(range(len(lines)), sample)  # noqa: S311  no secret
    return [lines[place] for place in sorted(places)]


def _need_tools(lines: Sequence[dict[str, Any]]) -> None:
    """Raises MissingExtraError if a tool that compiles is not installed.

    Raises InputError if the archive of a library is missing.
    """
    purpose = "making rows again"
    own = {str(line["arch"]) for line in lines if line["kernel"] not in EXPERT_KERNELS}
    if own:
        check_packages({"triton": "triton"}, purpose)
    for toolchain in toolchains_of(own):
        toolchain.check(purpose)
    kernels = {str(line["kernel"]) for line in lines} & EXPERT_KERNELS.keys()
    for library in sorted({EXPERT_KERNELS[kernel][0] for kernel in kernels}):
        SOURCES[library].check(purpose)


def _difference(folder: Path, line: dict[str, Any]) -> str | None:
    """The first difference between a row and the result of compiling its line; None without one."""
    try:
        row, raw = _stored(folder, line)
        read = expert_point_from_json if line["kernel"] in EXPERT_KERNELS else point_from_json
        point = read(line["arch"], line["kernel"], canonical_json(line["params"]))
        if point.key != line["point"]:
            return f"the parameters belong to {point.key}"
    except InputError as error:
        return str(error)
    result = result_from_document(decode_document(compile_point(point)))
    if result.row is None or result.raw is None:
        kind, reason = result.rejection or ("", "")
        return f"rejected as {kind}: {reason}"
    pairs = [(each, getattr(row, each), getattr(result.row, each)) for each in _COLUMNS]
    pairs += [(f"raw {e}", getattr(raw, e), getattr(result.raw, e)) for e in ("format", "content")]
    return next((_difference_of(*pair) for pair in pairs if pair[1] != pair[2]), None)


def _difference_of(column: str, stored: object, made: object) -> str:
    if not isinstance(stored, str) or not isinstance(made, str):
        return f"{column} was {stored}, is {made}"
    place = next(
        (i for i, (a, b) in enumerate(zip(stored, made, strict=False)) if a != b),
        min(len(stored), len(made)),
    )
    line = stored.count("\n", 0, place) + 1
    shown = [repr(text[max(place - 20, 0) :][:_SHOWN_CHARACTERS]) for text in (stored, made)]
    return f"{column} differs at character {place} (line {line}): was {shown[0]}, is {shown[1]}"


def _stored(folder: Path, line: dict[str, Any]) -> tuple[Row, RawRow]:
    """The row of a line and its raw row. Raises InputError if one is missing."""
    place = parquet_place(line["file"])
    if place is None or place.raw or not (folder / line["file"]).is_file():
        message = f"row {line['id']}: there is no file of rows {line['file']!r}"
        raise InputError(message, source=folder / ROW_LIST)
    row = _rows(folder / line["file"]).get(line["id"])
    for each in raw_places(folder):
        if each.bucket == place.bucket and line["id"] in _ids(folder / each.file):
            raw = _raws(folder / each.file)[line["id"]]
            break
    else:
        raise InputError(f"there is no raw row {line['id']}", source=folder)
    if row is None:
        raise InputError(f"there is no row {line['id']}", source=folder / line["file"])
    return row, raw


# Rows are compiled in the order of the files, so caching one file of each kind is enough.
@lru_cache(1)
def _rows(path: Path) -> dict[str, Row]:
    return {row.id: row for row in read_parquet(path, Row)}


@lru_cache(1)
def _raws(path: Path) -> dict[str, RawRow]:
    return {raw.id: raw for raw in read_parquet(path, RawRow)}


@lru_cache(4096)
def _ids(path: Path) -> frozenset[str]:
    batches: Iterator[Sequence[dict[str, Any]]] = stream_rows(path, ["id"], 4096)
    return frozenset(row["id"] for batch in batches for row in batch)
