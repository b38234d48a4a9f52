"""Prompt formats: what is asked, how answers come about, and how it can go wrong."""

from __future__ import annotations

import json
import random
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.model.scripted import (
    LOG_PROBABILITY,
    TINY,
    ScriptedModel,
    asked,
    last_prompt,
    run_episode,
)
from tests.sampling import few_rows
from verilocc_bench.allocators import Assistance, Example, FailureKind, Feedback, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.model.language_model import Ask, Completion, Finish, Literal
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.command_line import add_settings
from verilocc_bench.settings.language_model import Extraction, LanguageModelSettings
from verilocc_bench.settings.prompt_formats import FORMAT_RECORDS, PROMPT_FORMATS
from verilocc_bench.verification import Verifier

ROWS = load_rows("mini").rows
SMALL = sorted(ROWS, key=lambda row: row.n_virtual_registers)[:6]
NAMES = PROMPT_FORMATS
DOCUMENT = Path(__file__).parents[2] / "docs" / "prompt-formats.md"
FREE = LanguageModelSettings()
CONSTRAINED = LanguageModelSettings(decoding=Decoding.CONSTRAINED)
GUIDED = LanguageModelSettings(decoding=Decoding.GUIDED)
REPAIRING = replace(GUIDED, feedback=FeedbackKind.REPAIR)

TINY_ANSWER = {"%0": "v0", "%1": "s2", "%2": "v2", "%3": "v1"}

# First fit puts %0 where alone %2 can be: v1 is written while %2 lives.
TIGHT = """\
verilocc-bench 1
target gfx942
registers v:2 a:0 s:4 vcc:2=vcc_lo,vcc_hi
class V 1 v
class S 1 s vcc
bb0
%0=OP
%1:S=OP
%2=OP
USE %0,%1,%2
v1=OP
USE %2,v1
"""


def problem_of(text: str) -> AllocationProblem:
    return AllocationProblem(parse_function(text, canonical=False))


def asked_of(
    name: str, model: ScriptedModel, options: LanguageModelSettings = FREE, **more: Any
) -> Response:
    """What comes of asking a model about TINY."""
    return run_episode(get_prompt_format(name), Request(problem_of(TINY), **more), options, model)


def follower(answer: dict[str, str]) -> ScriptedModel:
    """A model that knows an answer, and says what it is asked for."""

    def say(ask: Ask) -> str:
        keys = asked(ask)
        return json.dumps({key: answer[key] for key in keys})

    def choose(ask: Ask, text: str, options: Sequence[str]) -> str:
        return answer[re.findall(r'"(%\d+)": "$', text)[0]]

    return ScriptedModel(say, choose)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [FREE, GUIDED, CONSTRAINED], ids=lambda o: o.decoding)
def test_a_model_that_says_the_label_is_right(name: str, options: LanguageModelSettings) -> None:
    style = get_prompt_format(name)
    for row in SMALL:
        label = row.label
        assert label is not None
        problem = AllocationProblem.from_text(row.normalized)
        model = follower(label)
        response = run_episode(style, Request(problem), options, model)
        assert response.answer == Answer(label)
        assert Verifier(problem).verify(response.answer).valid
        details = response.details
        assert details["log_probability"] == round(
            LOG_PROBABILITY * details["completion_tokens"], 6
        )
        assert all(ask.maximum_tokens >= 16 for ask in model.asks)


@pytest.mark.parametrize("name", NAMES)
def test_random_legal_choices_are_valid_or_a_dead_end(name: str) -> None:
    style = get_prompt_format(name)
    valid = 0
    for seed, row in enumerate(SMALL):
        generator = random.Random(seed)
        problem = AllocationProblem.from_text(row.normalized)
        model = ScriptedModel(choose=lambda _a, _t, names: generator.choice(names[:8]))  # noqa: B023
        response = run_episode(style, Request(problem), CONSTRAINED, model)
        if response.answer is not None:
            assert Verifier(problem).verify(response.answer).valid
            assert list(response.answer.assignment) == [
                f"%{n}" for n in range(row.n_virtual_registers)
            ]
            valid += 1
            continue
        assert response.failure is FailureKind.NO_ANSWER
        place = response.details["dead_end"]
        assert response.message == (
            f"dead end: {place['register']} of class {place['class']} fits nowhere, "
            f"{place['placed']} of {row.n_virtual_registers} placed"
        )
    assert valid >= 3


@pytest.mark.parametrize("name", NAMES)
def test_dead_end(name: str) -> None:
    response = run_episode(
        get_prompt_format(name), Request(problem_of(TIGHT)), CONSTRAINED, ScriptedModel()
    )
    assert response.answer is None
    assert response.failure is FailureKind.NO_ANSWER
    assert response.message == "dead end: %2 of class V fits nowhere, 2 of 3 placed"
    assert response.details["dead_end"] == {
        "register": "%2",
        "class": "V",
        "placed": 2,
        "registers": 3,
    }


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("whole", {"maximum_tokens": 0}, "at least 1 token"),
        ("whole", {"window_registers": 4}, "'whole' has no windows"),
        ("window", {"window_registers": 0}, "1 register or more, not 0"),
        ("whole", {"decoding": Decoding.GUIDED, "feedback": FeedbackKind.REPAIR}, "cannot repair"),
    ],
)
def test_options_that_cannot_be_met(name: str, options: dict[str, object], message: str) -> None:
    style = get_prompt_format(name)
    style.check(LanguageModelSettings())
    with pytest.raises(InputError, match=message):
        style.check(LanguageModelSettings(**options))  # type: ignore[arg-type]


def test_formats_by_name() -> None:
    """The registry agrees with the formats; help and documentation name them."""
    found = {name: get_prompt_format(name) for name in NAMES}
    assert {name: (each.version, each.assistance) for name, each in found.items()} == {
        "whole": (1, Assistance.TEXT),
        "window": (3, Assistance.STATE),
    }
    for name, each in found.items():
        assert each.name == name
        assert f"`{name}`" in each.description
        assert re.fullmatch(r"[0-9a-f]{64}", each.source_hash)
    for name, record in FORMAT_RECORDS.items():
        assert import_module(record.module).FORMAT.name == name
    with pytest.raises(InputError, match="unknown prompt format 'x'; known: whole, window"):
        get_prompt_format("x")
    with pytest.raises(InputError, match="for models that are trained for it alone"):
        get_prompt_format("reading")
    parser = ArgumentParser()
    add_settings(parser)
    assert "--prompt-format whole|window" in " ".join(parser.format_help().split())
    assert set(FORMAT_RECORDS) <= set(re.findall(r"`([\w-]+)`", DOCUMENT.read_text()))


JUNK = {
    "whole": [("", "empty"), ("%0 is v4", "not_json"), ('{"%0": 4}', "not_a_name")],
    "window": [("{} {}", "trailing_text"), ("[]", "not_an_object"), ("{", "not_json")],
}


@pytest.mark.parametrize(("name", "said", "reason"), [(n, *j) for n in NAMES for j in JUNK[n]])
def test_junk(name: str, said: str, reason: str) -> None:
    response = asked_of(
        name, ScriptedModel(lambda _: said), replace(FREE, extract=Extraction.STRICT)
    )
    assert response.answer is None
    assert response.failure is FailureKind.UNPARSABLE
    assert response.details["unparsable"] == reason
    assert response.message


def test_a_window_is_answered_with_its_own_registers() -> None:
    row = SMALL[0]
    request = Request(AllocationProblem.from_text(row.normalized))
    style = get_prompt_format("window")
    model = ScriptedModel(lambda ask: json.dumps({asked(ask)[0]: "v1", "%90": "v4"}))
    response = run_episode(style, request, FREE, model)
    assert response.details["unparsable"] == "not_asked"
    assert response.message == "%90 is not asked for here"
    # What the function has not is for the verifier; what is missing too.
    model = ScriptedModel(lambda ask: json.dumps({asked(ask)[0]: "v1", "%99999": "v4"}))
    response = run_episode(style, request, FREE, model)
    assert response.answer is not None
    kinds = {f.kind for f in Verifier(request.problem).verify(response.answer).findings}
    assert {FindingKind.UNKNOWN_VIRTUAL_REGISTER, FindingKind.MISSING} <= kinds


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_that_does_not_fit(name: str) -> None:
    model = ScriptedModel(lambda _: Completion("", Finish.CONTEXT, 9000, 0, message="9 of 8"))
    response = asked_of(name, model)
    assert response.failure is FailureKind.NO_ANSWER
    assert response.message == "the prompt does not fit: 9 of 8"
    assert response.details["unfit_prompt_tokens"] == 9000
    assert response.details["prompt_tokens"] == 0
    assert response.details["log_probability"] == 0


def test_unknown_probabilities_make_the_sum_null() -> None:
    said = Completion(json.dumps(TINY_ANSWER), Finish.STOP, 10, 2)
    response = asked_of("window", ScriptedModel(lambda _: said))
    assert dict(response.details) == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "log_probability": None,
        "read": True,
        "read_strictly": True,
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [FREE, CONSTRAINED])
def test_a_function_without_virtual_registers(name: str, options: LanguageModelSettings) -> None:
    request = Request(problem_of(TIGHT.partition("class")[0] + "bb0\nS_ENDPGM\n"))
    model = ScriptedModel(lambda _: "{}")
    assert run_episode(get_prompt_format(name), request, options, model).answer == Answer({})
    assert len(model.asks) == (name == "whole")


@pytest.mark.parametrize("name", NAMES)
def test_few_shot(name: str) -> None:
    row = SMALL[1]
    assert row.label is not None
    examples = (Example(row.normalized, row.label),) * 3
    model = ScriptedModel(lambda _: "no")
    response = asked_of(name, model, replace(FREE, few_shot=2), examples=examples)
    shown = model.asks[0].messages
    assert response.details["examples"] == 2
    assert [m.role for m in shown] == ["system", *["user", "assistant"] * 2, "user"]
    for prompt, said in zip(shown[1:-1:2], shown[2:-1:2], strict=True):
        keys = asked(Ask((prompt,), 1))
        assert said.content == json.dumps({key: row.label[key] for key in keys})
    without = asked_of(name, model, examples=examples)
    assert "examples" not in without.details
    assert model.asks[-1].messages == (shown[0], shown[-1])


def test_long_examples_are_not_shown_whole() -> None:
    row = max(ROWS, key=lambda row: len(row.normalized))
    assert row.label is not None
    model, examples = ScriptedModel(), (Example(row.normalized, row.label),)
    response = asked_of("whole", model, replace(FREE, few_shot=1), examples=examples)
    assert response.details["examples"] == 0
    assert len(model.asks[0].messages) == 2


WRONG = {"%0": "v0", "%1": "s2", "%2": "v2", "%3": "v2"}
FEEDBACK = Feedback(Answer(WRONG), Verifier(problem_of(TINY)).verify(WRONG).findings)


@pytest.mark.parametrize("name", NAMES)
def test_feedback_is_in_the_prompt(name: str) -> None:
    model = follower(TINY_ANSWER)
    asked_of(name, model, GUIDED, feedback=(FEEDBACK,))
    told = [last_prompt(ask) for ask in model.asks if "- overlap: " in last_prompt(ask)]
    assert told
    for prompt in told:
        assert "Your last attempt was wrong: " in prompt
        assert FEEDBACK.findings[0].message in prompt
        assert 'It had {"%2": "v2", "%3": "v2"}' in prompt
    if name == "whole":
        (ask,) = model.asks
        assert [m.role for m in ask.messages] == ["system", "user", "assistant", "user"]
        assert json.loads(ask.messages[2].content) == WRONG


@pytest.mark.parametrize("name", NAMES)
def test_resampling_tells_nothing(name: str) -> None:
    options = replace(GUIDED, feedback=FeedbackKind.RESAMPLE)
    with_it, without = ScriptedModel(), ScriptedModel()
    asked_of(name, with_it, options, feedback=(FEEDBACK,))
    asked_of(name, without, options)
    assert with_it.asks == without.asks


@pytest.mark.parametrize("row", few_rows(SMALL), ids=lambda row: row.id)
def test_windows_that_nothing_is_wrong_with_keep_their_answers(row: Row) -> None:
    problem, style = AllocationProblem.from_text(row.normalized), get_prompt_format("window")
    asking = ScriptedModel()
    said = run_episode(style, Request(problem), CONSTRAINED, asking).answer
    assert said is not None
    right = said.assignment
    windows = [asked(ask) for ask in asking.asks]
    assert len(windows) > 2
    for window in (windows[0], windows[len(windows) // 2], windows[-1]):
        wrong = {**right, window[0]: "no_register"}
        findings = Verifier(problem).verify(wrong).findings
        assert findings
        attempts = (
            Feedback(Answer(wrong), findings),
            Feedback(None, (), FailureKind.UNPARSABLE, "?"),
        )
        for feedback in (attempts[:1], attempts):  # words without an answer undo nothing
            model = follower(right)
            request = Request(problem, feedback=feedback)
            assert run_episode(style, request, REPAIRING, model).answer == said
            assert [asked(ask) for ask in model.asks] == [window]
            assert "attempt" not in last_prompt(model.asks[0])
    incomplete = {key: name for key, name in right.items() if key not in windows[1]}
    for feedback in (
        (),
        (Feedback(None, (), FailureKind.UNPARSABLE, "?"),),
        (Feedback(said, (Finding(FindingKind.INVALID_EDIT, "of no register"),)),),
    ):  # nothing is known of where it is wrong
        model = follower(right)
        run_episode(style, Request(problem, feedback=feedback), REPAIRING, model)
        assert [asked(ask) for ask in model.asks] == windows
    model = follower(right)
    feedback = (Feedback(Answer(incomplete), Verifier(problem).verify(incomplete).findings),)
    run_episode(style, Request(problem, feedback=feedback), REPAIRING, model)
    assert [asked(ask) for ask in model.asks] == [windows[1]]


@pytest.mark.parametrize("name", NAMES)
def test_feedback_is_bounded(name: str) -> None:
    findings = tuple(
        Finding(FindingKind.OVERLAP, f"{n} " + "long " * 1000, registers=("%0", "%1"))
        for n in range(100)
    )
    model = ScriptedModel()
    asked_of(name, model, GUIDED, feedback=(Feedback(Answer(WRONG), findings),))
    told = last_prompt(model.asks[0])
    assert "100 findings, " in told
    assert len(told) < 300 * 16 + 1500
    failed = Feedback(None, (), FailureKind.UNPARSABLE, "no\nJSON " * 1000)
    asked_of(name, model, GUIDED, feedback=(failed,))
    told = last_prompt(model.asks[-1])
    assert "Your last attempt failed, unparsable: no JSON no JSON" in told
    assert len(told) < 1500


def test_free_prompts_are_the_same_in_every_mode() -> None:
    for name in NAMES:
        prompts: list[list[str]] = []
        for options in (FREE, GUIDED, CONSTRAINED):
            model = follower(TINY_ANSWER)
            response = asked_of(name, model, options)
            assert response.answer == Answer(TINY_ANSWER)
            prompts.append([str(ask.messages) for ask in model.asks])
        assert prompts[0] == prompts[1] == prompts[2]


def test_constraints_begin_anew_each_time() -> None:
    model = follower(TINY_ANSWER)
    asked_of("whole", model, CONSTRAINED)
    constraint = model.asks[0].constraint
    assert constraint is not None
    for _ in range(2):
        pieces = constraint()
        assert next(pieces) == Literal('{"%0": "')
