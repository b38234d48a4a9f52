"""Step two: judges what an allocator says; nothing that foreign code put there is fatal."""

from __future__ import annotations

import time
from collections.abc import Mapping

from verilocc_bench.allocators import FailureKind, Feedback, Response
from verilocc_bench.edits import Answer, edits_to_json, parse_edits
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.records import Judged, Sample
from verilocc_bench.verification import Verifier

MESSAGE_LENGTH = 300

FINDINGS_KEPT = 20
"""An answer that puts everything into one register has a hundred thousand."""


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
        tuple(dict.fromkeys([*(finding.kind.value for finding in findings), *map(str, untold)])),
        details=dict(response.details),
        allocate_seconds=response.seconds,
        verify_seconds=seconds,
        traceback=response.traceback,
    )
    # What the verifier could not judge is kept: a later verifier may judge it.
    kept = failure in (None, FailureKind.BEYOND_ANALYSIS)
    return Judged(sample, answer if kept else None, verdict)


def feedback_of(judged: Judged) -> Feedback:
    """What an allocator is told of a wrong attempt."""
    findings = () if judged.verdict is None else judged.verdict.findings
    return Feedback(judged.answer, findings, judged.sample.failure, judged.sample.message)


def _own_copy(answer: object) -> Answer | None:
    """A copy of an answer, which foreign code cannot change later; None unless it is an answer."""
    try:
        if not isinstance(answer, Answer):
            mapping = _own_mapping(answer)
            return None if mapping is None else Answer(mapping)
        assignment = _own_mapping(answer.assignment)
        # Foreign code can put anything into these records: only what JSON can say counts.
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
