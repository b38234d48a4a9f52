"""What an allocator is, what it is asked, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeGuard, runtime_checkable

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.edits.findings import Finding
from verilocc_bench.ir import Assignment


class Assistance(StrEnum):
    """What an allocator is shown; results of different kinds are never in one table."""

    TEXT = "text"
    STATE = "state"
    CANDIDATES = "candidates"


class FailureKind(StrEnum):
    """Why there is no answer to judge.

    All kinds but `infrastructure` count against the allocator.
    `infrastructure` is a failure that the allocator did not cause, such as a
    server that cannot be reached. Such a sample counts nowhere, and a resumed
    run asks for it again.
    """

    NO_ANSWER = "no_answer"
    UNPARSABLE = "unparsable"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    BEYOND_ANALYSIS = "beyond_analysis"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True)
class Feedback:
    """An earlier attempt at the same sample, and what was wrong with it.

    `answer` is None, and `failure` says why, where there was none; else
    `findings` are the verifier's.
    """

    answer: Answer | None
    findings: tuple[Finding, ...] = ()
    failure: FailureKind | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A solved function of another sweep group, to be shown to a language model (few-shot)."""

    normalized: str
    answer: NamedAssignment


@dataclass(frozen=True, slots=True)
class Request:
    """One question: a problem, and which sample of how many is wanted.

    `seed` is different for each sample and each attempt at it. `feedback`
    holds the earlier attempts, oldest first, where a run is guided. `label`
    is the compiler's own answer and `alternatives` holds those of others by
    source: they are there for the allocators that replay or improve them, every
    other is asked without. `examples` are solved functions for the prompts of
    language models, where they are asked for.
    """

    problem: AllocationProblem
    sample: int = 0
    seed: int = 0
    label: NamedAssignment | None = None
    alternatives: Mapping[str, NamedAssignment] | None = None
    feedback: tuple[Feedback, ...] = ()
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, or why there is none.

    `seconds` is how long it took, on a clock. `details` are further figures
    of this sample by name (`backtracks`, `prompt_tokens` …): what JSON can
    say, the same in every run, never times.
    """

    answer: Answer | None
    failure: FailureKind | None = None
    message: str | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


class Allocator(Protocol):
    """Answers requests; `name` is what results call it.

    `allocate` raises AllocationFailed where it has no answer; what it
    returns is judged, never trusted. A deterministic allocator gives every
    sample the same answer, and is asked once.
    """

    @property
    def name(self) -> str:
        """What results call the allocator."""
        ...

    @property
    def assistance(self) -> Assistance:
        """What it is shown."""
        ...

    @property
    def deterministic(self) -> bool:
        """True if it gives every sample the same answer."""
        ...

    def allocate(self, request: Request) -> Answer:
        """An answer for the request's function."""
        ...


@runtime_checkable
class BatchAllocator(Allocator, Protocol):
    """An allocator that answers many requests together.

    Language models run batches, programs and servers run beside this
    process. Requests come in groups of at most `group_size`; a group is
    always put together in the same way, so that what a group gives can be
    repeated.
    """

    @property
    def group_size(self) -> int:
        """How many requests it wants at once."""
        ...

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """(place among the requests, response) for every request, each as soon as it is there."""
        ...

    def close(self) -> None:
        """Ends what it started. It can be asked again afterwards."""
        ...


@runtime_checkable
class DetailedAllocator(Allocator, Protocol):
    """An allocator of this package that says more than its answer."""

    def respond_to(self, request: Request) -> Response:
        """The answer with its details; raises AllocationFailed as `allocate` does."""
        ...


class AllocationInterrupted(KeyboardInterrupt):
    """The user interrupted an allocator; `answer` is its best so far."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def answers_batches(allocator: Allocator) -> TypeGuard[BatchAllocator]:
    """True if an allocator answers many requests together."""
    return hasattr(allocator, "respond")


def answer_from_assignment(problem: AllocationProblem, assignment: Assignment) -> dict[str, str]:
    """An assignment in the names that answers use."""
    placements = problem.placements
    classes = problem.function.virtual_registers
    answer: dict[str, str] = {}
    for number, register in sorted(assignment.items()):
        unit = placements.unit(register)
        name = placements.legal[classes[number]].get(unit)
        answer[f"%{number}"] = name if name is not None else f"{register.file}{register.index}"
    return answer
