"""Checks how rows relate, and compares the lists and the manifest with the rows and the sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from dataset_builders.building.install import MANIFEST
from dataset_builders.inspection.documents import REJECTED_FORM, ROW_LIST_FORM, Line, check_lines
from dataset_builders.inspection.findings import (
    CheckedRawRow,
    CheckedRow,
    CheckKind,
    Content,
    Findings,
)
from dataset_builders.inspection.layout import REJECTED, ROW_LIST, parquet_place
from dataset_builders.sweeps import SWEEPS, point_from_json
from dataset_builders.sweeps.captured import CAPTURED
from dataset_builders.sweeps.experts import EXPERT_SWEEPS, expert_point_from_json
from dataset_builders.sweeps.splits import split_of
from verilocc_bench.errors import InputError


def check_lists(content: Content, findings: Findings) -> None:
    """Compares the lists and the manifest with the rows, and both with the sweep."""
    lines = check_lines(content.folder, ROW_LIST, ROW_LIST_FORM, CheckKind.ROW_LIST, findings)
    if (content.folder / ROW_LIST).is_file():  # another check reports its absence
        _check_row_list(list(lines), content, findings)
    rejected = dict(
        check_lines(content.folder, REJECTED, REJECTED_FORM, CheckKind.REJECTED, findings)
    )
    sweep = None if content.manifest is None else content.manifest["sweep"]
    points = _check_rejected(rejected, findings, sweep)
    if content.manifest is not None:
        _check_counts(content, content.manifest, rejected.values(), findings)
        _check_sweep(content, content.manifest, points, findings)


def _check_row_list(lines: list[Line], content: Content, findings: Findings) -> None:
    rows = {row.id: row for row in content.rows}
    raws = {raw.id: raw.digest for raw in content.raws}
    keys = ("point", "arch", "family", "kernel", "track", "split", "group", "cluster", "file")
    seen: set[str] = set()
    for number, line in lines:
        identifier = line["id"]

        def add(message: str, number: int = number, identifier: str = identifier) -> None:
            findings.add(CheckKind.ROW_LIST, ROW_LIST, f"line {number}: {message}", identifier)

        if identifier in seen:
            add("this id stood in an earlier line")
        seen.add(identifier)
        row = rows.get(identifier)
        if row is None:
            add("there is no such row")
            continue
        values = {key: getattr(row, key) for key in (*keys, "params")}
        values |= {"row_sha256": row.digest, "raw_sha256": raws.get(identifier, line["raw_sha256"])}
        for key, expected in values.items():
            if line[key] != expected:
                add(f"{key!r} is {line[key]!r}, expected {expected!r}")
    for row in content.rows:
        if row.id not in seen:
            findings.add(CheckKind.ROW_LIST, ROW_LIST, "no line has this row", row.id)
    _check_order([line["id"] for _, line in lines], [row.id for row in content.rows], findings)


def _check_order(listed: list[str], rows: list[str], findings: Findings) -> None:
    if sorted(listed) != sorted(rows):
        return  # reported row by row before
    for number, (found, expected) in enumerate(zip_longest(listed, rows), 1):
        if found != expected:
            message = f"line {number}: expected {expected}: lines go by file and place in it"
            findings.add(CheckKind.ROW_LIST, ROW_LIST, message, found)
            return


def _check_rejected(
    rejected: Mapping[int, dict[str, Any]], findings: Findings, sweep: str | None
) -> Counter[str]:
    """The points of the lines. Reports each whose parameters give another point.

    Captured kernels are not of a sweep, and their parameters give no point.
    """
    points: Counter[str] = Counter()
    for number, line in rejected.items():
        points[line["point"]] += 1
        if sweep == CAPTURED:
            continue
        try:
            read = expert_point_from_json if sweep in EXPERT_SWEEPS else point_from_json
            point = read(line["arch"], line["kernel"], line["params"])
            expected = {"point": point.key, "family": point.family}
        except (InputError, KeyError) as error:
            message = f"line {number}: no sweep point: {error}"
            findings.add(CheckKind.REJECTED, REJECTED, message)
            continue
        for key, value in expected.items():
            if line[key] != value:
                message = f"line {number}: {key!r} is {line[key]!r}, expected {value!r}"
                findings.add(CheckKind.REJECTED, REJECTED, message)
    return points


def _check_counts(
    content: Content,
    manifest: Mapping[str, Any],
    rejected: Iterable[dict[str, Any]],
    findings: Findings,
) -> None:
    def expect(what: str, found: object, expected: object) -> None:
        if found != expected:
            message = f"{what} is {found!r}, expected {expected!r}"
            findings.add(CheckKind.MANIFEST, MANIFEST, message)

    lines = list(rejected)
    expect("'rejected'", manifest["rejected"], dict(Counter(line["kind"] for line in lines)))
    expect("'points'", manifest["points"], len(content.rows) + len(lines))
    archs = {row.arch for row in content.rows} | {line["arch"] for line in lines}
    expect("'archs'", sorted(manifest["archs"]), sorted(archs))


def _check_sweep(
    content: Content, manifest: Mapping[str, Any], rejected: Counter[str], findings: Findings
) -> None:
    """Reports points of the sweep that are neither rows nor rejected, and rows in a wrong split."""
    taken = Counter(row.point for row in content.rows if row.point) + rejected
    for key, count in sorted(taken.items()):
        if count > 1 and key in rejected:
            message = f"the point {key} is rejected, and stands elsewhere too"
            findings.add(CheckKind.REJECTED, REJECTED, message)
    sweep = SWEEPS.get(manifest["sweep"])
    if sweep is None:
        return
    try:
        points = {point.key: point for point in sweep.points(manifest["archs"])}
    except InputError as error:
        findings.add(CheckKind.MANIFEST, MANIFEST, error.message)
        return
    for key in sorted(taken.keys() - points.keys()):
        message = f"the sweep {sweep.name!r} has no point {key}"
        findings.add(CheckKind.SWEEP, MANIFEST, message)
    if manifest["points"] == len(
        points
    ):  # otherwise it was built from the first points of the sweep
        for key in sorted(points.keys() - taken.keys()):
            message = f"the point {key} of the sweep {sweep.name!r} is neither a row nor rejected"
            findings.add(CheckKind.SWEEP, MANIFEST, message)
    for row in content.rows:
        point = points.get(row.point)
        expected = row.split if point is None else split_of(sweep.name, point)
        if row.split != expected:
            message = f"the row is in {row.split!r}, its point belongs to {expected!r}"
            findings.add(CheckKind.SWEEP, row.file, message, row.id)


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
    clusters = {row.id: row.cluster for row in content.rows}
    for row in content.rows:
        if clusters.get(row.cluster) != row.cluster:
            message = (
                f"the cluster is named {row.cluster!r}: expected the id of a row that is in it"
            )
            findings.add(CheckKind.CLUSTER, row.file, message, row.id)
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
