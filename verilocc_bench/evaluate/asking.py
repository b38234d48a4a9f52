"""Asks an allocator, and judges what it says; nothing that foreign code does is fatal."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections.abc import Mapping
from typing import Any

from verilocc_bench.allocators import (
    Allocator,
    DetailedAllocator,
    FailureKind,
    Feedback,
    Request,
    Response,
)
from verilocc_bench.edits import Answer, edits_to_json, parse_edits
from verilocc_bench.errors import (
    AllocationFailed,
    ContradictionError,
    InfrastructureError,
    InputError,
)
from verilocc_bench.evaluate.records import Judged, Sample
from verilocc_bench.verify import Verifier

__all__ = ["FINDINGS_KEPT", "ask", "describe_exception", "feedback_of", "judge", "sample_seed"]

MESSAGE_LENGTH = 300

_CLAIMS = frozenset(FailureKind) - {FailureKind.INFRASTRUCTURE, FailureKind.BEYOND_ANALYSIS}
"""What an allocator may say of itself."""

FINDINGS_KEPT = 20
"""An answer that puts everything into one register has a hundred thousand."""


def sample_seed(seed: int, row_id: str, index: int, attempt: int = 0) -> int:
    """The seed of one attempt: the same whatever else runs, and in whatever order."""
    text = f"{seed} {row_id} {index}" + (f" {attempt}" if attempt else "")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def ask(allocator: Allocator, request: Request) -> Response:
    """What an allocator says; whatever it raises is a failure of its own.

    But for a ContradictionError of this package's own allocators: it comes through.
    What it prints goes to standard error: standard output is for results.
    """
    failure, message, answer = None, None, None
    details: Mapping[str, Any] = {}
    foreign = bool(getattr(allocator, "foreign", False))
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if not foreign and isinstance(allocator, DetailedAllocator):
                response = allocator.respond_to(request)
                answer, details = response.answer, response.details
            else:
                answer = allocator.allocate(request)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ContradictionError) and not foreign:
            raise
        failure, message = _failure_of(error, foreign=foreign)
    return Response(answer, failure, message, time.perf_counter() - started, details)


def _failure_of(error: BaseException, *, foreign: bool) -> tuple[FailureKind, str]:
    """What an exception is counted as. Foreign code cannot take a sample out of the count."""
    if isinstance(error, InfrastructureError) and not foreign:
        return FailureKind.INFRASTRUCTURE, str(error)
    if isinstance(error, AllocationFailed) and error.kind in _CLAIMS:
        return FailureKind(error.kind), describe_exception(error, with_name=False)
    return FailureKind.CRASHED, describe_exception(error)


def describe_exception(error: BaseException, *, with_name: bool = True) -> str:
    """An exception in words, whatever its class makes of that."""
    name = type(error).__name__
    try:
        text = f"{error}"
    except Exception:  # noqa: BLE001  foreign code may raise anything
        return f"{name}, which cannot be printed"
    return f"{name}: {text}" if with_name else text


def judge(verifier: Verifier, response: Response, index: int) -> Judged:
    """A response with the verifier's verdict on its answer."""
    failure, message, answer = response.failure, response.message, response.answer
    if failure is None:
        answer = _own_copy(answer)
        if answer is None:
            failure, message = FailureKind.UNPARSABLE, "expected a mapping of names to names"
    verdict = None
    started = time.perf_counter()
    if failure is None:
        assert answer is not None
        try:
            verdict = verifier.verify(answer, FINDINGS_KEPT)
        except InputError as error:  # its moves and guards are beyond the checker's bounds
            failure, message = FailureKind.BEYOND_ANALYSIS, str(error)
    seconds = time.perf_counter() - started
    findings, untold = ((), {}) if verdict is None else (verdict.findings, verdict.untold)
    sample = Sample(
        index,
        verdict is not None and verdict.valid,
        failure,
        None if message is None else " ".join(message.split())[:MESSAGE_LENGTH],
        len(findings) + sum(untold.values()),
        tuple(sorted({finding.kind.value for finding in findings} | set(map(str, untold)))),
        details=dict(response.details),
        allocate_seconds=response.seconds,
        verify_seconds=seconds,
    )
    # What the verifier could not judge is kept: another verifier may.
    kept = failure in (None, FailureKind.BEYOND_ANALYSIS)
    return Judged(sample, answer if kept else None, verdict)


def feedback_of(judged: Judged) -> Feedback:
    """What an allocator is told of a wrong attempt."""
    findings = () if judged.verdict is None else judged.verdict.findings
    return Feedback(judged.answer, findings, judged.sample.failure, judged.sample.message)


def _own_copy(answer: object) -> Answer | None:
    """An answer of foreign code, copied so that it stays what is judged; None if it is none."""
    try:
        if not isinstance(answer, Answer):
            mapping = _own_mapping(answer)
            return None if mapping is None else Answer(mapping)
        assignment = _own_mapping(answer.assignment)
        # Foreign code can put anything into these records; what JSON can say is looked at.
        edits = parse_edits(edits_to_json(answer.edits))
        same = edits == answer.edits
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  whatever is in there
        return None
    return Answer(assignment, edits) if same and assignment is not None else None


def _own_mapping(answer: object) -> dict[str, str] | None:
    if not isinstance(answer, Mapping):
        return None
    if type(answer) is dict and {*map(type, answer), *map(type, answer.values())} <= {str}:
        return dict(answer)
    items = list(answer.items())
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in items):
        return None
    return {str.__str__(key): str.__str__(value) for key, value in items}
