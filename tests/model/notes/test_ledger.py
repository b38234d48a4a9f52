"""The notes: lists of blocks, what is lent, and contradictions."""

from __future__ import annotations

import random

import pytest

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.prompts.notes.ledger import SHOWN, Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, NotesBudget, Role
from verilocc_bench.model.prompts.notes.window import (
    DryWindow,
    NotesWindow,
    WrongWord,
    cut_windows,
)
from verilocc_bench.model.prompts.notes.words import natural_parts

V = RegisterClass("V", 1, (BaseRange("v", 0, 31, 1),))
V2 = RegisterClass("V2", 2, (BaseRange("v", 0, 30, 2),))
V3 = RegisterClass("V3", 3, (BaseRange("v", 0, 28, 2),))


def ledger_of(units: int, file: str = "v", arguments: int = 0) -> NotesLedger:
    return NotesLedger.of(NotesBudget({file: units}, arguments))


def say(window: NotesWindow | DryWindow, place: int, words: str) -> list[bool]:
    window.begin_answer(place)
    return [window.hear(word) for word in words.split()]


def window_of(ledger: NotesLedger, *mentions: Mention, kind: RegisterClass = V) -> NotesWindow:
    classes = {mention.register: kind for mention in mentions}
    return NotesWindow(mentions, classes, ledger, random.Random(0))


def test_registers_are_listed_as_natural_blocks() -> None:
    ledger = ledger_of(0b1111_1111_1111_0110)
    assert ledger.lists["v", 1] == [1, 2]
    assert ledger.lists["v", 4] == [4]
    assert ledger.lists["v", 8] == [8]
    assert natural_parts(5, 16, 16) == ((5, 1), (6, 2), (8, 8))


def test_the_end_of_a_budget_comes_last() -> None:
    ledger = ledger_of((1 << 20) - 1)
    assert ledger.lists["v", 16] == [0]
    assert ledger.lists["v", 4] == []
    ledger.take("v", 16, 0)
    ledger.write_out()
    assert ledger.lists["v", 4] == [16]


def test_neighbours_are_joined_between_windows() -> None:
    ledger = ledger_of(0xFFFF)
    ledger.take("v", 16, 0)
    for first in (3, 1, 2, 0):
        ledger.put("v", 1, first)
    assert ledger.in_sight("v", 1) == ["v0", "v2", "v1", "v3", "-"]
    ledger.write_out()
    assert ledger.in_sight("v", 1) == ["-"]
    assert ledger.in_sight("v", 4) == ["v0", "-"]


def test_a_long_list_shows_its_beginning() -> None:
    ledger = NotesLedger.of(NotesBudget({"R": (1 << 64) - 1}, 0))
    assert ledger.in_sight("R", 4) == [*(f"R{4 * n}" for n in range(SHOWN)), "+"]
    assert len(ledger.lists["R", 4]) == 16


def test_a_block_is_split_as_the_words_say() -> None:
    ledger = ledger_of(0xFF0000)
    window = window_of(ledger, Mention(7), kind=V3)
    words = "P_v8 v16 U_v8 - S_v1 v19 - S_v4 v20 -"
    assert say(window, 0, words)[-1]
    assert ledger.given == {7: NotedPlace("v", 16)}
    assert ledger.lists["v", 1] == [19]
    assert ledger.lists["v", 4] == [20]


def test_a_definition_hands_its_register_on() -> None:
    ledger = ledger_of(0b1111)
    window = window_of(ledger, Mention(1), Mention(1, Role.BEGINS), Mention(2))
    say(window, 0, "P_v2 - P_v4 v0 U_v4 - S_v1 v1 - S_v2 v2 -")
    say(window, 1, "v0 F_v1 v0 v1")
    say(window, 2, "v0 U_v1 v1")
    assert ledger.live == {2: NotedPlace("v", 0)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("v9 U_v4 -", "no free block"),
        ("v0 U_v1 -", "no free block"),
        ("v0 U_s4 -", "of a block"),
        ("v0 U_v4 - S_v1 v2 -", "no part"),
        ("v0 U_v4 - S_v2 v2 -", "no part"),
    ],
)
def test_what_is_not_free_cannot_be_taken(words: str, message: str) -> None:
    window = window_of(ledger_of(0b1111), Mention(1))
    with pytest.raises(Contradiction, match=message):
        say(window, 0, words)


@pytest.mark.parametrize(
    "words", ["N3", "C_v1", "v0 v1", "v0 F_v1 v0 -", "v0 U_v4 C_v1", "P_v4 " * 30, "v0 U_v4 - U_v1"]
)
def test_words_out_of_place_are_unparsable(words: str) -> None:
    window = window_of(ledger_of(0b1111), Mention(1))
    with pytest.raises(WrongWord):
        say(window, 0, words)


def test_a_line_of_the_notes_cannot_be_denied() -> None:
    ledger = ledger_of(0b1111)
    window = window_of(ledger, Mention(1), Mention(1))
    say(window, 0, "P_v4 v0 U_v4 - S_v1 v1 - S_v2 v2 -")
    with pytest.raises(Contradiction, match="is in v0, not in v1"):
        say(window, 1, "v1 .")


def test_a_lent_register_is_lent_and_comes_back() -> None:
    ledger = ledger_of(0b11)
    anew, back = Mention(1, Role.ANEW), Mention(1, returns=True)
    borrower, its_begin = Mention(2, borrows=True), Mention(2, Role.BEGINS, borrows=True)
    window = window_of(ledger, Mention(1), anew, borrower, its_begin, back, kind=V)
    say(window, 0, "P_v2 v0 U_v2 - S_v1 v1 -")
    say(window, 1, "v0 F_hv1 hv0 -")
    say(window, 2, "hv0 U_hv1 -")
    ledger.write_out()
    saved = ledger.saved()
    say(window, 3, "hv0 F_hv1 hv0 -")
    say(window, 4, "v0 .")
    assert ledger.lists["hv", 1] == []
    ledger.restore(saved)
    with pytest.raises(Contradiction, match="that another has"):
        say(window, 4, "v0 .")


def test_arguments_come_back_to_the_function() -> None:
    ledger = ledger_of(0b1100_0000, "s", arguments=0b1111)
    assert ledger.in_sight("hs", 4) == ["hs0", "-"]
    saved = ledger.saved()
    ledger.withdraw("hs", 0b1111, "the function")
    assert ledger.in_sight("hs", 4) == ["-"]
    ledger.restore(saved)
    ledger.take("hs", 4, 0)
    with pytest.raises(Contradiction):
        ledger.withdraw("hs", 0b1111, "the function")


def test_a_dry_window_finds_what_lives_around() -> None:
    noted: dict[int, None] = {}
    mentions = (Mention(1), Mention(2), Mention(1), Mention(2, Role.BEGINS))
    window = DryWindow(mentions, noted, random.Random(0))
    for place, word in enumerate("nnkx"):
        assert say(window, place, word) == [True]
    assert list(noted) == [1]
    with pytest.raises(Contradiction):
        say(window, 0, "n")
    with pytest.raises(Contradiction):
        say(window, 1, "k")
    with pytest.raises(WrongWord):
        say(window, 3, "k")


def test_windows_end_where_registers_come_back() -> None:
    mentions = [Mention(n, cuts=n in (2, 7)) for n in range(12)]
    lengths = [len(cut) for cut in cut_windows(mentions, 4)]
    assert lengths == [3, 4, 1, 4]
