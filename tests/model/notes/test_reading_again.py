"""What has found no place is read first when the text is read again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.generated import random_function
from tests.model.notes.speaker import read
from verilocc_bench.allocators import FailureKind, Feedback, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.notes import drafts
from verilocc_bench.model.notes.notes_allocator import ASKED_AGAIN, NotesAllocator
from verilocc_bench.model.notes.notes_network import NotesConfiguration, NotesNetwork
from verilocc_bench.model.notes.notes_reading import passes_of
from verilocc_bench.model.notes.notes_window import (
    NoBlockLeft,
    NotesWindow,
    without_place,
)
from verilocc_bench.model.notes.reading_order import in_reading_order
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.verification import Verifier

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


@pytest.fixture(autouse=True)
def _says_what_the_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def agree(network: object, some: Sequence[drafts.Draft], temperature: float) -> None:
        del network, temperature
        for draft in some:
            draft.own = draft.said

    monkeypatch.setattr(drafts, "judge_drafts", agree)


def tight() -> AllocationProblem:
    """A function for which the rule finds no place for %3, and then, with %3 first, none for %0."""
    return AllocationProblem(random_function(0, target="gfx942", blocks=4))


def answer(decoding: Decoding, feedback: Sequence[Feedback] = ()) -> Response:
    network = NotesNetwork(SMALL)
    allocator = NotesAllocator.of_network("m", network, LocalModelSettings(decoding=decoding))
    ((_, response),) = allocator.respond([Request(tight(), feedback=tuple(feedback))])
    return response


def test_free_it_ends_there() -> None:
    response = answer(Decoding.FREE)
    assert response.failure is FailureKind.UNPARSABLE
    assert without_place(response.message or "") == 3
    assert response.details["read_again"] == 0


def test_checked_the_text_is_read_again_at_once() -> None:
    response = answer(Decoding.CHECKED)
    assert response.answer is not None
    assert Verifier(tight()).verify(response.answer).valid
    assert response.details["read_again"] == 2
    assert response.details["asked_again"] == 0


def test_guided_it_is_told_of_the_earlier_attempts() -> None:
    feedback: list[Feedback] = []
    for _ in range(2):
        response = answer(Decoding.GUIDED, feedback)
        feedback.append(Feedback(None, failure=response.failure, message=response.message))
    assert [without_place(each.message or "") for each in feedback] == [3, 0]
    response = answer(Decoding.GUIDED, feedback)
    assert response.answer is not None
    assert Verifier(tight()).verify(response.answer).valid


def test_where_that_does_not_help_it_is_asked_again_and_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NotesWindow, "lists", lambda *_: {})
    response = answer(Decoding.CHECKED)
    assert response.answer is None
    assert response.details["read_again"] == 1
    assert response.details["asked_again"] == ASKED_AGAIN


def test_a_window_that_is_asked_again_is_half_as_long() -> None:
    function = tight().function
    reading = read(function)
    window = next(each for each in reading if isinstance(each, NotesWindow))
    lengths = [len(window.items)]
    for _ in range(5):
        again = reading.ask_again()
        assert isinstance(again, NotesWindow)
        lengths.append(len(again.items))
    assert lengths[0] > 1
    assert lengths[1:] == [max(1, lengths[0] >> halved) for halved in range(1, 6)]


def test_those_that_are_first_have_passes_of_their_own() -> None:
    function = in_reading_order(tight().function)
    kinds = function.virtual_registers

    def read(first: Sequence[int]) -> list[set[int]]:
        return [
            {m.register for part in plan.parts for m in part.mentions}
            for plan in passes_of(function, first)
        ]

    plain, early = read([]), read([3, 0])
    assert set().union(*early[: -len(plain)]) == {3, 0}
    assert set().union(*early) == set().union(*plain)
    assert sum(map(len, early)) == len(set().union(*early))
    assert all(len({kinds[n].width == 1 for n in each}) == 1 for each in early)


def test_what_is_told_names_the_virtual_register() -> None:
    assert without_place(f"window 7: {NoBlockLeft(12)}") == 12
    assert without_place("window 7: %3 is in v4, not in v5") is None
    assert without_place("") is None
