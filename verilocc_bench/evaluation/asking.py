"""Step one: asks an allocator for samples, again where it is guided and was wrong.

A sample is settled when it is valid, or when its attempts are spent. Each
attempt is judged as soon as its response is there (`judging`).
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from verilocc_bench.allocators import (
    Allocator,
    Example,
    FailureKind,
    Feedback,
    LabelUse,
    Request,
    Response,
)
from verilocc_bench.evaluation.judging import feedback_of, judge
from verilocc_bench.evaluation.prepared import PreparedProblem
from verilocc_bench.evaluation.records import Judged
from verilocc_bench.settings.allocator import FeedbackKind

_Prepared = TypeVar("_Prepared", bound=PreparedProblem)

WantedSample = tuple[_Prepared, int]
"""A function and the index of the sample that is wanted."""


@dataclass(slots=True)
class _Attempt(Generic[_Prepared]):
    """A sample that is not settled yet, with its attempts so far."""

    place: int
    prepared: _Prepared
    index: int
    judged: list[Judged] = field(default_factory=list)
    feedback: tuple[Feedback, ...] = ()


def settled_samples(
    wanted: Sequence[WantedSample[_Prepared]],
    allocator: Allocator,
    seed: int,
    examples: Callable[[_Prepared], tuple[Example, ...]] | None = None,
) -> Iterator[tuple[_Prepared, Judged]]:
    """Each sample as soon as it is settled. `examples` chooses solved functions for a prompt."""
    settings = allocator.settings
    tells = settings.guided and settings.feedback is not FeedbackKind.RESAMPLE
    pending = [_Attempt(place, *each) for place, each in enumerate(wanted)]
    while pending:
        requests = [_request(each, allocator, seed, examples) for each in pending]
        again: list[_Attempt[_Prepared]] = []
        for place, response in _responses(allocator, requests):
            attempt = pending[place]
            judged = judge(attempt.prepared.verifier, response, attempt.index)
            attempt.judged.append(judged)
            spent = len(attempt.judged) >= settings.attempts or allocator.deterministic
            if judged.sample.valid or spent or not judged.sample.counted:
                yield attempt.prepared, _summed(attempt.judged)
            else:
                if tells:
                    attempt.feedback = (*attempt.feedback, feedback_of(judged))
                again.append(attempt)
        again.sort(key=lambda each: each.place)  # whatever order they came back in
        pending = again


def _request(
    attempt: _Attempt[_Prepared],
    allocator: Allocator,
    seed: int,
    examples: Callable[[_Prepared], tuple[Example, ...]] | None,
) -> Request:
    prepared = attempt.prepared
    own_seed = sample_seed(seed, prepared.problem.id, attempt.index, len(attempt.judged))
    problem = prepared.lent_problem() if allocator.foreign else prepared.problem
    settings = allocator.settings
    if settings.on_machine_live_ranges:
        problem = prepared.runnable_problem
    code_cost = prepared.code_cost() if settings.compiled_answers else None
    request = Request(
        problem, attempt.index, own_seed, feedback=attempt.feedback, code_cost=code_cost
    )
    if allocator.label_use is not LabelUse.NONE:
        answers = prepared.compiler_answer, prepared.alternatives
        return replace(request, label=answers[0], alternatives=answers[1])
    if examples is not None:
        return replace(request, examples=examples(prepared))
    return request


def sample_seed(seed: int, row_id: str, index: int, attempt: int = 0) -> int:
    """The seed of one attempt: the same whatever else runs, and in whatever order."""
    text = f"{seed} {row_id} {index}" + (f" {attempt}" if attempt else "")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _responses(allocator: Allocator, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
    """Exactly one response to every request, whatever the allocator does.

    What it prints goes to standard error: standard output is for results.
    """
    waiting = set(range(len(requests)))
    with contextlib.redirect_stdout(sys.stderr):
        for place, response in allocator.respond(requests):
            if place in waiting:
                waiting.remove(place)
                yield place, response
    for place in sorted(waiting):
        yield place, Response(None, FailureKind.CRASHED, "the allocator said nothing")


_OF_ONE_ATTEMPT = {"examples", "unfit_prompt_tokens"}


def _summed(attempts: Sequence[Judged]) -> Judged:
    """The last attempt, with the time and the counts among the details of all.

    A number that one attempt does not know is not known. Demonstrations are the same in all.
    """
    last = attempts[-1]
    if len(attempts) == 1:
        return last
    details = dict(last.sample.details)
    for name, value in details.items():
        figures = [each.sample.details.get(name, 0) for each in attempts]
        counts = type(value) is int and name not in _OF_ONE_ATTEMPT
        if counts or name == "log_probability":
            if all(type(figure) in (int, float) for figure in figures):
                details[name] = sum(figures)
            elif None in figures:
                details[name] = None
    sample = replace(
        last.sample,
        calls=len(attempts),
        details=details,
        allocate_seconds=sum(each.sample.allocate_seconds for each in attempts),
        verify_seconds=sum(each.sample.verify_seconds for each in attempts),
    )
    return replace(last, sample=sample)
