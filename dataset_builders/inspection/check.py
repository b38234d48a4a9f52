"""Checks a dataset folder, and lists everything that is wrong with it.

Files go through memory a few rows at a time. A few hundred bytes of each row
stay, to compare rows with each other and with the lists. Many processes look at
rows: nearly all of the time goes to judging their labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.building.install import MANIFEST
from dataset_builders.execution.tasks import Execution, Item, Lost, Output, run_tasks
from dataset_builders.inspection.card_check import check_card
from dataset_builders.inspection.documents import LEAKAGE_FORM, MANIFEST_FORM, check_document
from dataset_builders.inspection.files_check import check_files, check_shards
from dataset_builders.inspection.findings import (
    CheckedRawRow,
    CheckedRow,
    CheckFinding,
    CheckKind,
    CheckReport,
    Content,
    Findings,
)
from dataset_builders.inspection.layout import LEAKAGE, ParquetPlace, files_in, locate_dataset
from dataset_builders.inspection.leakage_check import check_leakage, sampled_pairs
from dataset_builders.inspection.lists_check import check_lists, check_relations
from dataset_builders.inspection.parquet_stream import (
    NULLABLE,
    column_faults,
    read_columns,
    stream_rows,
)
from dataset_builders.inspection.row_check import RowOrigin, row_problems
from dataset_builders.sweeps.captured import CAPTURED
from dataset_builders.sweeps.experts import EXPERT, EXPERT_SWEEPS
from verilocc_bench.backends import backend_of, raw_bytes
from verilocc_bench.dataset import RawRow, Row, row_digest
from verilocc_bench.errors import InputError
from verilocc_bench.targets import TARGETS
from verilocc_bench.views.chat import chat_file, wrong_conversation


@dataclass(frozen=True, slots=True)
class _Batch:
    """Consecutive rows of a file; `place` is the first one's."""

    file: ParquetPlace
    place: int
    rows: Sequence[dict[str, Any]]


_Result = tuple[list[CheckedRow], list[CheckedRawRow], list[CheckFinding]]


def check_dataset(
    folder: Path,
    *,
    jobs: int = 1,
    labels: bool = True,
    progress: bool = True,
    execute: int = 0,
) -> CheckReport:
    """Everything that is wrong with a dataset folder; see CheckKind.

    A dataset of experts' kernels in its folder `expert` is checked, too. Without
    `labels` no assignment is verified. With `execute` the machine code of
    this number of rows is run. Raises InputError if the folder
    is not a dataset, and MissingExtraError if distances in leakage.json cannot
    be computed.
    """
    folder = locate_dataset(str(folder))
    findings = Findings()
    files = files_in(folder)
    manifest = check_document(folder, MANIFEST, MANIFEST_FORM, CheckKind.MANIFEST, findings)
    captured = manifest is not None and manifest["sweep"] == CAPTURED
    leakage = None
    if not captured:  # one split has no leaks
        leakage = check_document(folder, LEAKAGE, LEAKAGE_FORM, CheckKind.LEAKAGE, findings)
    check_files(folder, files, manifest, findings)
    places = check_shards(files, findings)
    readable = [place for place in places if _has_its_columns(folder, place, findings)]
    content = Content(folder, manifest, files)
    wanted: set[str] = set()
    if leakage is not None:
        wanted = {entry[key] for entry in sampled_pairs(leakage) for key in ("id", "nearest")}
    origin = RowOrigin({}, {})
    if manifest is not None:
        expert = manifest["sweep"] in EXPERT_SWEEPS
        origin = RowOrigin(manifest["versions"], manifest["kernel_sources"], captured, expert)
    work = partial(_look_at, origin=origin, labels=labels)
    batches = _batches(content, readable, wanted, findings, progress)
    for rows, raws, found in _results(work, batches, jobs):
        content.rows += rows
        content.raws += raws
        findings.found += found
    if labels:
        _check_conversations(folder, readable, jobs, findings)
    content.rows.sort(key=lambda row: (row.file, row.place))
    content.raws.sort(key=lambda raw: raw.file)
    check_relations(content, findings)
    check_lists(content, findings)
    check_card(folder, places, findings, expert=origin.expert)
    if leakage is not None:
        check_leakage(leakage, content, findings)
    executed = 0
    if execute:
        from dataset_builders.inspection.execution_check import check_execution

        executed = check_execution(content, execute, findings)
    report = CheckReport(
        tuple(sorted(set(findings.found))), len(content.rows), len(files), executed
    )
    if not (folder / EXPERT / MANIFEST).is_file():
        return report
    inner = check_dataset(folder / EXPERT, jobs=jobs, labels=labels, progress=progress)
    return report.with_inner(inner, EXPERT)


def _has_its_columns(folder: Path, place: ParquetPlace, findings: Findings) -> bool:
    """True if the rows of a file can be read. Adds findings for all differences."""
    row_type = RawRow if place.raw else Row
    try:
        columns, count = read_columns(folder / place.file)
    except InputError as error:
        findings.add(CheckKind.PARQUET, place.file, error.message)
        return False
    if count == 0:
        findings.add(CheckKind.PARQUET, place.file, "the file has no rows")
    for fault in column_faults(columns, row_type):
        findings.add(CheckKind.SCHEMA, place.file, fault)
    # Rows can be read even if a column may be null that should not.
    lenient = {name: (kind, name in NULLABLE) for name, (kind, _) in columns.items()}
    return not any("order" not in fault for fault in column_faults(lenient, row_type))


def _batches(
    content: Content,
    places: Iterable[ParquetPlace],
    wanted: set[str],
    findings: Findings,
    progress: bool,
) -> Iterator[_Batch]:
    """All rows and raw rows in batches. Keeps the texts of the wanted ones in `content`."""
    by_file = {place: read_columns(content.folder / place.file)[1] for place in places}
    total = sum(count for place, count in by_file.items() if not place.raw)
    with tqdm(total=total, desc="check", unit="row", disable=None if progress else True) as bar:
        for place in by_file:
            first = 0
            try:
                for rows in stream_rows(content.folder / place.file):
                    if not place.raw:
                        content.texts |= {
                            row["id"]: row["normalized"] for row in rows if row["id"] in wanted
                        }
                    yield _Batch(place, first, rows)
                    first += len(rows)
                    bar.update(0 if place.raw else len(rows))
            except InputError as error:
                findings.add(CheckKind.PARQUET, place.file, error.message)


def _results(
    work: Callable[[_Batch], _Result], batches: Iterator[_Batch], jobs: int
) -> Iterator[_Result]:
    for batch, outcome in _outcomes(work, batches, jobs):
        if isinstance(outcome, Lost):
            last = batch.place + len(batch.rows) - 1
            message = f"rows {batch.place} to {last} of the file: the process {outcome.reason}"
            yield [], [], [CheckFinding(batch.file.file, "", CheckKind.TEXT, message)]
        else:
            yield outcome


def _outcomes(
    work: Callable[[Item], Output], items: Iterator[Item], jobs: int
) -> Iterator[tuple[Item, Output | Lost]]:
    if jobs == 1:
        yield from ((item, work(item)) for item in items)
        return
    with closing(run_tasks(work, items, Execution(jobs))) as outcomes:
        yield from outcomes


def _check_conversations(
    folder: Path, places: Sequence[ParquetPlace], jobs: int, findings: Findings
) -> None:
    wrong = {finding.file for finding in findings.found}
    files = (each.file for each in places if not each.raw and each.file not in wrong)
    for file, found in _outcomes(partial(wrong_conversation, folder), files, jobs):
        if found is not None:
            row, message = ("", f"the process {found.reason}") if isinstance(found, Lost) else found
            findings.add(CheckKind.CONVERSATION, f"{chat_file(Path(file))}", message, row)


def _look_at(batch: _Batch, origin: RowOrigin, labels: bool) -> _Result:
    """What the check keeps of some rows, and each row's own mistakes."""
    findings = Findings()
    if batch.file.raw:
        raws = [RawRow(**values) for _, values in _without_nulls(batch, findings)]
        return [], [_raw_facts(raw, batch.file) for raw in raws], findings.found
    facts: list[CheckedRow] = []
    for place, values in _without_nulls(batch, findings):
        row = Row(**values)
        facts.append(_row_facts(row, batch.file, place))
        for kind, message in row_problems(row, batch.file, origin, labels=labels):
            findings.add(kind, batch.file.file, message, row.id)
    return facts, [], findings.found


def _without_nulls(batch: _Batch, findings: Findings) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows, by place, without those that have nulls in columns where no row may."""
    for place, values in enumerate(batch.rows, batch.place):
        nulls = [name for name, value in values.items() if value is None and name not in NULLABLE]
        for name in nulls:
            message = f"row {place} of the file: the column {name!r} is null"
            findings.add(CheckKind.NULLS, batch.file.file, message, values["id"] or "")
        if not nulls:
            yield place, values


def _row_facts(row: Row, file: ParquetPlace, place: int) -> CheckedRow:
    provenance, params = _object(row.provenance) or {}, _object(row.params)
    backend = backend_of(row.arch) if row.arch in TARGETS else None
    return CheckedRow(
        **{name: getattr(row, name) for name in ("id", "track", "arch", "family", "kernel")},
        **{name: getattr(row, name) for name in ("group", "cluster")},
        file=file.file,
        place=place,
        params=params,
        split=file.split,
        point=str(provenance.get("point", "")),
        digest=row_digest(row),
        raw_sha256=str(provenance.get(backend.raw_hash, "")) if backend else "",
        raw_format=backend.raw_format if backend else "",
    )


def _object(text: str) -> dict[str, Any] | None:
    """A JSON object; None for anything else, which another check reports."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _raw_facts(raw: RawRow, file: ParquetPlace) -> CheckedRawRow:
    try:
        data = raw_bytes(raw.format, raw.content)
    except ValueError:
        data = None
    sha256 = "" if data is None else hashlib.sha256(data).hexdigest()
    return CheckedRawRow(raw.id, file.file, raw.format, row_digest(raw), sha256)
