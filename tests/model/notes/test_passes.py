"""The two readings of a text, and what the second knows of the first."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

from tests.generated import random_function
from tests.model.notes.speaker import read, speak
from tests.model.notes.test_notes_reading import said_registers, shown_as_free, smallest
from tests.model.notes.without_analyses import forbid_analyses
from verilocc_bench.ir import BaseRange, Function, RegisterClass, parse_function, print_function
from verilocc_bench.model.notes.mentions import (
    Mention,
    NotesBudget,
    Role,
    TextPart,
    read_backwards,
)
from verilocc_bench.model.notes.notes_ledger import (
    NOT_TAKEN,
    Contradiction,
    NotedPlace,
    NotesLedger,
)
from verilocc_bench.model.notes.notes_reading import passes_of, sizes_for
from verilocc_bench.model.notes.notes_window import Item, NotesWindow
from verilocc_bench.model.notes.reading_order import in_reading_order
from verilocc_bench.model.notes.talk import Asked, Say

V = RegisterClass("V", 1, (BaseRange("v", 0, 63, 1),))
V3 = RegisterClass("V3", 3, (BaseRange("v", 0, 60, 4),))
AV8 = RegisterClass("AV8", 8, (BaseRange("v", 0, 56, 8), BaseRange("a", 0, 56, 8)))
BUDGET = NotesBudget({"v": 0xFF}, {"v": {}})


@cache
def made() -> list[Function]:
    made = [random_function(s, registers=14, blocks=6, target="sm_80") for s in range(10)]
    return [*made, *smallest()[:3]]


@cache
def functions() -> list[Function]:
    return [in_reading_order(function) for function in made()]


def spoken(parts: tuple[TextPart, ...]) -> list[tuple[bool, int, Role, int]]:
    return [(p.dry, m.register, m.role, m.place) for p in parts for m in p.mentions]


def test_each_mention_is_of_one_reading_in_the_order_of_the_text() -> None:
    for function in functions():
        whole = spoken(tuple(read_backwards(function)))
        plans = list(passes_of(function))
        widths = [kind.width for kind in function.virtual_registers]
        single = [all(widths[m[1]] == 1 for m in spoken(plan.parts)) for plan in plans]
        assert single in ([False, True], [False], [True])
        for plan, only in zip(plans, single, strict=True):
            assert spoken(plan.parts) == [m for m in whole if (widths[m[1]] == 1) is only]


def test_what_lanes_do_is_done_in_the_reading_of_their_register() -> None:
    done = 0
    for function in functions():
        for plan in passes_of(function):
            own = {m.register for part in plan.parts for m in part.mentions}
            for part in plan.parts:
                for mention in part.mentions:
                    assert all(d.register in own or d.register < 0 for d in mention.before)
                    done += len(mention.before)
                    assert all(deed.place >= mention.place for deed in mention.before)
    assert done > 50


def test_a_reading_has_lists_of_the_sizes_that_it_needs() -> None:
    assert sizes_for([V])["v"] == (1,)
    assert sizes_for([V])["a"] == ()
    assert sizes_for([V3, AV8])["v"] == (4, 8, 16)
    assert sizes_for([V3, AV8])["a"] == (8, 16)


def kept_ledger() -> NotesLedger:
    """In the first reading v0 to v2 were had from place 5 to 9, and v1 lent at 7."""
    ledger = NotesLedger({"v": 0xFF}, {"v": {}})
    ledger.now = 9
    ledger.take(0, V3, NotedPlace("v", 0), 5)
    ledger.now = 7
    ledger.lend(0, 0b10, 6)
    ledger.now = 5
    ledger.cross_out(0, 3)
    ledger.begin_again(BUDGET)
    return ledger


def test_the_second_reading_knows_what_the_first_had_and_where() -> None:
    ledger = kept_ledger()
    assert (ledger.live, ledger.free["v"]) == ({}, 0xFF)
    assert 0 in ledger.given
    assert ledger.open_units("v", 5, 5) == 0xFF & ~0b101
    assert ledger.open_units("v", 5, 7) == 0xFF & ~0b111
    assert ledger.open_units("v", 10, 12) == ledger.open_units("v", 1, 4) == 0xFF
    assert ledger.open_units("v", 1, 6) == 0xFF & ~0b101
    assert ledger.kept_above("v", 10, 0b1011) == {0: 9, 1: 9}
    assert ledger.kept_above("v", 9, 0xFF) == {}
    ledger.now = 8
    with pytest.raises(Contradiction, match="v1 is not free"):
        ledger.take(1, V, NotedPlace("v", 1), 8)
    ledger.now = 6
    ledger.take(1, V, NotedPlace("v", 1), 4)


def test_saved_notes_have_all_of_it() -> None:
    ledger = kept_ledger()
    ledger.now = 3
    ledger.take(1, V, NotedPlace("v", 4), 2)
    saved = ledger.saved()
    ledger.now = 2
    ledger.cross_out(1, 1)
    assert ledger.stays == {"v": [(2, 3, 0b10000)]}
    ledger.restore(saved)
    assert (ledger.now, ledger.highest, ledger.stays) == (3, {"v": 5}, {})
    assert list(ledger.live) == [1]
    ledger.begin_again(BUDGET)  # who never begins has its register up to the top
    assert ledger.kept["v"][-1] == (NOT_TAKEN, 3, 0b10000)


def test_what_is_taken_soonest_above_is_first_on_its_list() -> None:
    ledger = NotesLedger({"v": 0xFF}, {"v": {}})
    ledger.kept = {"v": [(1, 6, 0b1000), (1, 4, 0b10), (0, 2, 0b1010_1000)]}
    ledger.highest = {"v": 64}
    window = NotesWindow([Item(Mention(0, begins=7))], {0: V}, ledger, random.Random(0))
    assert sizes_for([V])["v"] == (1,)
    window.sizes = sizes_for([V])
    assert window.lists("v") == {1: [3, 1, 5, 7, 0, 2, 4, 6]}


def test_a_window_has_names_to_which_the_same_is_free() -> None:
    """So whatever is free to one from its end to its begin stands in its window's lists."""
    ended = 0
    for function in functions():
        try:
            for window in read(function):
                if isinstance(window, NotesWindow):
                    ended += check_that_all_is_shown(window)
                speak(window)
        except Contradiction:
            continue
    assert ended > 10


def check_that_all_is_shown(window: NotesWindow) -> int:
    new = {i.register: i.mention for i in reversed(window.items) if window._is_new(i)}
    for register, mention in new.items():
        for file in set(window.classes[register].files) & window.ledger.free.keys():
            mine = window.ledger.open_units(file, mention.begins, mention.place)
            assert window._open(file) == mine
    return len(new) > 1


def takes_any_block(window: NotesWindow, draw: random.Random) -> Say:
    """Answers as the rule does, but takes any block that the window shows, not the first."""

    def say(asked: Asked) -> str:
        if not asked.of_list:
            for blocks in window._blocks.values():
                if asked.right in blocks[:-1] and asked.fed[-1] not in had:
                    had.add(asked.fed[-1])
                    return draw.choice(blocks[:-1])
            had.add(asked.fed[-1])
        return asked.right

    had = {window.names[register] for register in window.names if register in window.ledger.live}
    return say


def wilful_windows(function: Function, seed: int) -> Iterator[tuple[NotesWindow, list[str]]]:
    """The windows that give registers, with what is shown and said, up to a contradiction."""
    draw = random.Random(f"wilful {seed}")
    with suppress(Contradiction):
        for window in read(function):
            if isinstance(window, NotesWindow):
                yield window, speak(window, takes_any_block(window, draw))
            else:
                speak(window)


def is_of_second(window: NotesWindow) -> bool:
    return all(window.classes[item.register].width == 1 for item in window.items)


def test_prompts_of_both_readings_follow_from_the_text_and_the_words_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are the same from a text that was printed and read again, with no analysis."""
    before = [list(wilful_windows(function, seed)) for function in made() for seed in range(2)]
    told = [[said for _, said in windows] for windows in before]
    assert told[::2] != told[1::2]  # other words give other prompts
    both = [{is_of_second(window) for window, _ in windows} for windows in before]
    assert both.count({False, True}) > 10

    forbid_analyses(monkeypatch)
    again = [parse_function(print_function(function), "again") for function in made()]
    windows = [wilful_windows(function, seed) for function in again for seed in range(2)]
    assert [[said for _, said in each] for each in windows] == told


Stays = list[tuple[int, int, set[str]]]
"""(begin, end, registers) of what the words of the first reading had."""


def test_what_the_first_reading_has_nobody_is_shown_there_in_the_second() -> None:
    """Its words are followed here: of virtual registers that lend no lane in between."""
    hidden = taken = 0
    for function, seed in itertools.product(functions(), range(3)):
        stays: Stays = []
        ends: dict[int, int] = {}
        lending: set[int] = set()
        for window, said in wilful_windows(function, seed):
            if is_of_second(window):
                hidden += hidden_from(window, said, stays)
                taken += 1
                continue
            mentions = {item.register: item.mention for item in window.items if not item.gives}
            lending |= {item.register for item in window.items if item.gives or item.mention.later}
            for item in window.items:
                if not item.gives:
                    ends.setdefault(item.register, item.mention.place)
            for register, role, units in said_registers(window, said):
                if role == "X" and register not in lending:
                    stays.append((mentions[register].begins, ends[register], set(units)))
    assert taken > 50
    assert hidden > 50


def hidden_from(window: NotesWindow, said: list[str], stays: Stays) -> int:
    """How many registers are had where a name of the window that has no line needs one."""
    prompt = said[: said.index("SAY")]
    shown = shown_as_free(prompt)
    hidden = 0
    for item in window.items:
        if item.gives or window.names[item.register] in prompt:
            continue
        for begins, ends, units in stays:
            if begins <= item.mention.place and item.mention.begins <= ends:
                assert not units & shown
                hidden += len(units)
    return hidden
