"""The allocators beside the model: the rule, and a copier that keeps no list."""

from __future__ import annotations

import random

import pytest

from tests.generated import random_function
from tests.model.notes.speaker import speak
from tests.model.notes.test_mentions import example
from tests.model.notes.test_notes_window import V2, V, ledger_of, window_of
from tests.model.notes.test_shipped_notes import smallest
from verilocc_bench.allocators import Assistance, FailureKind, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.notes.dry_window import DryWindow
from verilocc_bench.model.notes.mentions import Mention, Role
from verilocc_bench.model.notes.rule import BESIDE, copier
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding
from verilocc_bench.verification import Verifier


@pytest.mark.parametrize("name", BESIDE)
def test_they_answer_as_the_model_is_asked(name: str) -> None:
    allocator = resolve_model(name)
    assert allocator.assistance is Assistance.INTERVALS
    assert allocator.tracks == ("assign",)
    for problem in (
        AllocationProblem(example()),
        AllocationProblem.from_text(smallest()[0].normalized),
    ):
        answers = [allocator.allocate(Request(problem, seed=seed)) for seed in range(2)]
        assert answers[0] == answers[1]  # names are drawn anew, and decide nothing
        assert Verifier(problem).verify(answers[0]).valid
    with pytest.raises(InputError, match="'checked' is for language models"):
        resolve_model(name, AllocatorSettings(decoding=Decoding.CHECKED))


@pytest.mark.parametrize("name", BESIDE)
def test_where_no_place_is_left_there_is_no_answer(name: str) -> None:
    problem = AllocationProblem(random_function(0, target="gfx942", blocks=4))
    with pytest.raises(AllocationFailed, match="it finds no place for %"):
        resolve_model(name).allocate(Request(problem))
    ((_, response),) = resolve_model(name).respond([Request(problem)])
    assert response.failure is FailureKind.NO_ANSWER


def said(*mentions: Mention, v: int) -> str:
    window = window_of(ledger_of(v=v), *mentions, kinds=(V, V2, V))
    return " ".join(speak(window, copier(window.prompt())))


def test_the_copier_says_what_stands_after_a_name() -> None:
    assert said(Mention(0), Mention(0), v=0b10).endswith("C_v1 N0 => v1 C_v1 N0 => v1")
    taken_from_the_next = said(Mention(0), Mention(0), v=0b11)
    assert taken_from_the_next.endswith("C_v1 N0 => - P_v2 => v0 N0 v0 C_v1 N0 => v0")


def test_the_copier_takes_each_block_once_and_does_not_see_what_becomes_free() -> None:
    crossed_out = (Mention(0), Mention(0, Role.BEGINS), Mention(2))
    assert said(*crossed_out, v=0b1010).endswith("F_v1 => v1 => v3 C_v1 N2 => v3")
    assert said(*crossed_out, v=0b10).endswith("F_v1 => v1 => - C_v1 N2 => - P_v2 => - P_v4 => - "
                                              "P_v8 => - P_v16 => -")  # fmt: skip


def test_the_copier_knows_a_name_that_it_has_seen() -> None:
    mentions = (Mention(1), Mention(2), Mention(1), Mention(2, Role.BEGINS))
    window = DryWindow(mentions, {2: None}, random.Random(0))
    words = speak(window, copier(window.prompt()))
    assert [words[n + 1] for n, word in enumerate(words) if word == "=>"] == ["n", "k", "k", "x"]
