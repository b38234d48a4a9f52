"""The protocol of allocators: their requests and responses."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Protocol, runtime_checkable

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.edits.findings import Finding
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.allocator import AllocatorSettings


class Assistance(StrEnum):
    """The information that an allocator sees. Tables never mix results of different kinds.

    `text`: the function's text alone. `intervals`: the program works out lists, first mentions
    and loops of text intervals. `state`: the state of the registers.
    """

    TEXT = "text"
    INTERVALS = "intervals"
    STATE = "state"


class FailureKind(StrEnum):
    """The reasons why an answer to judge is missing.

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
    """An earlier attempt at the same sample, and its mistakes.

    Without an answer, `answer` is None and `failure` says why. Otherwise `findings` are
    the verifier's.
    """

    answer: Answer | None
    findings: tuple[Finding, ...] = ()
    failure: FailureKind | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A solved function of another sweep group, as an example for a language model (few-shot)."""

    normalized: str
    answer: NamedAssignment


@dataclass(frozen=True, slots=True)
class Request:
    """One question: a problem, and the number of the sample among how many.

    `seed` differs for each sample and each attempt at it. In a guided run `feedback` has
    the earlier attempts, oldest first. `label` is the compiler's own answer, and
    `alternatives` has further answers by source; only the allocators that replay or
    improve labels get them. `examples` are solved functions for the prompts of language
    models, if the run asks for them. `code_cost` compiles an answer with the compiler and
    gives the cost of its machine code, if the allocator asks for it and the code is there.
    """

    problem: AllocationProblem
    sample: int = 0
    seed: int = 0
    label: NamedAssignment | None = None
    alternatives: Mapping[str, NamedAssignment] | None = None
    feedback: tuple[Feedback, ...] = ()
    examples: tuple[Example, ...] = ()
    code_cost: Callable[[NamedAssignment], CodeCost] | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, or the reason why it is missing.

    `seconds` is the wall-clock time. `details` has further figures of this sample by name,
    such as `asks` or `prompt_tokens`. They are JSON values, and the same in every
    run, so times are not among them. `traceback` tells where an allocator in Python crashed.
    """

    answer: Answer | None
    failure: FailureKind | None = None
    message: str | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    traceback: str | None = None


class LabelUse(Enum):
    """How an allocator uses the compilers' labels of a function.

    `NONE`: it does not see them. `REPLAY`: it answers with one. `LAST`: it
    searches alone; if it finds nothing, finds something only by a fallback, or
    finds something worse than the label, it starts again from the label.
    `FIRST`: it starts from the label. Where answers are compiled, `LAST` and `FIRST`
    both begin with the label's own code.
    """

    NONE = auto()
    REPLAY = auto()
    LAST = auto()
    FIRST = auto()


@dataclass(frozen=True, slots=True)
class PromptIdentity:
    """What identifies the prompts of a language model, for results.

    `hash` is a hash of the code that makes the prompts. `few_shot` counts the
    examples in a prompt, and `examples_from` names the split that they are from.
    """

    format: str
    version: int
    hash: str
    few_shot: int
    examples_from: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As `config.prompt` of results.json; without `examples_from` if it has no examples."""
        found = asdict(self)
        if self.examples_from is None:
            del found["examples_from"]
        return found


class Allocator(Protocol):
    """Answers requests; what it answers is judged, never trusted."""

    @property
    def name(self) -> str:
        """The `--model` value, and what results call it."""
        ...

    @property
    def revision(self) -> str | None:
        """A hash or version of what it is made of; None if it is part of this package."""
        ...

    @property
    def settings(self) -> AllocatorSettings:
        """How it is asked, with what it chose itself where nobody said."""
        ...

    @property
    def assistance(self) -> Assistance:
        """The information that it sees."""
        ...

    @property
    def deterministic(self) -> bool:
        """True if it gives every sample the same answer; then it is asked once."""
        ...

    @property
    def foreign(self) -> bool:
        """True if it runs other people's code in this process.

        Then it works on a copy of the problem, and what it raises is its own failure.
        """
        ...

    @property
    def label_use(self) -> LabelUse:
        """What it does with compilers' labels; requests hold them unless this is NONE."""
        ...

    @property
    def prompt(self) -> PromptIdentity | None:
        """What identifies its prompts; None unless it is a language model."""
        ...

    @property
    def group_size(self) -> int | None:
        """How many requests it answers together; None if one at a time.

        An allocator that answers one at a time may be asked in several processes.
        """
        ...

    @property
    def keeps_groups_whole(self) -> bool:
        """True if an answer depends, in its last digits, on what else is in its group."""
        ...

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks that it can answer; `evaluate` refuses another by its name."""
        ...

    def check_ids(self, known: Callable[[], Container[str]]) -> None:
        """Raises InputError if it answers a function whose id `known()` does not have.

        An allocator that can answer any function does nothing, and does not call `known`.
        """
        ...

    def allocate(self, request: Request) -> Answer:
        """An answer for the request's function. Raises AllocationFailed without one."""
        ...

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """(place among the requests, response) for every request, each as soon as it is there.

        A request without an answer has a response that says why.
        """
        ...

    def close(self) -> None:
        """Ends the processes that it started. It can be asked again afterwards."""
        ...


class AllocationInterrupted(KeyboardInterrupt):
    """The user interrupted an allocator; `answer` is its best so far."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def answer_from_assignment(problem: AllocationProblem, assignment: Assignment) -> dict[str, str]:
    """An assignment by the names of answers."""
    placements = problem.placements
    classes = problem.function.virtual_registers
    answer: dict[str, str] = {}
    for number, register in sorted(assignment.items()):
        unit = placements.unit(register)
        name = placements.legal[classes[number]].get(unit)
        answer[f"%{number}"] = name if name is not None else f"{register.file}{register.index}"
    return answer


@runtime_checkable
class SpeaksInTokens(Protocol):
    """An allocator whose answers take long, and that counts aloud meanwhile."""

    tell_tokens: Callable[[int], object]
    """Is told, again and again, how many tokens more the model has said."""
