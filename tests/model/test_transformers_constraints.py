from __future__ import annotations

import json
import math
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.model.tiny_models import (
    PROMPTS,
    ask,
    complete,
    draw,
    load,
    reference_logs,
    save_model,
    word_tokenizer,
)
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Choice, DeadEnd, Finish, Literal, Message, Segment

pytestmark = pytest.mark.slow


# Constraints


def registers(choices: list[str] | None = None) -> Generator[Segment, str, None]:
    """A JSON answer in which no register is taken twice."""
    taken: list[str] = [] if choices is None else choices
    yield Literal("{")
    for number in range(4):
        yield Literal(f'"%{number}": "')
        free = [f"v{n}" for n in range(40) if f"v{n}" not in taken] + ["s[2:3]", "vcc", "vcc_lo"]
        taken.append((yield Choice(tuple(free), '"')))
        yield Literal("}" if number == 3 else ", ")


@pytest.mark.parametrize("name", ["model", "metaspace"])
def test_constrained_answers_are_legal(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    asks = [ask(prompt, 200, constraint=registers) for prompt in PROMPTS * 3]
    how = [draw(seed, temperature=1.5) for seed in range(len(asks))]
    said = complete(model, asks, how)
    for completion in said:
        assert completion.finish is Finish.STOP
        answer = json.loads(completion.text)
        assert list(answer) == ["%0", "%1", "%2", "%3"]
        vector = [register for register in answer.values() if register[1:].isdigit()]
        assert len(set(vector)) == len(vector)
        assert model._codec.decode(completion.tokens) == completion.text
    assert len({completion.text for completion in said}) > 12
    for number in (0, 1, 22):
        (alone,) = complete(model, asks[number : number + 1], how[number : number + 1])
        assert alone.tokens == said[number].tokens


def test_what_may_be_said_is_weighed_alone(model: Any) -> None:
    """The options' probabilities are those of a softmax over legal tokens, and sum to one."""
    options = ("v1", "v12", "a4", "vcc")
    pieces = {o: model._codec.piece(o) + model._codec.piece(";") for o in options}
    before = model._codec.prompt([Message("user", "hello")])

    def constraint() -> Generator[Segment, str, None]:
        yield Choice(options, ";")

    total = 0.0
    for option, tokens in pieces.items():
        expected = 0.0
        for place, token in enumerate(tokens):
            legal = {t[place] for t in pieces.values() if t[:place] == tokens[:place]}
            logs = reference_logs(model, before + list(tokens[:place]))[-1]
            expected += float(logs[token] - torch.logsumexp(logs[sorted(legal)], dim=0))
        (said,) = complete(
            model, [ask("hello", constraint=constraint)], [draw(0, forced=tokens, alternatives=9)]
        )
        assert said.text == option + ";"
        assert sum(said.log_probabilities) == pytest.approx(expected, abs=1e-4)
        assert all(not others for others in said.alternatives)  # every place was forced
        total += math.exp(sum(said.log_probabilities))
    assert total == pytest.approx(1.0, abs=1e-4)


def test_alternatives_are_those_not_taken(model: Any) -> None:
    (said,) = complete(model, [ask("hello", 3)], [draw(5, alternatives=4)])
    before = model._codec.prompt([Message("user", "hello")])
    for place, token in enumerate(said.tokens):
        logs = reference_logs(model, before + list(said.tokens[:place]))[-1]
        ordered = sorted(range(len(logs)), key=lambda other: -float(logs[other]))
        expected = [other for other in ordered if other != token][:4]
        assert [other.token for other in said.alternatives[place]] == expected


def test_dead_ends_and_limits(model: Any) -> None:
    def dead() -> Generator[Segment, str, None]:
        yield Literal("v")
        yield Choice(("1", "2"))
        raise DeadEnd("%1 fits nowhere")

    def at_once() -> Generator[Segment, str, None]:
        raise DeadEnd("nothing fits")
        yield Literal("")

    def nothing() -> Generator[Segment, str, None]:
        yield Literal("")

    asks = [
        ask("hello", constraint=dead),
        ask("hello", constraint=at_once),
        ask("hello", constraint=nothing),
        ask("hello", 7, constraint=registers),
    ]
    said = complete(model, asks, [draw(1)] * len(asks))
    assert [(c.finish, c.message) for c in said] == [
        (Finish.DEAD_END, "%1 fits nowhere"),
        (Finish.DEAD_END, "nothing fits"),
        (Finish.STOP, None),
        (Finish.LENGTH, None),
    ]
    assert said[0].text in {"v1", "v2"}
    assert said[3].completion_tokens == 7
    (wrong,) = complete(model, [asks[0]], [draw(1, forced=(5, 5))])
    assert wrong.finish is Finish.DEAD_END


def test_the_constraint_is_told_what_was_taken(model: Any) -> None:
    told: list[Any] = []

    def constraint() -> Generator[Segment, str, None]:
        told.append((yield Literal("a ")))
        told.append((yield Choice(("v1", "v12"), ",")))
        told.append((yield Literal("")))
        told.append((yield Choice(("only",), "")))

    (said,) = complete(model, [ask("hello", constraint=constraint)], [draw(1)])
    assert told == ["a ", said.text[2 : said.text.index(",")], "", "only"]
    assert said.text in {"a v1,only", "a v12,only"}


def test_a_tokenizer_of_words(tmp_path: Path, model: Any) -> None:
    words = word_tokenizer(["hello", "v1", "v12", "register", ";"])
    of_words = load(save_model(tmp_path / "model", words))

    def constraint() -> Generator[Segment, str, None]:
        yield Literal("register ")
        yield Choice(("v1", "v12"), " ;")

    asks, how = [ask("hello", constraint=constraint)] * 8, [draw(n) for n in range(8)]
    assert {c.text for c in complete(of_words, asks, how)} == {"register v1 ;", "register v12 ;"}
    for each, options, said in (
        (of_words, ("v1", "v2"), "cannot say 'v2'"),
        (model, ("Q", "QQ"), "does not tell the options 'Q' and 'QQ' apart"),
    ):

        def wrong(options: tuple[str, ...] = options) -> Generator[Segment, str, None]:
            yield Choice(options)

        with pytest.raises(InputError, match=said):
            complete(each, [ask("hello", constraint=wrong)], [draw(1)])


@pytest.mark.parametrize("name", ["model", "metaspace"])
def test_pieces_say_just_their_text(name: str, request: pytest.FixtureRequest) -> None:
    codec = request.getfixturevalue(name)._codec
    pieces = ['{"', "%12", '": "', "v120", '", ', " v", "  ", "\n", "s[2:3]", "é", "}", "Q7"]
    tokens = [token for piece in pieces for token in codec.piece(piece)]
    before = list(codec.piece("a"))
    assert codec.decode(before + tokens) == codec.decode(before) + "".join(pieces)
