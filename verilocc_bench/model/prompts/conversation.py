"""What all formats share: the turns of a prompt, examples, limits, and constrained objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from verilocc_bench.allocators import Example, Request
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.language_model import Choice, Literal, Message, Segment
from verilocc_bench.model.prompts.episode_record import NoPlace
from verilocc_bench.settings.language_model import LanguageModelSettings

TOKENS_PER_REGISTER = 16
"""`"%123": "v45", ` is 14 characters; most tokenizers need fewer tokens than characters."""

TOKENS_BESIDES = 32
"""For the braces, white space and a code fence."""


class Turn(NamedTuple):
    """What a user asks, and what an assistant says to it."""

    prompt: str
    completion: str


def messages(
    system: str,
    turns: Sequence[Turn],
    prompt: str,
    own: str | None = None,
) -> tuple[Message, ...]:
    """A conversation that ends with the prompt; a user's `own` system message stands first."""
    found = [Message("system", system if own is None else f"{own}\n\n{system}")]
    for turn in turns:
        found += [Message("user", turn.prompt), Message("assistant", turn.completion)]
    return (*found, Message("user", prompt))


def example_turns(
    request: Request,
    settings: LanguageModelSettings,
    demonstrate: Callable[[AllocationProblem, Mapping[str, str]], Iterator[Turn]],
) -> list[Turn]:
    """The turns that a format makes of the request's examples, one after the other."""
    examples: Sequence[Example] = request.examples[: max(settings.few_shot, 0)]
    return [
        turn
        for example in examples
        for turn in demonstrate(_solved(example.normalized), example.answer)
    ]


@lru_cache(maxsize=16)
def _solved(normalized: str) -> AllocationProblem:
    """The problem of an example; many requests share it."""
    return AllocationProblem.from_text(normalized, "<example>")


def object_tokens(registers: int, settings: LanguageModelSettings) -> int:
    """The limit of a completion that is an object with `registers` keys."""
    return settings.maximum_tokens or TOKENS_BESIDES + TOKENS_PER_REGISTER * registers


def print_object(answer: Mapping[str, str], registers: Sequence[int]) -> str:
    """An answer's object for these virtual registers, as examples and constraints have it."""
    keys = (f"%{register}" for register in registers)
    return json.dumps({key: answer[key] for key in keys if key in answer})


def object_pieces(completion: str) -> tuple[str, ...]:
    """A printed object, cut as ObjectConstraint cuts it."""
    pieces: list[str] = []
    lead = "{"
    for key, name in json.loads(completion).items():
        pieces += [f'{lead}"{key}": "', name, '"']
        lead = ", "
    pieces.append("}" if pieces else "{}")
    assert "".join(pieces) == completion
    return tuple(pieces)


class ObjectConstraint:
    """A Constraint: an object of these virtual registers, each at a base that is legal by then.

    `stuck` is the dead end of its last use, if it came to one.
    """

    def __init__(self, state: RegisterState, registers: Sequence[int]) -> None:
        self.state, self.registers = state, registers
        self.stuck: NoPlace | None = None

    def __call__(self) -> Generator[Segment, str, None]:
        """What may be said, piece by piece."""
        self.stuck = None
        state = self.state.copy()
        lead = "{"
        for register in self.registers:
            bases = {name: base for base, name in state.legal(register).items()}
            if not bases:
                classes = state.problem.function.virtual_registers
                name = classes[register].name
                self.stuck = NoPlace(register, name, len(state.placed), len(classes))
                raise self.stuck
            yield Literal(f'{lead}"%{register}": "')
            name = yield Choice(tuple(bases), end='"')
            state.place(register, bases[name])
            lead = ", "
        yield Literal("}" if self.registers else "{}")
