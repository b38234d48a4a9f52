"""The notes: what is free, what is lent, and contradictions."""

from __future__ import annotations

import random

import pytest

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.prompts.notes.lanes import file_owner
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, NotesBudget, Role
from verilocc_bench.model.prompts.notes.window import DryWindow, WrongWord

V = RegisterClass("V", 1, (BaseRange("v", 0, 31, 1),))
V2 = RegisterClass("V2", 2, (BaseRange("v", 0, 30, 2),))


def ledger_of(units: int, named: dict[int, int] | None = None) -> NotesLedger:
    return NotesLedger.of(NotesBudget({"v": units}, {"v": named or {}}))


def place(number: int, file: str = "v") -> NotedPlace:
    return NotedPlace(file, number)


def test_what_is_taken_is_not_free_until_it_is_crossed_out() -> None:
    ledger = ledger_of(0b1111)
    ledger.take(1, V2, place(0), 0)
    assert ledger._open("v", 0) == 0b1100
    ledger.take(2, V2, place(2), 0)
    assert not ledger._open("v", 0)
    ledger.cross_out(1, 2)
    assert ledger.live == {2: place(2)}
    assert ledger.given == {1: place(0), 2: place(2)}
    assert ledger._open("v", 0) == 0b11


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
    assert ledger._open("v", 10) == 0
    assert ledger._open("v", 11) == 0b1
    ledger.take(2, V, place(0), 12)
    assert ledger._open("v", 20) == 0
    saved = ledger.saved()
    with pytest.raises(Contradiction, match="needed back"):
        ledger.give_back(1, 0b1)
    ledger.restore(saved)
    ledger.cross_out(2, 1)
    ledger.give_back(1, 0b1)
    assert ledger._open("v", 20) == 0


def test_a_lane_that_begins_is_free_while_the_others_stay() -> None:
    ledger = ledger_of(0b11)
    ledger.take(1, V2, place(0), 0)
    ledger.leave(1, 0b10)
    assert ledger._open("v", 0) == 0b10
    ledger.cross_out(1, 2)
    assert ledger._open("v", 0) == 0b11


def test_the_functions_own_registers_are_lent_until_their_last_mention() -> None:
    ledger = ledger_of(0b100, named={0: 9, 1: 9})
    assert ledger._open("v", 10) == 0b111
    ledger.give_back(file_owner("v"), 0b11)
    assert ledger._open("v", 10) == 0b100
    ledger.leave(file_owner("v"), 0b10)
    assert ledger._open("v", 0) == 0b110


def test_a_dry_window_finds_what_lives_around() -> None:
    noted: dict[int, None] = {}
    mentions = (Mention(1), Mention(2), Mention(1), Mention(2, Role.BEGINS))
    window = DryWindow(mentions, noted, random.Random(0))
    for mention, word in zip(mentions, "nnkx", strict=True):
        window.hear(mention, word)
    assert list(noted) == [1]
    with pytest.raises(Contradiction):
        window.hear(mentions[0], "n")
    with pytest.raises(Contradiction):
        window.hear(mentions[1], "k")
    with pytest.raises(WrongWord):
        window.hear(mentions[3], "k")
    with pytest.raises(WrongWord):
        window.hear(mentions[0], "x")
