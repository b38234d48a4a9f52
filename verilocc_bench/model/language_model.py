"""What a language model is asked and says, here or behind a server.

An *episode* makes one sample: it is a generator that yields each Ask, is sent
its Completion, and returns a Response (allocators.Response). Prompt formats
write episodes (model.prompts). The allocator runs many at once, and gives
their asks to a LanguageModel in batches (model.allocator).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from verilocc_bench.allocators import Response
from verilocc_bench.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that the model must say."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The model says one of `options`, which are all different and not empty.

    One option may be the beginning of another; `end`, which is said after the
    option, tells them apart.
    """

    options: tuple[str, ...]
    end: str = ""


Segment = Literal | Choice
Constraint = Callable[[], Generator[Segment, str, None]]
"""Makes a generator of what may be said, piece by piece. After a Choice it is
sent the option that the model took, after a Literal the literal's text. It
raises DeadEnd if nothing may be said any more."""


class DeadEnd(Exception):
    """There is no legal continuation; the message says where."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt, and the end of its completion.

    A completion ends at the model's own end, after `maximum_tokens` and the
    `thinking_tokens` on top, or with its constraint.
    """

    messages: tuple[Message, ...]
    maximum_tokens: int
    constraint: Constraint | None = None
    thinking_tokens: int = 0


class Finish(StrEnum):
    """Why a completion ended.

    `context`: the prompt does not fit the model's context, and nothing was
    said. `dead_end`: its constraint raised DeadEnd.
    """

    STOP = "stop"
    LENGTH = "length"
    CONTEXT = "context"
    DEAD_END = "dead_end"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that the model did not take."""

    token: int
    log_probability: float


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said to an Ask.

    `tokens` with their `log_probabilities` (natural logarithms, of the
    model's own distribution over what may be said, before temperature and
    top-p), and for each the likeliest tokens that were not taken, if
    TokenSampling asks for them. A model that does not report them leaves them
    empty; a server that does not count tokens leaves their numbers None. `reasoning` is what a
    server told apart as thinking. `sent` is the prompt as the model got it: a text, or the request
    to a server; `received` is the server's choice.
    """

    text: str
    finish: Finish
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()
    alternatives: tuple[tuple[Alternative, ...], ...] = ()
    message: str | None = None
    reasoning: str = ""
    sent: Any = field(default=None, compare=False)
    received: Any = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)


def known_sum(counts: Iterable[int | None]) -> int | None:
    """The sum of counts of tokens; None if one of them is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


@dataclass(frozen=True, slots=True)
class TokenSampling:
    """How the tokens of one completion are picked.

    `temperature` 0 takes the likeliest. `forced` are the first tokens of the
    completion. At each place after these, `alternatives` tokens that were not
    taken are reported.
    """

    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    forced: tuple[int, ...] = ()
    alternatives: int = 0


class LanguageModel(Protocol):
    """Completes prompts."""

    @property
    def revision(self) -> str:
        """What identifies the weights: a commit, or a hash of the files."""
        ...

    @property
    def can_constrain(self) -> bool:
        """True if it obeys constraints, forced tokens, and reports alternatives."""
        ...

    @property
    def thinking_tokens(self) -> int:
        """The room that it gets to think in where nobody says."""
        ...

    @property
    def widest_batch(self) -> int:
        """How many asks at once are likely to fit into memory."""
        ...

    @property
    def context(self) -> int | None:
        """How many tokens it can see; None if that is not known."""
        ...

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt; only where `context` is known."""
        ...

    def completions(
        self,
        asks: Sequence[Ask],
        sampling: Sequence[TokenSampling],
        tell_tokens: Callable[[int], object],
        keep: Callable[[int, Completion], object],
    ) -> Iterator[tuple[int, Completion | InfrastructureError]]:
        """(place, completion) of every ask, each as soon as it is there.

        `tell_tokens` is told, again and again, how many tokens more were said. `keep` is told each
        place and completion at once, perhaps in another thread. Raises
        InfrastructureError if what concerns one ask cannot be told from what concerns all.
        """
        ...


@runtime_checkable
class RemoteModel(LanguageModel, Protocol):
    """A language model elsewhere: asks are independent, and may fail one by one."""

    @property
    def concurrency(self) -> int:
        """How many asks it takes at once."""
        ...

    def close(self) -> None:
        """Lets go of connections. It can be asked again afterwards."""
        ...


Episode = Generator[Ask, Completion, Response]
