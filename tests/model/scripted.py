"""A language model that says what a test tells it to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from verilocc_bench.allocators import Request, Response
from verilocc_bench.model.language_model import (
    Ask,
    Choice,
    Completion,
    DeadEnd,
    Finish,
    Message,
    TokenSampling,
)
from verilocc_bench.model.prompts import PromptFormat
from verilocc_bench.settings.language_model import LanguageModelSettings

LOG_PROBABILITY = -0.25
"""Of every token, which is one character."""

TINY = """\
verilocc-bench 1
target gfx942
registers v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi
reserved s15
class V 1 v
class S2 2 s/2 vcc/2
class V2 2 v/2
bb0(v0,s[2:3])->bb1
%0=COPY v0
%1:S2=COPY s[2:3]
%2:V2=GLOBAL_LOAD_DWORDX2_SADDR %0,%1
bb1->bb1,bb2
%3=V_ADD_U32 %2.0,%2.1
%2.0=V_ADD_U32 %3,%0
S_CBRANCH_SCC1
bb2
GLOBAL_STORE_DWORD_SADDR %0,%3,%1
"""


class Batched:
    """A model whose `complete` says all at once."""

    thinking_tokens = 0
    widest_batch = 16
    context: int | None = None

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message.content) for message in messages)

    def completions(
        self,
        asks: Sequence[Ask],
        sampling: Sequence[TokenSampling],
        tell_tokens: Callable[[int], object],
        keep: Callable[[int, Completion], object],
    ) -> Iterator[tuple[int, Completion]]:
        said = self.complete(asks, sampling)
        tell_tokens(sum(each.completion_tokens for each in said))
        for place, each in enumerate(said):
            keep(place, each)
            yield place, each

    def complete(self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]) -> list[Completion]:
        raise NotImplementedError


@dataclass
class ScriptedModel(Batched):
    """`say` answers an ask in words; `choose` picks at each choice of a constraint.

    `choose` is given the options and the text said so far, the ask with it.
    """

    say: Callable[[Ask], str | Completion] = lambda _: ""
    choose: Callable[[Ask, str, Sequence[str]], str] = lambda _ask, _text, options: options[0]
    can_constrain: bool = True
    revision: str = "scripted"
    context: int | None = None
    thinking_tokens: int = 0
    asks: list[Ask] = field(default_factory=list)

    def complete(self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]) -> list[Completion]:
        """One completion for each ask."""
        assert len(asks) == len(sampling)
        return [self.answer(ask) for ask in asks]

    def answer(self, ask: Ask) -> Completion:
        """The completion of one ask."""
        self.asks.append(ask)
        if ask.constraint is None:
            return self._free(ask)
        return self._constrained(ask)

    def _free(self, ask: Ask) -> Completion:
        said = self.say(ask)
        if isinstance(said, Completion):
            return said
        whole = len(said) <= ask.maximum_tokens
        return _completion(ask, said[: ask.maximum_tokens], Finish.STOP if whole else Finish.LENGTH)

    def _constrained(self, ask: Ask) -> Completion:
        assert ask.constraint is not None
        pieces = ask.constraint()
        text = ""
        try:
            piece = next(pieces)
            while True:
                if isinstance(piece, Choice):
                    options = piece.options
                    assert options
                    assert len(set(options)) == len(options)
                    assert all(options)
                    said = self.choose(ask, text, options)
                    assert said in options
                    text += said + piece.end
                else:
                    said = piece.text
                    text += said
                piece = pieces.send(said)
        except StopIteration:
            return _completion(ask, text, Finish.STOP)
        except DeadEnd as error:
            return _completion(ask, text, Finish.DEAD_END, str(error))


def _completion(ask: Ask, text: str, finish: Finish, message: str | None = None) -> Completion:
    return Completion(
        text,
        finish,
        prompt_tokens=sum(len(message.content) for message in ask.messages),
        completion_tokens=len(text),
        tokens=tuple(map(ord, text)),
        log_probabilities=(LOG_PROBABILITY,) * len(text),
        message=message,
    )


def run_episode(
    style: PromptFormat, request: Request, options: LanguageModelSettings, model: ScriptedModel
) -> Response:
    """What comes of an episode with a model."""
    style.check(options)
    episode = style.episode(request, options)
    try:
        ask = next(episode)
        while True:
            ask = episode.send(model.complete([ask], [TokenSampling(0)])[0])
    except StopIteration as end:
        response = end.value
    assert isinstance(response, Response)
    return response


def last_prompt(ask: Ask) -> str:
    """What the user asks in the end."""
    assert ask.messages[-1].role == "user"
    return ask.messages[-1].content


def asked(ask: Ask) -> list[str]:
    """The virtual registers that a prompt of any format asks for."""
    text = last_prompt(ask)
    if match := re.search(r"^place (.*)$", text, re.MULTILINE):
        return [word.partition(":")[0] for word in match[1].split()]
    whole = "\n".join(message.content for message in ask.messages if message.role == "user")
    if match := re.search(r"^Assign registers to (\S+) to %(\d+)\.$", whole, re.MULTILINE):
        return [f"%{number}" for number in range(int(match[2]) + 1)]
    raise AssertionError(text)
