"""Checks what one row shows by itself: columns, sweep point, sizes, labels.

The fast check and the independent checker judge the labels. Cost: about 120
microseconds for each instruction of a row with one label, two thirds of it in
the independent checker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dataset_builders.compilers.built_kernel import LICENSE, canonical_json
from dataset_builders.compilers.toolchains import Toolchain, toolchain_of
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.experts.registry import SOURCES
from dataset_builders.inspection.findings import CheckKind
from dataset_builders.inspection.label_check import label_problems, split_track_problems
from dataset_builders.inspection.layout import ParquetPlace
from dataset_builders.sweeps import SweepPoint, point_from_json
from dataset_builders.sweeps.experts import EXPERT_KERNELS, ExpertPoint, expert_point_from_json
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.dataset.rows import BEST_COLUMNS
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.files import parse_json
from verilocc_bench.ir import instance_id, print_function
from verilocc_bench.ir.text import FORMAT_LINE
from verilocc_bench.targets import TARGETS

RowProblem = tuple[CheckKind, str]
"""A kind of fault and a message."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SORTED_COLUMNS = ("params", "pressure", "registers_used", "provenance")
_LABEL_COLUMNS = ("assignment", "alternatives", "best_assignment")
_OF_THE_BEST = (*BEST_COLUMNS, "bank_conflicts")
_WHERE_BETTER = ("best_assignment", "best_source")
"""Columns that are null if no known answer is better than the label."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The parts of a manifest that hold for all rows: versions by tool, source hashes by module.

    `captured` rows are of a user's own kernels: they have no sweep point, any license,
    and no best label. `expert` rows are of open libraries.
    """

    versions: Mapping[str, str]
    kernel_sources: Mapping[str, str]
    captured: bool = False
    expert: bool = False


_Point = SweepPoint | ExpertPoint
_Maker = Toolchain | ExpertSource


def row_problems(
    row: Row, place: ParquetPlace, origin: RowOrigin, *, labels: bool
) -> Iterator[RowProblem]:
    """All faults of a row; without `labels` no assignment is verified."""
    for column in ("arch", "family", "track"):
        found, expected = getattr(row, column), getattr(place, column)
        if found != expected:
            yield (
                CheckKind.COLUMN,
                f"the column {column!r} is {found!r}, the file's path says {expected!r}",
            )
    if not origin.captured:
        yield from _license_problems(row, origin)
    elif not row.license:
        yield CheckKind.COLUMN, "the column 'license' is empty"
    yield from _null_problems(row, with_best=not origin.captured)
    documents, problems = _documents(row)
    yield from problems
    point, problems = (None, []) if origin.captured else _point(row, origin)
    yield from problems
    if "provenance" in documents:
        yield from _provenance_problems(row, documents["provenance"], point, origin)
    if row.id != instance_id(row.normalized):
        yield CheckKind.ID, f"the id must be {instance_id(row.normalized)}, from `normalized`"
    try:
        problem = AllocationProblem.from_text(row.normalized, f"normalized text of {row.id}")
        yield from _function_problems(row, problem, documents)
        if row.track == "split":
            yield from split_track_problems(row, problem, documents)
        elif labels:
            yield from label_problems(row, problem, documents)
    except MissingExtraError:
        raise
    except InputError as error:
        yield CheckKind.TEXT, f"the function cannot be analysed: {error.message}"


def _license_problems(row: Row, origin: RowOrigin) -> Iterator[RowProblem]:
    expected = LICENSE
    if origin.expert:
        if row.kernel not in EXPERT_KERNELS:
            return  # another check reports it
        expected = SOURCES[EXPERT_KERNELS[row.kernel][0]].license
    if row.license != expected:
        yield CheckKind.COLUMN, f"the column 'license' is {row.license!r}, expected {expected!r}"


def _null_problems(row: Row, *, with_best: bool = True) -> Iterator[RowProblem]:
    if row.track == "assign" and row.assignment is None:
        yield CheckKind.NULLS, "the assign track has no label: 'assignment' is null"
    if row.track == "split" and row.assignment is not None:
        yield CheckKind.NULLS, "the split track has a label: expected 'assignment' to be null"
    for column in ("registers_used", "occupancy"):
        if getattr(row, column) is None:
            yield CheckKind.NULLS, f"the column {column!r} is null"
    of_the_best = _OF_THE_BEST if with_best else ("bank_conflicts",)
    absent = [column for column in of_the_best if getattr(row, column) is None]
    if row.track == "split" and len(absent) < len(of_the_best):
        yield CheckKind.NULLS, "the split track has a best label: expected nulls"
    if row.track == "assign":
        for column in absent:
            if column not in _WHERE_BETTER:
                yield CheckKind.NULLS, f"the column {column!r} is null"
        of_better = [column for column in _WHERE_BETTER if column in absent]
        if len(of_better) == 1:
            yield CheckKind.NULLS, f"the column {of_better[0]!r} is null, the other of both is not"


def _documents(row: Row) -> tuple[dict[str, dict[str, Any]], list[RowProblem]]:
    """The JSON columns that hold objects. Reports those that do not, and unusual spellings."""
    documents: dict[str, dict[str, Any]] = {}
    problems: list[RowProblem] = []
    for column in (*_SORTED_COLUMNS, *_LABEL_COLUMNS, "best_certificate"):
        text = getattr(row, column)
        if text is None:
            continue
        try:
            value = parse_json(text, f"column {column!r}")
        except InputError as error:
            problems.append((CheckKind.JSON, f"the column {column!r}: {error.message}"))
            continue
        if not isinstance(value, dict):
            problems.append((CheckKind.JSON, f"the column {column!r} must hold a JSON object"))
            continue
        documents[column] = value
        canonical, order = _canonical(column, value)
        if text != canonical:
            problems.append(
                (CheckKind.JSON, f"the column {column!r} is not canonical JSON: {order}no spaces")
            )
    return documents, problems


def _canonical(column: str, value: dict[str, Any]) -> tuple[str, str]:
    """The canonical spelling of a column's value, and words about its order."""
    if column in _SORTED_COLUMNS:
        return canonical_json(value), "sorted keys, "
    if column in _LABEL_COLUMNS:
        # Labels are in the order of the virtual registers, not in the sorted order of names.
        return json.dumps(_in_register_order(value), separators=(",", ":")), "registers in order, "
    return json.dumps(value, separators=(",", ":")), ""


def _in_register_order(value: dict[str, Any]) -> dict[str, Any]:
    if value and all(name[:1] == "%" and name[1:].isdecimal() for name in value):
        return dict(sorted(value.items(), key=lambda item: int(item[0][1:])))
    return {k: _in_register_order(v) if isinstance(v, dict) else v for k, v in value.items()}


def _point(row: Row, origin: RowOrigin) -> tuple[_Point | None, list[RowProblem]]:
    try:
        read = expert_point_from_json if origin.expert else point_from_json
        point: _Point = read(row.arch, row.kernel, row.params)
    except InputError as error:
        return None, [(CheckKind.POINT, f"no sweep point: {error.message}")]
    try:
        group: str | None = point.group
    except KeyError:
        group = None  # a parameter has a value that no kernel knows
    problems = [
        (CheckKind.POINT, f"the column {column!r} is {found!r}, the sweep point says {expected!r}")
        for column, found, expected in (
            ("family", row.family, point.family),
            ("group", row.group, group),
            ("params", row.params, point.parameters_json),
        )
        if found != expected
    ]
    return point, problems


def _provenance_problems(
    row: Row, provenance: dict[str, Any], point: _Point | None, origin: RowOrigin
) -> Iterator[RowProblem]:
    def expect(what: str, found: object, expected: object) -> Iterator[RowProblem]:
        if found != expected:
            yield CheckKind.PROVENANCE, f"provenance: {what} is {found!r}, expected {expected!r}"

    versions = provenance.get("versions")
    if not isinstance(versions, dict):
        yield CheckKind.PROVENANCE, "provenance: expected an object of versions"
        versions = {}
    for tool, version in versions.items():
        if tool in origin.versions:
            yield from expect(f"the version of {tool}", version, origin.versions[tool])
    yield from expect("the format", provenance.get("format"), FORMAT_LINE)
    if row.arch not in TARGETS:
        return
    toolchain: _Maker = toolchain_of(row.arch)
    if isinstance(point, ExpertPoint):
        toolchain = SOURCES[point.library]
    for name in toolchain.hashes:
        if not _SHA256.fullmatch(str(provenance.get(name))):
            yield CheckKind.PROVENANCE, f"provenance: expected a SHA-256 as {name!r}"
    source = toolchain.label_source(versions)
    if row.label_source != source:
        yield CheckKind.COLUMN, f"the column 'label_source' is {row.label_source!r}, not {source!r}"
    if point is None:
        return
    yield from expect("the point", provenance.get("point"), point.key)
    if isinstance(point, ExpertPoint):
        archive = SOURCES[point.library].archive.sha256
        yield from expect("the archive", provenance.get("archive_sha256"), archive)
        return
    module = point.specification.module
    if module in origin.kernel_sources:
        expected = origin.kernel_sources[module]
        yield from expect(f"the source of {module}", provenance.get("source_sha256"), expected)


def _function_problems(
    row: Row, problem: AllocationProblem, documents: Mapping[str, dict[str, Any]]
) -> Iterator[RowProblem]:
    function = problem.function
    if function.target != row.arch:
        yield CheckKind.COLUMN, f"the column 'arch' is {row.arch!r}, the text's {function.target!r}"
    if print_function(function) != row.normalized:
        yield CheckKind.TEXT, "the normalized text is not what printing its function gives"
    for column, expected in (
        ("n_blocks", len(function.blocks)),
        ("n_instructions", sum(len(block.instructions) for block in function.blocks)),
        ("n_virtual_registers", len(function.virtual_registers)),
    ):
        if getattr(row, column) != expected:
            yield (
                CheckKind.SIZE,
                f"the column {column!r} is {getattr(row, column)}, the text has {expected}",
            )
    pressure = dict(problem.pressure.maximum)
    if "pressure" in documents and documents["pressure"] != pressure:
        yield (
            CheckKind.PRESSURE,
            f"the column 'pressure' is {row.pressure}, the text's is {canonical_json(pressure)}",
        )
