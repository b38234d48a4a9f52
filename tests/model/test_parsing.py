"""Reading a model's words: strict, with a reason for each refusal, and never a crash."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verilocc_bench.model.language_model import Completion, Finish
from verilocc_bench.model.prompts.reading import Unparsable, UnparsableReason, read_object


def said(text: str, finish: Finish = Finish.STOP) -> Completion:
    return Completion(text, finish, 1, len(text))


GOOD = {"%0": "v4", "%12": "vcc_lo", "%3": "v[4:5]"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        json.dumps(GOOD, indent=2),
        f"  \n{json.dumps(GOOD)}\n\n",
        f"```json\n{json.dumps(GOOD)}\n```",
        f"```\n{json.dumps(GOOD)}\n```\n",
    ],
)
@pytest.mark.parametrize("finish", [Finish.STOP, Finish.LENGTH])
def test_objects_that_count(text: str, finish: Finish) -> None:
    assert read_object(said(text, finish)) == GOOD


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("I cannot do that.", "not_json"),
        ("{'%0': 'v4'}", "not_json"),
        ('{"%0": "v4"', "not_json"),
        ('{"%0": "v4",}', "not_json"),
        ('{"%0": NaN}', "not_json"),
        ('{"%0": 1e999}', "not_json"),
        ('Here: {"%0": "v4"}', "not_json"),
        ('```json\n{"%0": "v4"}\n``` done', "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"%0": ' * 100_000, "not_json"),
        ('{"%0": ' + "9" * 5000 + "}", "not_json"),
        ('{"%0": "v4"} {"%1": "v5"}', "trailing_text"),
        ('{"%0": "v4"}\nThat is all.', "trailing_text"),
        ('{"%0": "v4"}}', "trailing_text"),
        ('["v4"]', "not_an_object"),
        ("null", "not_an_object"),
        ('"v4"', "not_an_object"),
        ('{"%0": "v4", "%0": "v5"}', "duplicate_key"),
        ('{"%0": "v4", "%0": "v4"}', "duplicate_key"),
        ('{"0": "v4"}', "not_a_virtual_register"),
        ('{"%00": "v4"}', "not_a_virtual_register"),
        ('{"%٣": "v4"}', "not_a_virtual_register"),
        ('{"assignment": {"%0": "v4"}}', "not_a_virtual_register"),
        ('{"%0": 4}', "not_a_name"),
        ('{"%0": null}', "not_a_name"),
        ('{"%0": ["v4"]}', "not_a_name"),
        ('{"%0": ""}', "not_a_register"),
        ('{"%0": "v 4"}', "not_a_register"),
        ('{"%0": "\\ud800"}', "not_a_register"),
        ('{"%0": "' + "v" * 41 + '"}', "not_a_register"),
    ],
)
def test_objects_that_do_not_count(text: str, reason: str) -> None:
    found = read_object(said(text))
    assert isinstance(found, Unparsable)
    assert found.reason == reason
    assert found.message
    assert len(found.message) < 200
    found.message.encode()


def test_cut_short() -> None:
    for text in ("", '{"%0": "v4"', '{"%0": "v4", "%1'):
        found = read_object(said(text, Finish.LENGTH))
        assert isinstance(found, Unparsable)
        assert found.reason is UnparsableReason.TRUNCATED


PIECES = st.lists(
    st.sampled_from(
        ["{", "}", '"%0"', '"%1"', ": ", '"v4"', ", ", "[", "]", "```json\n", "\n```", " ", "v",
         "1", "NaN", '"', "\\", "\ud800", "\x00", "é", "null", "%"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(st.one_of(st.text(st.characters()), PIECES), st.sampled_from(list(Finish)))
def test_no_words_crash(text: str, finish: Finish) -> None:
    found = read_object(said(text, finish))
    if isinstance(found, dict):
        inner = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
        assert json.loads(inner) == found
    else:
        found.message.encode()
