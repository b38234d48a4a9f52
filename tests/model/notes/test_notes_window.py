"""Windows in which the model keeps the lists of free blocks: what is shown, fed and refused."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.model.notes.speaker import speak
from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.notes.mentions import Deed, Mention, Role
from verilocc_bench.model.notes.notes_ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.notes.notes_window import Item, NotesWindow, items_of
from verilocc_bench.model.notes.talk import WrongWord

V = RegisterClass("V", 1, (BaseRange("v", 0, 63, 1),))
V2 = RegisterClass("V2", 2, (BaseRange("v", 0, 62, 2),))
V6 = RegisterClass("V6", 6, (BaseRange("v", 0, 58, 2),))
AV = RegisterClass("AV", 1, (BaseRange("v", 0, 63, 1), BaseRange("a", 0, 63, 1)))
WHOLE = ["H_v1", "-", "H_v2", "-", "H_v4", "-", "H_v8", "v8", "-", "H_v16", "-"]
CUT = ["H_v1", "-", "H_v2", "v10", "-", "H_v4", "v12", "-", "H_v8", "-", "H_v16", "-"]

FULL = 64
"""Everybody has been everywhere: nothing is hidden."""


def ledger_of(**free: int) -> NotesLedger:
    return NotesLedger(dict(free), {file: {} for file in free})


def window_of(
    ledger: NotesLedger, *items: Item | Mention, kinds: Sequence[RegisterClass] = ()
) -> NotesWindow:
    made = [item if isinstance(item, Item) else Item(item) for item in items]
    classes = {item.register: V for item in made} | dict(enumerate(kinds))
    ledger.highest = dict.fromkeys(ledger.free, FULL)
    window = NotesWindow(made, classes, ledger, random.Random(0))
    window.names = {register: f"N{register}" for register in window.names}
    return window


def heard(window: NotesWindow, *words: str) -> list[list[str]]:
    """What is fed before each of some words, and after the last."""
    talk = window.conversation()
    fed = [[*next(talk).fed]]
    try:
        for word in words:
            fed.append([*talk.send(word).fed])  # noqa: PERF401 - what was fed before the end counts
    except StopIteration:
        fed.append(["<end>"])
    return fed


def spoken(window: NotesWindow) -> str:
    return " ".join(speak(window))


def test_a_take_asks_for_the_new_head_only_if_another_will_take() -> None:
    ledger = ledger_of(v=0b0010_1010)
    assert spoken(window_of(ledger, Mention(0), Mention(1))) == (
        "W H_v1 v1 v3 v5 - H_v2 - H_v4 - H_v8 - H_v16 - SAY C_v1 N0 => v1 U_v1 => v3 C_v1 N1 => v3"
    )
    assert ledger.free["v"] == 0b0010_0000
    assert spoken(window_of(ledger, Mention(0))) == "W N0 v1 SAY C_v1 N0 => v1"


def test_what_is_left_of_a_wider_block_goes_on_its_lists() -> None:
    ledger = ledger_of(v=0xFF00, s=0)
    window = window_of(ledger, Mention(0), Mention(1), Mention(2), kinds=(V2, V6, V))
    assert window.prompt()[1:-1] == [
        "H_v1",
        "-",
        "H_v2",
        "-",
        "H_v4",
        "-",
        "H_v8",
        "v8",
        "-",
        "H_v16",
        "-",
    ]
    assert " ".join(speak(window)).endswith(
        "SAY C_v2 N0 => - P_v4 => - P_v8 => v8 N0 v8 U_v8 => - "
        "+2 v8 F_v2 => v10 => - +4 v8 F_v4 => v12 => - "
        "C_v6 N1 => - P_v16 => -"
    )
    assert window.answered == 1  # three fit no more: a new window shows what is left
    again = window_of(ledger, Mention(2))
    assert again.prompt()[1:-1] == [
        "H_v1",
        "-",
        "H_v2",
        "v10",
        "-",
        "H_v4",
        "v12",
        "-",
        "H_v8",
        "-",
        "H_v16",
        "-",
    ]
    six = spoken(window_of(ledger_of(v=0xFF), Mention(1), Mention(0), kinds=(V, V6)))
    assert six.endswith("C_v6 N1 => v0 U_v8 => - +6 v0 F_v2 => v6 => - C_v1 N0 => - P_v2 => v6")


def test_who_takes_from_the_next_list_has_its_line_fed_whatever_comes() -> None:
    ledger = ledger_of(v=0b11, a=0b100)
    lend = Item(Mention(0), gives=Deed(0, 1, until=-1))
    window = window_of(ledger, Mention(0), lend, Mention(0))
    assert spoken(window).endswith("SAY C_v1 N0 => - P_v2 => v0 N0 v0 Y_v1 N0 => v0 C_v1 N0 => v0")
    said = spoken(window_of(ledger_of(v=0b11), Mention(0), Mention(0)))
    assert said.endswith("C_v1 N0 => - P_v2 => v0 N0 v0 C_v1 N0 => v0")


def test_what_is_crossed_out_is_the_head_of_its_list() -> None:
    ledger = ledger_of(v=0b1010)
    said = spoken(window_of(ledger, Mention(0), Mention(0, Role.BEGINS), Mention(1), Mention(2)))
    assert said.endswith(
        "C_v1 N0 => v1 U_v1 => v3 X_v1 N0 => v1 F_v1 => v1 => v3 C_v1 N1 => v1 U_v1 => v3 "
        "C_v1 N2 => v3"
    )
    assert sorted(ledger.live) == [1, 2]
    assert sorted(ledger.given) == [0, 1, 2]


def test_of_two_files_the_second_is_asked_where_the_first_is_empty() -> None:
    said = spoken(window_of(ledger_of(v=0, a=0b100), Mention(0), kinds=(AV,)))
    lists = " ".join(f"P_v{size} => -" for size in (2, 4, 8, 16))
    assert said.endswith(
        "H_a1 v2 - ".replace("v2", "a2") + "H_a2 - H_a4 - H_a8 - H_a16 - SAY "
        f"C_av1 N0 => - {lists} P_a1 => a2"
    )


def test_lanes_that_are_given_back_go_on_the_lists() -> None:
    ledger = ledger_of(v=0b11)
    items = (Item(Mention(0)), Item(Mention(0), gives=Deed(0, 0b10)), Item(Mention(1)))
    assert spoken(window_of(ledger, *items, kinds=(V2, V))).endswith(
        "C_v2 N0 => v0 U_v2 => - Y_v2 N0 => v0 +1 v0 F_v1 => v1 => - C_v1 N1 => v1"
    )
    # Who has no line has nothing to give back, and is not asked.
    assert spoken(window_of(ledger_of(v=1), Item(Mention(0), gives=Deed(0, 1)))) == "W SAY"


def test_a_loan_is_for_those_who_all_begin_below() -> None:
    def lending(*begins: int) -> str:
        ledger = ledger_of(v=0b1)
        heard(window_of(ledger, Mention(9)), "v0")
        lend = Item(Mention(9), gives=Deed(9, 1, until=10))
        return spoken(
            window_of(ledger, lend, *(Mention(n, begins=b) for n, b in enumerate(begins)))
        )

    assert lending(11).endswith("Y_v1 N9 => v0 F_v1 => v0 => - C_v1 N0 => v0")
    assert lending(10).endswith(
        "H_v16 - SAY Y_v1 N9 => v0 C_v1 N0 => - P_v2 => - P_v4 => - P_v8 => - P_v16 => -"
    )
    assert "F_v1" not in lending(11, 10)


def test_a_lane_that_is_lent_and_then_crossed_out_is_on_one_list_alone() -> None:
    ledger = ledger_of(v=0b11)
    heard(window_of(ledger, Mention(9), kinds=()), "v0")
    ledger.lend(9, 1, -1)
    window = window_of(ledger, Mention(9, Role.BEGINS), Mention(0), Mention(1))
    assert window.lists("v") == {1: [], 2: [0], 4: [], 8: [], 16: []}
    assert spoken(window).endswith(
        "X_v1 N9 => v0 C_v1 N0 => - P_v2 => v0 N0 v0 U_v2 => - +1 v0 F_v1 => v1 => - C_v1 N1 => v1"
    )


def test_a_list_that_is_longer_says_so_and_ends_the_window_there() -> None:
    window = window_of(ledger_of(v=0x5555), *(Mention(n) for n in range(8)))
    assert "v0 v2 v4 v6 v8 v10 + H_v2 -" in " ".join(window.prompt())
    speak(window)
    assert window.answered == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["v0"], "not free"),
        (["v1", "v3", "v1"], "not free"),
        (["s0"], "not a block of v"),
        (["k"], "names no register"),
        (["v1", "N3"], "N3 instead of v3 in the list v1"),
        (["v1", "s3"], "s3 instead of v3 in the list v1"),
        (["v1", "v3", "v3", "v1"], "is in v3, not in v1"),
        (["v1", "v3", "v3", "-"], "names no register"),
    ],
)
def test_what_denies_the_notes_or_cannot_stand_ends_the_window(
    words: list[str], message: str
) -> None:
    window = window_of(ledger_of(v=0b1010, s=0xFF), Mention(0), Mention(1), Mention(1))
    with pytest.raises((Contradiction, WrongWord), match=message):
        heard(window, *words)


def test_where_the_first_has_no_place_a_window_of_its_own_asks_again() -> None:
    ledger = ledger_of(v=0)
    two = window_of(ledger, Mention(0), Mention(1))
    assert heard(two, "-", "-", "-", "-", "-")[-1] == ["<end>"]
    assert two.answered == 0
    with pytest.raises(Contradiction, match="finds no place for %0"):
        heard(window_of(ledger, Mention(0)), "-", "-", "-", "-", "-")


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["v1", "-"], "- instead of v3 in the list v1"),
        (["v1", "v3", "v1", "v3"], "v3 instead of v1 in the list v1"),
        (["v1", "v3", "v1", "v1", "-"], "- instead of v3 in the list v1"),
    ],
)
def test_a_wrong_word_about_a_list_is_found_where_it_is_read(words: list[str], wrong: str) -> None:
    crossed_out = (Mention(0), Mention(0, Role.BEGINS), Mention(1), Mention(2))
    window = window_of(ledger_of(v=0b1010), *crossed_out)
    assert heard(window, *words[:-1])[-1] != ["<end>"]
    window = window_of(ledger_of(v=0b1010), *crossed_out)
    with pytest.raises(WrongWord, match=wrong):
        heard(window, *words)


def test_who_takes_another_block_than_the_head_leaves_the_head_on_its_list() -> None:
    window = window_of(ledger_of(v=0b10_1010), Mention(0), Mention(1))
    assert heard(window, "v3", "v1", "v1")[-1] == ["<end>"]


def test_deeds_that_the_text_alone_does_need_no_words() -> None:
    own, returns = Deed(-1, 1, until=4), Deed(3, 1, returns=True)
    gives = Deed(3, 1, until=2)
    mention = Mention(3, before=(own, returns, gives))
    first, second = items_of([mention])
    assert (first.before, first.gives, first.register) == ((own, returns), gives, 3)
    assert (second.before, second.gives, second.mention) == ((), None, mention)


def test_notes_are_kept_as_the_words_say() -> None:
    ledger = ledger_of(v=0b1111)
    heard(window_of(ledger, Mention(0), Mention(1), kinds=(V, V2)), "-", "-", "v0", "-", "v1", "-")
    assert ledger.live[0] == NotedPlace("v", 0)
