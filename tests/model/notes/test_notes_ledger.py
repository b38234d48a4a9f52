"""The notes: what is free, what is lent, and contradictions."""

from __future__ import annotations

import random

import pytest

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.notes.dry_window import DryWindow
from verilocc_bench.model.notes.lane_lives import file_owner
from verilocc_bench.model.notes.mentions import Mention, NotesBudget, Role
from verilocc_bench.model.notes.notes_ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.notes.talk import WrongWord, answered, words_of_rule

V = RegisterClass("V", 1, (BaseRange("v", 0, 31, 1),))
V2 = RegisterClass("V2", 2, (BaseRange("v", 0, 30, 2),))


def ledger_of(units: int, named: dict[int, int] | None = None) -> NotesLedger:
    return NotesLedger.of(NotesBudget({"v": units}, {"v": named or {}}))


def place(number: int, file: str = "v") -> NotedPlace:
    return NotedPlace(file, number)


def test_what_is_taken_is_not_free_until_it_is_crossed_out() -> None:
    ledger = ledger_of(0b1111)
    ledger.take(1, V2, place(0), 0)
    assert ledger.open_units("v", 0, 0) == 0b1100
    ledger.take(2, V2, place(2), 0)
    assert not ledger.open_units("v", 0, 0)
    ledger.cross_out(1, 2)
    assert ledger.live == {2: place(2)}
    assert ledger.given == {1: place(0), 2: place(2)}
    assert ledger.open_units("v", 0, 0) == 0b11


@pytest.mark.parametrize(
    ("kind", "where", "message"),
    [
        (V, place(9), "not free"),
        (V2, place(3), "cannot be in"),
        (V2, place(0, "s"), "cannot be in"),
        (V2, place(32), "cannot be in"),
    ],
)
def test_what_is_not_free_or_not_legal_cannot_be_taken(
    kind: RegisterClass, where: NotedPlace, message: str
) -> None:
    with pytest.raises(Contradiction, match=message):
        ledger_of(0b1111).take(1, kind, where, 0)


def test_a_lent_register_goes_to_whoever_begins_below_and_comes_back() -> None:
    ledger = ledger_of(0b1)
    ledger.take(1, V, place(0), 0)
    ledger.lend(1, 0b1, 10)
    assert ledger.open_units("v", 10, 0) == 0
    assert ledger.open_units("v", 11, 0) == 0b1
    ledger.take(2, V, place(0), 12)
    assert ledger.open_units("v", 20, 0) == 0
    saved = ledger.saved()
    with pytest.raises(Contradiction, match="needed back"):
        ledger.give_back(1, 0b1)
    ledger.restore(saved)
    ledger.cross_out(2, 1)
    ledger.give_back(1, 0b1)
    assert ledger.open_units("v", 20, 0) == 0


def test_a_lane_that_begins_is_free_while_the_others_stay() -> None:
    ledger = ledger_of(0b11)
    ledger.take(1, V2, place(0), 0)
    ledger.leave(1, 0b10)
    assert ledger.open_units("v", 0, 0) == 0b10
    ledger.cross_out(1, 2)
    assert ledger.open_units("v", 0, 0) == 0b11


def test_the_functions_own_registers_are_lent_until_their_last_mention() -> None:
    ledger = ledger_of(0b100, named={0: 9, 1: 9})
    assert ledger.open_units("v", 10, 0) == 0b111
    ledger.give_back(file_owner("v"), 0b11)
    assert ledger.open_units("v", 10, 0) == 0b100
    ledger.leave(file_owner("v"), 0b10)
    assert ledger.open_units("v", 0, 0) == 0b110


def test_a_dry_window_finds_what_lives_around() -> None:
    mentions = (Mention(1), Mention(2), Mention(1), Mention(2, Role.BEGINS))
    noted: dict[int, None] = {}
    window = DryWindow(mentions, noted, random.Random(0))
    assert [word for _, word in answered(window, words_of_rule)] == ["n", "n", "k", "x"]
    assert list(noted) == [1]
    for words, wrong in (
        ("k", Contradiction),
        ("nnn", Contradiction),
        ("x", WrongWord),
        ("nnkk", WrongWord),
    ):
        left = iter(words)
        with pytest.raises(wrong):
            list(answered(DryWindow(mentions, {}, random.Random(0)), lambda _: next(left)))  # noqa: B023
