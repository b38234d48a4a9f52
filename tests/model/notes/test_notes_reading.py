"""That the prompts are a function of the text and of the model's own words, and of nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from tests.generated import random_function
from tests.model.notes.speaker import conversation, read, speak
from tests.model.notes.test_mentions import example
from tests.model.notes.without_analyses import forbid_analyses
from tests.model.scripted import TINY
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function, parse_function, print_function
from verilocc_bench.model.notes.dry_window import DryWindow
from verilocc_bench.model.notes.mentions import read_budget
from verilocc_bench.model.notes.notes_ledger import Contradiction, noted_assignment
from verilocc_bench.model.notes.notes_window import NotesWindow
from verilocc_bench.model.notes.notes_words import (
    REGISTERS,
    SIZES,
    lists_of,
    shape_of,
    vocabulary,
)
from verilocc_bench.model.notes.reading_order import in_reading_order
from verilocc_bench.verification import Verifier

TARGETS = ("gfx90a", "gfx942", "sm_80")


def spoken(function: Function, seed: int = 0) -> list[str]:
    """What is shown and said up to the end, or to where there is no register."""
    said: list[str] = []
    try:
        said.extend(conversation(function, seed))
    except Contradiction:
        said.append("out of registers")
    return said


def is_read_twice(said: list[str]) -> bool:
    """Whether wide virtual registers come first, and single ones after them."""
    widths = [width for line in said for width in re.findall(r"\b[CXY]_[a-zRUP]+(\d+) ", line)]
    is_single = [width == "1" for width in widths]
    return not all(is_single) and any(is_single) and is_single == sorted(is_single)


@pytest.mark.parametrize("target", TARGETS)
def test_prompts_need_no_analysis(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [random_function(seed, target=target) for seed in range(12)]
    before = [spoken(function) for function in functions]
    assert sum(is_read_twice(said) for said in before) > 3

    forbid_analyses(monkeypatch)
    assert [spoken(function) for function in functions] == before


def test_prompts_follow_from_the_text() -> None:
    for seed in range(20):
        function = random_function(seed, target="gfx942")
        again = parse_function(print_function(function), "again")
        assert spoken(again) == spoken(function)


def test_neither_opcodes_nor_the_upper_limit_of_waves_are_read() -> None:
    function = example()
    blocks = tuple(
        replace(b, instructions=tuple(replace(i, opcode="OP") for i in b.instructions))
        for b in function.blocks
    )
    assert spoken(replace(function, blocks=blocks, maximum_occupancy=3)) == spoken(function)


@cache
def smallest() -> list[Function]:
    """The six smallest kernels of mini."""
    rows = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
    return [parse_function(row.normalized, row.id) for row in rows[:6]]


def shown_as_free(words: list[str]) -> set[str]:
    """The single registers of all blocks of a prompt's lists."""
    found: set[str] = set()
    size = 0
    for word in words:
        if word.startswith("H_"):
            size = int(word.lstrip("H_vasRUP"))
        elif size and word[-1].isdigit():
            file = word.rstrip("0123456789")
            first = int(word[len(file) :])
            found |= {f"{file}{number}" for number in range(first, first + size)}
    return found


def test_no_register_is_shown_as_free_that_the_model_has_not_written_free() -> None:
    """Shown is what the header has and nobody has taken, or what the words have given back.

    The words alone are followed here: what is said to `C`, `X` and `Y`.
    """
    functions = [
        random_function(s, registers=14, blocks=6, target=t) for t in TARGETS for s in range(25)
    ]
    shown_at_all = given_back = 0
    for function in [*functions, *smallest()]:
        budget = read_budget(in_reading_order(function))
        own = {f"{file}{unit}" for file, named in budget.named.items() for unit in named}
        never_had = {
            f"{file}{unit}"
            for file, units in budget.registers.items()
            for unit in range(units.bit_length())
            if units >> unit & 1
        }
        written_back: set[str] = set()
        with_line: set[int] = set()
        try:
            for window in read(function):
                said = speak(window)
                if not isinstance(window, NotesWindow):
                    continue
                shown = shown_as_free(said[: said.index("SAY")])
                assert shown <= never_had | written_back | own
                shown_at_all += len(shown)
                given_back += len(shown & written_back)
                for register, role, units in said_registers(window, said):
                    if register not in with_line:
                        with_line.add(register)
                        never_had -= set(units)
                        written_back -= set(units)
                    if role == "X":
                        with_line.remove(register)
                        written_back |= set(units)
                    elif role == "Y":
                        written_back |= {units[lane] for lane in lanes_given(window, register)}
        except Contradiction:
            continue
    assert shown_at_all > 1000
    assert given_back > 100


def lanes_given(window: NotesWindow, register: int) -> list[int]:
    """The lanes that the text has a virtual register give back somewhere in a window."""
    lanes = 0
    for item in window.items:
        if item.register == register:
            lanes |= item.gives.lanes if item.gives else 0
            for some, _ in item.mention.later:
                lanes |= some
    return [lane for lane in range(lanes.bit_length()) if lanes >> lane & 1]


def said_registers(window: NotesWindow, said: list[str]) -> list[tuple[int, str, list[str]]]:
    """(virtual register, role, registers) of each answer to `C`, `X` and `Y` of a window."""
    of_name = {name: register for register, name in window.names.items()}
    found = []
    place = said.index("SAY")
    asked: tuple[int, str] | None = None
    while place + 1 < len(said):
        place += 1
        word = said[place]
        if word.startswith("N") and said[place - 1][:2] in ("C_", "X_", "Y_"):
            asked = of_name[word], said[place - 1][0]
        elif word.startswith(("U_", "F_")):
            asked = None
        elif asked and said[place - 1] == "=>" and word[0].isalpha():
            register, role = asked
            file = word.rstrip("0123456789")
            first = int(word[len(file) :])
            width = window.classes[register].width
            found.append((register, role, [f"{file}{n}" for n in range(first, first + width)]))
            asked = None
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_the_rule_is_right_but_for_ties(target: str) -> None:
    """What it cannot know from a text that no compiler wrote: ties."""
    valid = others = 0
    for seed in range(100):
        function = random_function(seed, registers=12, blocks=6, target=target)
        problem = AllocationProblem(function)
        reading = read(function, seed)
        try:
            for window in reading:
                speak(window)
        except Contradiction:
            continue
        verdict = Verifier(problem).verify(
            answer_from_assignment(problem, noted_assignment(reading.ledger))
        )
        if verdict.valid:
            valid += 1
        else:
            others += verdict.findings[0].kind != "tied_mismatch"
    assert valid > 20
    assert not others


def test_the_windows_of_the_example() -> None:
    said = list(conversation(example()))
    # First those of two registers; s15 is reserved, and s2 and s3 are lent where the text does not
    # mention them. There are no lists of single ones.
    assert said[0].startswith("W H_s2 s12 - H_s4 s8 - H_s8 s0 - H_s16 - SAY C_s2 N")
    assert said[1].startswith("D ")
    # Then single ones, from the same text: v0 and v1 are taken in between by %2.
    assert said[4].startswith("W H_v1 v2 v3 v4 v5 v6 v7 + SAY C_v1 N")
    assert said[5].startswith("D ")


def test_names_differ_between_readings_and_nothing_else() -> None:
    function = smallest()[0]
    readings = [read(function, seed) for seed in range(2)]
    lines = [[" ".join(speak(window)) for window in reading] for reading in readings]
    assert lines[0] != lines[1]
    assert readings[0].ledger.given == readings[1].ledger.given


@pytest.mark.parametrize("way", ["asked again", "returned to"])
def test_a_window_is_given_again_with_the_notes_as_they_were(way: str) -> None:
    function = smallest()[0]
    reading = read(function)
    changed = 0
    while (window := reading.next_window()) is not None:
        before, mark = reading.ledger.saved(), reading.mark
        assert mark is not None
        noted = dict(window.noted) if isinstance(window, DryWindow) else {}
        said = speak(window)
        changed += reading.ledger != before
        if way == "asked again":
            window = reading.ask_again()
        else:
            reading.next_window()
            reading.return_to(mark)
        assert reading.ledger == before
        assert not isinstance(window, DryWindow) or window.noted == noted
        assert (speak(window) == said) is (way == "returned to")
    assert changed > 10
    problem = AllocationProblem(function)
    answer = answer_from_assignment(problem, noted_assignment(reading.ledger))
    assert Verifier(problem).verify(answer).valid


def test_classes_without_a_word_are_refused() -> None:
    text = TINY.replace("S2 2 s/2 vcc/2", "C2 2 vcc/2").replace(":S2", ":C2")
    with pytest.raises(InputError, match="no word for class C2"):
        list(conversation(parse_function(text, "vcc alone")))
    wide = TINY.replace("v:16", "v:64").replace("V2 2 v/2", "V2 32 v/2")
    with pytest.raises(InputError, match="text-notes has no word for class V2"):
        list(conversation(parse_function(wide, "wide")))


def test_every_class_of_the_kernels_has_words_and_lists() -> None:
    words = set(vocabulary())
    for row in load_rows("mini").rows:
        for kind in parse_function(row.normalized, row.id).virtual_registers:
            shape = shape_of(kind)
            assert {f"C_{shape}", f"X_{shape}", f"Y_{shape}"} <= words
            assert lists_of(shape)[0][1] >= kind.width
            assert set(kind.files) & {file for file, _ in lists_of(shape)}


def test_words_are_each_there_once() -> None:
    words = vocabulary()
    assert len(set(words)) == len(words)
    assert {f"{file}0" for file in REGISTERS} <= set(words)
    assert all(f"F_{file}{size}" in words for file, sizes in SIZES.items() for size in sizes)
