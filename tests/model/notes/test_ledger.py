"""The notes: what is free, what is lent, and contradictions."""

from __future__ import annotations

import random

import pytest

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.prompts.notes.lanes import file_owner
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Deed, Mention, NotesBudget, Role
from verilocc_bench.model.prompts.notes.window import (
    SHOWN,
    DryWindow,
    NotesWindow,
    WrongWord,
    cut_windows,
)

V = RegisterClass("V", 1, (BaseRange("v", 0, 31, 1),))
V2 = RegisterClass("V2", 2, (BaseRange("v", 0, 30, 2),))
AV = RegisterClass("AV", 1, (BaseRange("v", 0, 31, 1), BaseRange("a", 0, 31, 1)))


def ledger_of(units: int, named: dict[int, int] | None = None, **files: int) -> NotesLedger:
    budget = {"v": units, **files}
    return NotesLedger.of(NotesBudget(budget, {"v": named or {}, **{f: {} for f in files}}))


def say(window: NotesWindow | DryWindow, place: int, word: str) -> bool:
    window.begin_answer(place)
    return window.hear(word)


def window_of(ledger: NotesLedger, *mentions: Mention, kind: RegisterClass = V) -> NotesWindow:
    classes = {mention.register: kind for mention in mentions}
    return NotesWindow(mentions, classes, ledger, random.Random(0))


def numbers(ledger: NotesLedger, kind: RegisterClass, begins: int = 0) -> list[int]:
    return [place.number for place in ledger.places(kind, begins, 40)]


def test_the_lowest_legal_places_are_shown_the_lowest_last() -> None:
    ledger = ledger_of(0b1101_1110)
    assert numbers(ledger, V2) == [2, 6]
    window = window_of(ledger, Mention(4))
    assert window.fed(0)[:-1] == ["L_v1", "v3", "v2", "v1", "C_v1"]
    assert window.fed(0)[-1] == window.names[4]
    assert len(window.places(0)) == SHOWN


def test_of_two_files_both_are_shown() -> None:
    places = ledger_of(0b1111_0000, a=0b11).places(AV, 0, 3)
    assert places == [NotedPlace("v", 4), NotedPlace("v", 5), NotedPlace("a", 0)]
    assert ledger_of(0, a=0b11).places(AV, 0, 3) == [NotedPlace("a", 0), NotedPlace("a", 1)]


def test_what_is_taken_is_not_free_until_it_is_crossed_out() -> None:
    ledger = ledger_of(0b1111)
    window = window_of(ledger, Mention(1), Mention(2), Mention(1, Role.BEGINS), kind=V2)
    say(window, 0, "v0")
    assert numbers(ledger, V2) == [2]
    say(window, 1, "v2")
    assert window.fed(2)[1] == "-"
    say(window, 2, "v0")
    assert ledger.live == {2: NotedPlace("v", 2)}
    assert ledger.given == {1: NotedPlace("v", 0), 2: NotedPlace("v", 2)}
    assert numbers(ledger, V2) == [0]


@pytest.mark.parametrize(
    ("word", "message"),
    [("v9", "not free"), ("v3", "cannot be in"), ("s0", "cannot be in"), ("v32", "cannot be in")],
)
def test_what_is_not_free_or_not_legal_cannot_be_taken(word: str, message: str) -> None:
    window = window_of(ledger_of(0b1111), Mention(1), kind=V2 if word != "v9" else V)
    with pytest.raises(Contradiction, match=message):
        say(window, 0, word)


@pytest.mark.parametrize("word", ["N3", "C_v1", "-", "W", "k", "L_v1"])
def test_words_out_of_place_are_unparsable(word: str) -> None:
    window = window_of(ledger_of(0b1111), Mention(1))
    with pytest.raises(WrongWord):
        say(window, 0, word)


def test_a_line_of_the_notes_cannot_be_denied() -> None:
    window = window_of(ledger_of(0b1111), Mention(1), Mention(1))
    say(window, 0, "v0")
    with pytest.raises(Contradiction, match="is in v0, not in v1"):
        say(window, 1, "v1")


def test_a_lent_register_goes_to_whoever_begins_below_and_comes_back() -> None:
    ledger = ledger_of(0b1)
    lend, back = Deed(1, 0b1, until=10), Deed(1, 0b1, returns=True)
    borrower = Mention(2, begins=12, before=(lend,))
    window = window_of(ledger, Mention(1), borrower, Mention(1, before=(back,)))
    say(window, 0, "v0")
    window.fed(1)
    assert numbers(ledger, V, begins=10) == []
    assert numbers(ledger, V, begins=11) == [0]
    say(window, 1, "v0")
    assert numbers(ledger, V, begins=20) == []
    saved = ledger.saved()
    with pytest.raises(Contradiction, match="needed back"):
        window.fed(2)
    ledger.restore(saved)
    ledger.cross_out(2, 1)
    window.fed(2)
    assert say(window, 2, "v0")
    assert numbers(ledger, V, begins=20) == []


def test_a_lane_that_begins_is_free_while_the_others_stay() -> None:
    ledger = ledger_of(0b11)
    window = window_of(ledger, Mention(1), Mention(1, before=(Deed(1, 0b10),)), kind=V2)
    say(window, 0, "v0")
    window.fed(1)
    assert numbers(ledger, V) == [1]
    ledger.cross_out(1, 2)
    assert numbers(ledger, V) == [0, 1]


def test_lanes_that_end_above_are_lent_at_once() -> None:
    ledger = ledger_of(0b11)
    window = window_of(ledger, Mention(1, later=((0b10, 6),)), kind=V2)
    say(window, 0, "v0")
    assert numbers(ledger, V, begins=8) == [1]
    assert numbers(ledger, V, begins=5) == []


def test_the_functions_own_registers_are_lent_until_their_last_mention() -> None:
    ledger = ledger_of(0b100, named={0: 9, 1: 9})
    assert numbers(ledger, V, begins=10) == [0, 1, 2]
    ledger.give_back(file_owner("v"), 0b11)
    assert numbers(ledger, V, begins=10) == [2]
    ledger.leave(file_owner("v"), 0b10)
    assert numbers(ledger, V) == [1, 2]


def test_deeds_about_what_has_no_line_do_nothing() -> None:
    ledger = ledger_of(0b1)
    deeds = (Deed(5, 1), Deed(5, 1, until=3), Deed(5, 1, returns=True))
    window_of(ledger, Mention(1, before=deeds)).fed(0)
    assert numbers(ledger, V) == [0]


def test_a_dry_window_finds_what_lives_around() -> None:
    noted: dict[int, None] = {}
    mentions = (Mention(1), Mention(2), Mention(1), Mention(2, Role.BEGINS))
    window = DryWindow(mentions, noted, random.Random(0))
    for place, word in enumerate("nnkx"):
        assert say(window, place, word)
    assert list(noted) == [1]
    with pytest.raises(Contradiction):
        say(window, 0, "n")
    with pytest.raises(Contradiction):
        say(window, 1, "k")
    with pytest.raises(WrongWord):
        say(window, 3, "k")


def test_windows_have_at_most_so_many_mentions() -> None:
    lengths = [len(cut) for cut in cut_windows([Mention(n) for n in range(9)], 4)]
    assert lengths == [4, 4, 1]
