"""The prompt format `text-notes-json`: any language model keeps the notes of `text-notes`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.generated import random_function
from tests.model.notes.test_reading import EXAMPLE, example
from tests.model.notes.without_analyses import forbid_analyses
from tests.model.scripted import ScriptedModel, last_prompt, run_episode
from tests.model.text_notes.speaker import read, speak
from tests.model.text_notes.test_text_reading import smallest
from tests.model.text_notes_json.teacher import answer
from verilocc_bench.allocators import Assistance, Example, FailureKind, Feedback, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function, parse_function, print_function
from verilocc_bench.model.language_model import Ask
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.words import register_word
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import empty_text_ledger
from verilocc_bench.model.prompts.text_notes_json.text_format import ASKED_AGAIN, TEXT_NOTES_JSON
from verilocc_bench.model.prompts.text_notes_json.told import (
    NoRuleAnswer,
    by_rule,
    rule_answer,
    told_turns,
    turns_until_wrong,
)
from verilocc_bench.model.prompts.text_notes_json.window import JsonWindow
from verilocc_bench.model.prompts.text_notes_json.wording import SYSTEM, window_text
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.verification import Verifier
from verilocc_bench.views import parse_label

DOCUMENT = Path(__file__).parents[3] / "docs" / "prompt-formats.md"
TARGETS = ("gfx90a", "gfx942", "sm_80")
FREE = LanguageModelSettings()
CHECKED = replace(FREE, decoding=Decoding.CHECKED)
GUIDED = replace(FREE, decoding=Decoding.GUIDED)

Say = Callable[[Ask], str]


@cache
def kernels() -> list[Function]:
    """One small kernel of each architecture, and two more."""
    found = smallest()
    return found[:5]


def teacher(ask: Ask) -> str:
    return answer(last_prompt(ask))


def run(
    say: Say, options: LanguageModelSettings = FREE, request: Request | None = None
) -> Response:
    """What comes of the example with a model."""
    asked = request or Request(AllocationProblem(example()))
    return run_episode(TEXT_NOTES_JSON, asked, options, ScriptedModel(say))


def turns_of(function: Function) -> list[Turn]:
    return list(turns_until_wrong(function, by_rule))


def generated(count: int) -> list[Function]:
    return [
        random_function(s, registers=14, blocks=6, target=t) for t in TARGETS for s in range(count)
    ]


def test_what_it_is() -> None:
    style = get_prompt_format("text-notes-json")
    assert style.assistance is Assistance.TEXT
    assert style.tracks == ("assign",)
    assert get_prompt_format("whole").tracks == ("assign", "split")
    assert len(style.source_hash) == 64


@pytest.mark.parametrize("name", ["notes", "text-notes"])
def test_formats_with_words_of_their_own_point_here(name: str) -> None:
    with pytest.raises(InputError, match="'text-notes-json' asks any language model"):
        get_prompt_format(name)


def test_a_prompt_says_all_that_its_answer_follows_from() -> None:
    """The teacher of the tests has read the prompt alone, and says what the rule says."""
    freed = 0
    for function in [*generated(12), *kernels()]:
        for turn in turns_of(function):
            assert answer(turn.prompt) == turn.completion
            freed += '"gives ' in turn.prompt
    assert freed > 20


def test_the_rule_is_that_of_text_notes() -> None:
    finished = 0
    for function in [*generated(10), *kernels()]:
        ledger = empty_text_ledger(function)
        try:
            for window in read(function, 0, ledger):
                speak(window)
        except Contradiction:
            with pytest.raises(NoRuleAnswer, match="finds no place"):
                rule_answer(function)
            continue
        finished += 1
        given = {f"%{r}": register_word(p.file, p.number) for r, p in ledger.given.items()}
        assert rule_answer(function) == given
    assert finished > 15


@pytest.mark.parametrize("target", TARGETS)
def test_prompts_need_no_analysis(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [random_function(seed, target=target) for seed in range(6)]
    before = [turns_of(function) for function in functions]
    assert any(len(turns) > 2 for turns in before)
    forbid_analyses(monkeypatch)
    assert [turns_of(function) for function in functions] == before
    models = [ScriptedModel(teacher) for _ in functions]
    for function, model, turns in zip(functions, models, before, strict=True):
        with suppress(AssertionError):  # at the end the registers get their names
            run_episode(TEXT_NOTES_JSON, Request(AllocationProblem(function)), FREE, model)
        said = [last_prompt(ask) for ask in model.asks]
        assert said[: len(turns)] == [turn.prompt for turn in turns]
        assert len(said) - len(turns) in (0, 1)  # where the rule knows no place


def test_neither_opcodes_nor_the_upper_limit_of_waves_are_read() -> None:
    function = example()
    blocks = tuple(
        replace(b, instructions=tuple(replace(i, opcode="OP") for i in b.instructions))
        for b in function.blocks
    )
    assert turns_of(replace(function, blocks=blocks, maximum_occupancy=3)) == turns_of(function)


def test_a_window_shows_what_text_notes_shows() -> None:
    """So that no register is shown as free that the model's words have not given back."""
    shown = 0
    for function in kernels():
        ledger = empty_text_ledger(function)
        for window in read_text(function, ledger, random.Random(0), JsonWindow):
            if isinstance(window, JsonWindow):
                text = window_text(window)
                lines, lists = shown_by_text_notes(window)
                asked = json.loads(text)
                assert (asked["notes"], asked["free"]) == (lines, lists)
                shown += len(lists)
                places = [place for place, _ in window.asked()]
                for place, element in zip(places, json.loads(answer(text)), strict=False):
                    (word, *_) = element.values()
                    if not window.hear(place, word):
                        break
                else:
                    window.end()
            else:
                speak(window)
    assert shown > 100


def shown_by_text_notes(
    window: JsonWindow,
) -> tuple[dict[str, str], dict[str, dict[str, list[str]]]]:
    """The lines and the lists of the same window's prompt in `text-notes`."""
    names = {name: f"%{register}" for register, name in window.names.items()}
    lines: dict[str, str] = {}
    lists: dict[str, dict[str, list[str]]] = {}
    words = window.prompt()[1:-1]
    while words:
        word = words.pop(0)
        if word in names:
            lines[names[word]] = words.pop(0)
        elif word.startswith("H_"):
            file = word[2:].rstrip("0123456789")
            blocks = lists.setdefault(file, {})[word[2 + len(file) :]] = []
        elif word != "-":
            blocks.append(word)
    return lines, lists


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_that_says_the_rule_is_right_on_kernels(target: str) -> None:
    function = next(f for f in kernels() if f.target == target)
    problem = AllocationProblem(function)
    model = ScriptedModel(teacher)
    response = run_episode(TEXT_NOTES_JSON, Request(problem), FREE, model)
    assert response.answer is not None
    assert Verifier(problem).verify(response.answer).valid
    assert response.details["completion_tokens"] > 1000
    assert len(model.asks) > 20


def test_free_ends_at_a_contradiction_and_checked_asks_again() -> None:
    right = run(teacher)
    assert right.answer is not None

    def denies(ask: Ask) -> str:
        """Gives %0 another register than its line has, until it is told of that."""
        said = teacher(ask)
        is_told = "%0 is in v2, not in v9. Answer again." in last_prompt(ask)
        return said if is_told else said.replace('"%0": "v2"}]', '"%0": "v9"}]')

    free = run(denies)
    assert (free.answer, free.failure) == (None, FailureKind.UNPARSABLE)
    assert free.details["unparsable"] == "contradiction"
    assert free.message == "%0 is in v2, not in v9"
    checked = run(denies, CHECKED)
    assert checked.answer == right.answer
    assert checked.details["asked_again"] == 2

    model = ScriptedModel(lambda ask: teacher(ask).replace('{"%0": "v2"}]', '{"%0": "v9"}]'))
    request = Request(AllocationProblem(example()))
    assert run_episode(TEXT_NOTES_JSON, request, CHECKED, model).answer is None
    assert len(model.asks) == 7 + ASKED_AGAIN


@pytest.mark.parametrize(
    ("changed", "reason", "message"),
    [
        (lambda _: "v0", "not_json", "expected JSON"),
        (lambda _: "", "empty", "the completion is empty"),
        (lambda said: f"{said} and so on", "trailing_text", "array is followed by 'and so on'"),
        (lambda _: '{"%0": "v0"}', "not_an_array", "expected an array, not a dict"),
        (lambda said: said.replace('{"%3"', '{"%4"'), "not_asked", "the key %3, not {"),
        (lambda said: said.replace(', {"%1": "s12"}', ""), "not_asked", "ends before %1"),
        (lambda said: said[:-1], "not_json", ""),
        (lambda said: said[:-1] + ', {"%9": "v1"}]', "not_asked", "2 objects for 1 mentions"),
        (lambda said: said.replace('"v3"}', "1}"), "not_a_name", "for %3, not a int"),
        (lambda said: said.replace('"v3"}', '"v 1"}'), "not_a_register", "'v 1'"),
        (lambda said: said.replace('"v2", ', "null, "), "not_asked", "the end after null for %0"),
        (lambda said: said.replace('"s12"}', '"s1"}'), "contradiction", "%1 cannot be in s1"),
        (lambda said: said.replace('"v3"}', '"v2"}'), "contradiction", "v2 is not free for %3"),
        (lambda said: said.replace('"v3"}', '"q1"}'), "contradiction", "q1 names no register"),
        (lambda said: said.replace('"known"', '"new"'), "contradiction", "%2 was noted before"),
        (lambda said: said.replace('"known"', '"k"'), "not_a_name", "expected one of known, new"),
    ],
)
def test_what_is_no_answer(changed: Callable[[str], str], reason: str, message: str) -> None:
    response = run(lambda ask: changed(teacher(ask)))
    assert response.failure is FailureKind.UNPARSABLE
    assert response.message is not None
    assert (response.details["unparsable"], message in response.message) == (reason, True)


def test_what_a_model_says_of_its_lists_is_left_unread() -> None:
    def silent(ask: Ask) -> str:
        said = json.loads(teacher(ask))
        return json.dumps([{k: v for k, v in each.items() if k != "free"} for each in said])

    def nonsense(ask: Ask) -> str:
        return teacher(ask).replace('"free": {"v"', '"free": {"nothing": 1, "v"')

    assert run(silent).answer == run(nonsense).answer == run(teacher).answer
    fenced = run(lambda ask: f"```json\n{teacher(ask)}\n```")
    assert fenced.answer == run(teacher).answer


def test_null_ends_a_window_and_the_lists_are_shown_again() -> None:
    prompts: list[str] = []

    def shy(ask: Ask) -> str:
        prompts.append(last_prompt(ask))
        return '[{"%0": "v2"}, {"%3": null}]' if len(prompts) == 5 else teacher(ask)

    response = run(shy)
    assert response.answer is not None
    assert '"1": ["v3", "v4"' in prompts[5]
    assert json.loads(prompts[5])["read"][0] == ["%3", "1 of v"]
    never = run(lambda ask: json.dumps([{json.loads(last_prompt(ask))["read"][0][0]: None}]))
    assert never.message == "it finds no place for %1"


def test_a_guided_attempt_is_told_of_findings() -> None:
    problem = AllocationProblem(example())
    wrong = {"%0": "v0", "%1": "s0", "%2": "v2", "%3": "v2"}
    findings = Verifier(problem).verify(wrong).findings
    request = Request(problem, feedback=(Feedback(Answer(wrong), findings),))
    prompts: list[str] = []

    def say(ask: Ask) -> str:
        prompts.append(last_prompt(ask))
        return teacher(ask)

    assert run(say, GUIDED, request).answer is not None
    assert any("Your last attempt was wrong" in prompt for prompt in prompts)
    silent = run(
        lambda ask: str(say(ask)), replace(GUIDED, feedback=FeedbackKind.RESAMPLE), request
    )
    assert silent.answer is not None
    assert "wrong" not in prompts[-1]
    unknown = Finding(FindingKind.OVERLAP, "elsewhere", ("%99",))
    prompts.clear()
    run(say, GUIDED, replace(request, feedback=(Feedback(Answer(wrong), (unknown,)),)))
    assert not any("wrong" in prompt for prompt in prompts)


def test_examples_are_the_rules() -> None:
    kernel = kernels()[0]
    problem = AllocationProblem(kernel)
    text = problem.normalized
    request = Request(AllocationProblem(example()), examples=(Example(text, {"%0": "v99"}),))
    asks: list[Ask] = []

    def say(ask: Ask) -> str:
        asks.append(ask)
        return teacher(ask)

    response = run(say, replace(FREE, few_shot=1), request)
    assert response.answer is not None
    assert response.details["examples"] == 3
    shown = asks[0].messages
    assert [each.role for each in shown] == ["system", *["user", "assistant"] * 3, "user"]
    for prompt, said in zip(shown[1:-1:2], shown[2:-1:2], strict=True):
        assert answer(prompt.content) == said.content
        assert '"free": {"' in said.content


def test_demonstrations_follow_an_answer_until_it_contradicts_the_notes() -> None:
    problem = AllocationProblem(example())
    given = rule_answer(problem.function)
    style = TEXT_NOTES_JSON
    assert list(style.demonstrations(problem, given)) == turns_of(problem.function)
    moved = {**given, "%3": "v5"}
    turns = list(style.demonstrations(problem, moved))
    assert len(turns) == len(turns_of(problem.function))
    assert '{"%3": "v5", "free": ' not in turns[4].completion  # nobody comes who needs the list
    assert '{"%3": "v5"}' in turns[4].completion
    # %2 had v0 in the reading before.
    assert list(style.demonstrations(problem, {**given, "%3": "v0"})) == turns[:4]
    assert style.pieces(turns[0].completion) == (turns[0].completion,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (replace(FREE, decoding=Decoding.CONSTRAINED), "is free, checked or guided"),
        (replace(GUIDED, feedback=FeedbackKind.REPAIR), "cannot repair"),
        (replace(FREE, window_registers=3), "has no windows"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    options: LanguageModelSettings, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        TEXT_NOTES_JSON.check(options)
    TEXT_NOTES_JSON.check(CHECKED)
    with pytest.raises(InputError, match="'checked' is for models that keep notes"):
        get_prompt_format("window").check(CHECKED)


def test_a_class_without_words_is_no_answer() -> None:
    wide = EXAMPLE.replace("v:16", "v:64").replace("V2 2 v/2", "V32 32 v/2").replace(":V2", ":V32")
    request = Request(AllocationProblem(parse_function(wide, "wide")))
    response = run(teacher, FREE, request)
    assert response.failure is FailureKind.NO_ANSWER
    assert "no word for class V32" in (response.message or "")
    with pytest.raises(NoRuleAnswer, match="no word for class V32"):
        list(told_turns(request.problem.function, by_rule, empty_text_ledger(parse_function(wide))))


def test_the_documentation_shows_the_exact_prompts() -> None:
    blocks = re.findall(r"^```text\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert f"{SYSTEM}\n" in blocks
    turns = turns_of(example())
    assert "".join(f"{turn.prompt}=> {turn.completion}\n" for turn in turns) in blocks


def test_the_label_of_the_rule() -> None:
    row, *_ = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
    label = parse_label("notes-rule")
    found = label.answer({"normalized": row.normalized})
    assert found is not None
    assert Verifier(AllocationProblem.from_text(row.normalized)).verify(found).valid
    full = EXAMPLE.replace("v:16", "v:2")
    assert label.answer({"normalized": print_function(parse_function(full, "full"))}) is None
