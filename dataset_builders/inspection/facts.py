"""What the check keeps of each row, to compare it with other rows and with the lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
