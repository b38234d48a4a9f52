"""The findings of `dataset check`, and what it keeps of each row to compare it with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any


class CheckKind(StrEnum):
    """What can be wrong with a dataset folder."""

    MANIFEST = "manifest"
    MISSING_FILE = "missing_file"
    UNLISTED_FILE = "unlisted_file"
    HASH = "hash"
    LAYOUT = "layout"
    SHARDS = "shards"
    PARQUET = "parquet"
    SCHEMA = "schema"
    NULLS = "nulls"
    ID = "id"
    COLUMN = "column"
    JSON = "json"
    POINT = "point"
    PROVENANCE = "provenance"
    TEXT = "text"
    SIZE = "size"
    PRESSURE = "pressure"
    LABEL = "label"
    ALTERNATIVE = "alternative"
    BEST = "best"
    CERTIFICATE = "certificate"
    BANK_CONFLICTS = "bank_conflicts"
    REGISTERS = "registers"
    DUPLICATE = "duplicate"
    GROUP = "group"
    CLUSTER = "cluster"
    RAW = "raw"
    ROW_LIST = "row_list"
    REJECTED = "rejected"
    SWEEP = "sweep"
    CARD = "card"
    CONVERSATION = "conversation"
    LEAKAGE = "leakage"
    MACHINE_CODE = "machine-code"


@dataclass(frozen=True, slots=True, order=True)
class CheckFinding:
    """One fault: its file (relative to the folder), its row, and a message.

    `row` is the id of a row, or empty. The message tells what was found and
    what was expected.
    """

    file: str
    row: str
    kind: CheckKind
    message: str

    def __str__(self) -> str:
        row = f" row {self.row}" if self.row else ""
        return f"{self.file}{row}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        """The finding as one JSON object."""
        return {
            "kind": self.kind.value,
            "file": self.file,
            "row": self.row or None,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Everything that is wrong with a folder, in a stable order.

    `rows` counts the rows of both tracks, `files` the files of every kind,
    `executed` the rows whose machine code ran.
    """

    findings: tuple[CheckFinding, ...]
    rows: int
    files: int
    executed: int = 0

    @property
    def passed(self) -> bool:
        """True if there are no findings."""
        return not self.findings

    def with_inner(self, inner: CheckReport, place: str) -> CheckReport:
        """The report of a dataset and of another one that lies in its folder `place`."""
        found = [replace(each, file=f"{place}/{each.file}") for each in inner.findings]
        return CheckReport(
            (*self.findings, *found),
            self.rows + inner.rows,
            self.files + inner.files,
            self.executed + inner.executed,
        )

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON document."""
        return {
            "passed": self.passed,
            "rows": self.rows,
            "files": self.files,
            "executed": self.executed,
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(slots=True)
class Findings:
    """A growing list of findings."""

    found: list[CheckFinding] = field(default_factory=list)

    def add(self, kind: CheckKind, file: str, message: str, row: str = "") -> None:
        """Adds one finding."""
        self.found.append(CheckFinding(file, row, kind, message))


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row without its long columns.

    `point` and `raw_sha256` (of the raw machine IR or code) come from its
    provenance; they are empty if it does not tell. `params` is the decoded
    column, or None if that is not a JSON object.
    """

    id: str
    file: str
    place: int
    track: str
    arch: str
    family: str
    kernel: str
    params: dict[str, Any] | None
    split: str
    group: str
    cluster: str
    point: str
    digest: str
    raw_sha256: str
    raw_format: str


@dataclass(frozen=True, slots=True)
class CheckedRawRow:
    """A raw row without its content, whose SHA-256 is `content_sha256`; empty without content."""

    id: str
    file: str
    format: str
    digest: str
    content_sha256: str


@dataclass(slots=True)
class Content:
    """The part of a dataset folder that was read, in the order of files and of rows in them."""

    folder: Path
    manifest: dict[str, Any] | None
    files: Sequence[str]
    rows: list[CheckedRow] = field(default_factory=list)
    raws: list[CheckedRawRow] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """`normalized` of the rows whose texts were asked for."""
