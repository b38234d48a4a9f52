"""Answers from a file: `predictions:FILE`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    FailureKind,
    LabelUse,
    Request,
    SingleAllocator,
)
from verilocc_bench.edits.answer_files import parse_answer
from verilocc_bench.errors import AllocationFailed, InfrastructureError, InputError
from verilocc_bench.evaluation.fingerprints import DIGITS
from verilocc_bench.files import MIB, decode_text, open_input, parse_json
from verilocc_bench.settings.allocator import AllocatorSettings

LIMIT_BYTES = 4096 * MIB
LINE_LIMIT_BYTES = 32 * MIB
"""As for an answer in a file of its own."""

_ID = re.compile(r'"id"\s*:\s*"([0-9a-f]{16})"')
_FAILURE_KEYS = {"id", "failure", "message"}


@dataclass(frozen=True, slots=True)
class PredictedFailure:
    """A sample that has no answer."""

    kind: FailureKind
    message: str


class _Line(NamedTuple):
    """The place of a line in a file, in bytes; its number counts from 1."""

    number: int
    offset: int
    length: int


@dataclass(frozen=True)
class Predictions(SingleAllocator):
    """Answers from a file, in the order of their lines.

    `samples` has the places of each function's lines. A line is read when it is
    asked for: all answers as objects would take ten times the size of the file.
    """

    name: str
    path: Path
    samples: Mapping[str, list[_Line]]
    revision: str
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)
    _place: Path = field(init=False, repr=False)

    assistance: ClassVar[Assistance] = Assistance.TEXT
    deterministic: ClassVar[bool] = False
    label_use: ClassVar[LabelUse] = LabelUse.NONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", self.path.absolute())

    def allocate(self, request: Request) -> Answer:
        """The answer of the request's sample. Raises AllocationFailed without one."""
        identifier = request.problem.id
        lines = self.samples.get(identifier, ())
        if request.sample >= len(lines):
            raise AllocationFailed("the file has no such sample for the function")
        answered, found = self._read(lines[request.sample])
        if answered != identifier:
            raise InfrastructureError(f"{self.path} has changed since it was read")
        if isinstance(found, PredictedFailure):
            raise AllocationFailed(found.message, found.kind)
        return found

    def _read(self, line: _Line) -> tuple[str, Answer | PredictedFailure]:
        try:
            # An allocator may have changed the current folder.
            with open_input(self._place) as file:
                file.seek(line.offset)
                text = _text(file.read(line.length), self.path, line.number)
            return parse_prediction(text, self.path, line.number)
        except (InputError, OSError) as error:
            raise InfrastructureError(f"{self.path} cannot be read again: {error}") from None

    def check_ids(self, known: Callable[[], Container[str]]) -> None:
        """Raises InputError for an answer to a function that the dataset does not have."""
        ids = known()
        for identifier in self.samples:
            if identifier not in ids:
                raise InputError(
                    f"there is no function {identifier[:40]!r} in the dataset", source=self.path
                )


def read_predictions(
    name: str, path: Path, settings: AllocatorSettings | None = None
) -> Predictions:
    """The samples of a predictions file; samples of one function in the order of their lines.

    A line with an id but without an answer is an unparsable sample. Raises
    InputError for a line without an id.
    """
    samples: dict[str, list[_Line]] = {}
    digest = hashlib.sha256()
    with open_input(path, LIMIT_BYTES) as file:
        offset = number = 0
        while line := file.readline(LINE_LIMIT_BYTES + 1):
            number += 1
            if len(line) > LINE_LIMIT_BYTES:
                raise InputError(
                    f"longer than the {LINE_LIMIT_BYTES:,} bytes that a line may have",
                    source=path,
                    line=number,
                )
            digest.update(line)
            if text := _text(line, path, number):
                identifier, _ = parse_prediction(text, path, number)
                samples.setdefault(identifier, []).append(_Line(number, offset, len(line)))
            offset += len(line)
    if not samples:
        raise InputError("the file is empty", source=path)
    revision = digest.hexdigest()[:DIGITS]
    return Predictions(name, path, samples, revision, settings or AllocatorSettings())


def _text(line: bytes, path: Path, number: int) -> str:
    """The text of a line, without white space around it."""
    try:
        return decode_text(line, path).strip()
    except InputError as error:
        raise InputError(error.message, source=path, line=number) from None


def failure_to_json(row_id: str, kind: str, message: str | None) -> dict[str, Any]:
    """The line of a sample that has no answer."""
    return {"id": row_id, "failure": kind, "message": message or ""}


def parse_prediction(
    line: str, path: Path, number: int | None = None
) -> tuple[str, Answer | PredictedFailure]:
    """The id in a line of a predictions file, and its sample; see read_predictions."""
    try:
        document = parse_json(line, path, number)
        if isinstance(document, dict) and "failure" in document:
            return _failure(document, path, number)
        identifier, answer = parse_answer(document, path, number)
    except InputError as error:
        found = _ID.search(line)
        if found is None:
            raise
        message = error.message if number is None else f"line {number}: {error.message}"
        return found[1], PredictedFailure(FailureKind.UNPARSABLE, message)
    if identifier is None:
        raise InputError("the answer has no 'id'", source=path, line=number)
    return identifier, answer


def _failure(
    document: dict[str, Any], path: Path, number: int | None
) -> tuple[str, PredictedFailure]:
    kinds = [kind.value for kind in FailureKind]
    identifier, kind = document.get("id"), document["failure"]
    message = document.get("message", "")
    strings = isinstance(identifier, str) and isinstance(message, str)
    if not strings or kind not in kinds or document.keys() - _FAILURE_KEYS:
        raise InputError(
            'expected {"id": …, "failure": KIND, "message": …} with a KIND of ' + ", ".join(kinds),
            source=path,
            line=number,
        )
    assert isinstance(identifier, str)
    if kind == FailureKind.INFRASTRUCTURE:  # a file cannot take samples out of the count
        kind, message = FailureKind.NO_ANSWER, f"infrastructure failed: {message}"
    return identifier, PredictedFailure(FailureKind(kind), message)
