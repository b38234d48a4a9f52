"""Answers from a file: `predictions:FILE`."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import AnyAnswer, Assistance, FailureKind, Request
from verilocc_bench.answers import parse_answer
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluate.fingerprints import file_fingerprint
from verilocc_bench.files import MIB, parse_json, read_text

__all__ = [
    "PredictedFailure",
    "Predictions",
    "failure_to_json",
    "parse_prediction",
    "read_predictions",
]

LIMIT_BYTES = 4096 * MIB

_ID = re.compile(r'"id"\s*:\s*"([0-9a-f]{16})"')
_FAILURE_KEYS = {"id", "failure", "message"}


@dataclass(frozen=True, slots=True)
class PredictedFailure:
    """A sample that has no answer."""

    kind: FailureKind
    message: str


@dataclass(frozen=True)
class Predictions:
    """Answers from a file, in the order of their lines."""

    name: str
    path: Path
    samples: Mapping[str, list[AnyAnswer | PredictedFailure]]
    revision: str
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = False

    def allocate(self, request: Request) -> AnyAnswer:
        """The answer of the request's sample. Raises AllocationFailed where there is none."""
        samples = self.samples.get(request.problem.id, ())
        if request.sample >= len(samples):
            raise AllocationFailed("the file has no such sample for the function")
        found = samples[request.sample]
        if isinstance(found, PredictedFailure):
            raise AllocationFailed(found.message, found.kind)
        return found

    def check_ids(self, known: Container[str]) -> None:
        """Raises InputError for an answer to a function that the dataset does not have."""
        for identifier in self.samples:
            if identifier not in known:
                raise InputError(
                    f"there is no function {identifier[:40]!r} in the dataset", source=self.path
                )


def read_predictions(name: str, path: Path) -> Predictions:
    """The samples of a predictions file, each id's in the order of their lines.

    A line of a function that is no answer is a sample that cannot be parsed.
    Raises InputError for a line that does not even say whose answer it is.
    """
    samples: dict[str, list[AnyAnswer | PredictedFailure]] = {}
    for number, line in enumerate(read_text(path, LIMIT_BYTES).split("\n"), 1):
        if line.strip():
            identifier, sample = parse_prediction(line, path, number)
            samples.setdefault(identifier, []).append(sample)
    return Predictions(name, path, samples, file_fingerprint(path))


def failure_to_json(row_id: str, kind: str, message: str | None) -> dict[str, Any]:
    """The line of a sample that has no answer."""
    return {"id": row_id, "failure": kind, "message": message or ""}


def parse_prediction(
    line: str, path: Path, number: int | None = None
) -> tuple[str, AnyAnswer | PredictedFailure]:
    """The id of a line of a predictions file, and its sample; see read_predictions."""
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
