"""Answers in 200 wrappings, and what is refused."""

from __future__ import annotations

import json
from itertools import product

import pytest

from verilocc_bench.model.language_model import Completion, Finish
from verilocc_bench.model.prompts.finding import find_object
from verilocc_bench.model.prompts.reading import Unparsable, read_object

GOOD = {"%0": "v4", "%12": "vcc_lo", "%3": "v[4:5]"}

THOUGHTS = [
    "",
    "<think>\nIs %0 free? Perhaps {\"%0\": \"v9\"}.\n</think>\n\n",
    "No opening mark: {\"%0\": \"v9\"}\n</think>\n",
    "<thinking>a { b \"c</thinking>",
    "<reasoning>one</reasoning>Then <think>two</think>",
    "[THINK]v4 is free.[/THINK]",
    "◁think▷嗯◁/think▷",
    "<seed:think>ok</seed:think>",
    "<|channel|>analysis<|message|>{\"%0\": \"v9\"}<|end|><|channel|>final<|message|>",
    "<THINK>so</THINK >",
]  # fmt: skip
LEADS = [
    "",
    "Here is the answer, as {asked}: ",
    'First I tried {"%0": "v9"}, which {"is": "wrong"}.\n\n',
    "**Answer** (all in v[0:9], `%0` too)\n\n",
]
AROUND = [
    ("", ""),
    ("```json\n", "\n```"),
    ("```\n", "\n```\nHope this helps!"),
    ("", "\n\nEach register {is} used once; see {} and {\"note\": 1}, {\"%9\": \"v1\","),
    ('{"answers": [', ' and so on'),
]  # fmt: skip
WRAPPINGS = list(product(THOUGHTS, LEADS, AROUND))


def said(text: str, finish: Finish = Finish.STOP, reasoning: str = "") -> Completion:
    return Completion(text, finish, 1, len(text), reasoning=reasoning)


def test_two_hundred_wrappings() -> None:
    strict = 0
    for number, (thought, lead, (before, after)) in enumerate(WRAPPINGS):
        words = json.dumps(GOOD, indent=number % 3 or None)
        text = f"{thought}{lead}{before}{words}{after}"
        assert find_object(said(text)) == GOOD, text
        strict += read_object(said(text)) == GOOD
    assert (len(WRAPPINGS), strict) == (200, 2)  # alone, and in a fence


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("I cannot.", "not_json"),
        ('{"%0": "v4",}', "not_json"),
        ("So: {'%0': 'v4'}", "not_json"),
        ('Answer: {"%0": "v4", "%1": NaN}', "not_json"),
        ('Answer: {"%0": "v4", "%0": "v5"}', "duplicate_key"),
        ('Answer: {"assignment": {"%0": "v4"}}', "not_a_virtual_register"),
        ('Answer: {"0": "v4"}', "not_a_virtual_register"),
        ('Answer: {"%0": 4}', "not_a_name"),
        ('Answer: {"%0": "$vgpr4"}', "not_a_register"),
        ('["v4"]', "not_an_object"),
        ('{"%0": "v", ' * 100_000, "not_json"),
        ('{"%0": ' * 100_000, "not_json"),
        ('{"%0": "v4"} ' + '{"%0": "v", ' * 100_000, "not_json"),
    ],
)
def test_what_is_no_answer(text: str, reason: str) -> None:
    found = find_object(said(text))
    assert isinstance(found, Unparsable)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (said('<think>{"%0": "v4"}', Finish.LENGTH), "truncated"),
        (said("", Finish.LENGTH, 'so {"%0": "v4"}'), "truncated"),
        (said("The code is", Finish.LENGTH), "truncated"),
        (said('{"%0": "v4"}<think>sure?', Finish.LENGTH), {"%0": "v4"}),
        # A model that stops by itself with thoughts alone has forgotten their end.
        (said('<think>so {"%0": "v4"}'), {"%0": "v4"}),
        (said("", reasoning='so {"%0": "v4"}'), {"%0": "v4"}),
        (said('{"%0": "v5"}', reasoning='so {"%0": "v4"}'), {"%0": "v5"}),
    ],
)
def test_thoughts_alone(completion: Completion, expected: object) -> None:
    found = find_object(completion)
    assert (found.reason if isinstance(found, Unparsable) else found) == expected


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('So </think> {"%0": "v4",} that is it', "} that is it"),
        ('Take {"%0": "v4", "%1": 5} or not', '"%1": 5} or not'),
        ('```json\n{"%0": "v4"}\n``` done', "```json"),
    ],
)
def test_where_reading_stops(text: str, rest: str) -> None:
    found = find_object(said(text)) if "done" not in text else read_object(said(text))
    assert isinstance(found, Unparsable)
    assert found.place is not None
    assert text[found.place :].startswith(rest)
