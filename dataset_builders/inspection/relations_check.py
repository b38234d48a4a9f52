"""Checks how rows relate: unique ids, whole groups and clusters, one raw row for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataset_builders.inspection.facts import CheckedRawRow, CheckedRow, Content
from dataset_builders.inspection.findings import CheckKind, Findings
from dataset_builders.inspection.layout import parquet_place


def check_relations(content: Content, findings: Findings) -> None:
    """Compares the rows with each other and with the raw rows."""
    _check_once(content.rows, findings)
    first: dict[str, CheckedRow] = {}
    for row in content.rows:
        other = first.setdefault(row.point, row)
        if row.point and other.id != row.id:
            message = f"its point {row.point} belongs to {other.id}, too"
            findings.add(CheckKind.POINT, row.file, message, row.id)
    _check_whole(content.rows, "group", lambda row: row.group, CheckKind.GROUP, findings)
    _check_whole(content.rows, "cluster", lambda row: row.cluster, CheckKind.CLUSTER, findings)
    _check_cluster_names(content.rows, findings)
    _check_raws(content, findings)


def _check_once(rows: Sequence[CheckedRow] | Sequence[CheckedRawRow], findings: Findings) -> None:
    first: dict[str, str] = {}
    for row in rows:
        if row.id in first:
            message = f"a row of this id stands in {first[row.id]} already"
            findings.add(CheckKind.DUPLICATE, row.file, message, row.id)
        first.setdefault(row.id, row.file)


def _check_whole(
    rows: Sequence[CheckedRow],
    name: str,
    key: Callable[[CheckedRow], str],
    kind: CheckKind,
    findings: Findings,
) -> None:
    """Reports each row in another split than the first row with the same key."""
    first: dict[str, CheckedRow] = {}
    for row in rows:
        other = first.setdefault(key(row), row)
        if other.split != row.split:
            message = (
                f"the {name} {key(row)!r} lies in {row.split!r}, and with {other.id} "
                f"({other.file}) in {other.split!r}: expected it whole in one split"
            )
            findings.add(kind, row.file, message, row.id)


def _check_cluster_names(rows: Sequence[CheckedRow], findings: Findings) -> None:
    clusters = {row.id: row.cluster for row in rows}
    for row in rows:
        if clusters.get(row.cluster) != row.cluster:
            message = (
                f"the cluster is named {row.cluster!r}: expected the id of a row that is in it"
            )
            findings.add(CheckKind.CLUSTER, row.file, message, row.id)


def _check_raws(content: Content, findings: Findings) -> None:
    _check_once(content.raws, findings)
    raws = {raw.id: raw for raw in content.raws}
    ids = {row.id for row in content.rows}
    for raw in content.raws:
        if raw.id not in ids:
            findings.add(CheckKind.RAW, raw.file, "there is no row of this id", raw.id)
    for row in content.rows:
        if row.id not in raws:
            findings.add(CheckKind.RAW, row.file, "there is no raw row of this id", row.id)
        else:
            _check_pair(row, raws[row.id], findings)


def _check_pair(row: CheckedRow, raw: CheckedRawRow, findings: Findings) -> None:
    place, raw_place = parquet_place(row.file), parquet_place(raw.file)
    assert place is not None
    assert raw_place is not None
    if place.bucket != raw_place.bucket:
        message = f"its raw row stands in {raw.file}: expected the same folder and split"
        findings.add(CheckKind.RAW, row.file, message, row.id)
    if raw.format != row.raw_format:
        message = f"the format is {raw.format!r}, expected {row.raw_format!r} for {row.arch}"
        findings.add(CheckKind.RAW, raw.file, message, raw.id)
    elif row.raw_sha256 and raw.content_sha256 != row.raw_sha256:
        message = (
            f"the content's SHA-256 is {raw.content_sha256 or 'not to be had'}, "
            f"the row's provenance says {row.raw_sha256}"
        )
        findings.add(CheckKind.RAW, raw.file, message, raw.id)
