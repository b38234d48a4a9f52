"""What prompts say: all of the function, exactly what is free, and what the docs show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.model.scripted import TINY, ScriptedModel, asked, last_prompt, run_episode
from tests.model.test_prompts import (
    CONSTRAINED,
    FREE,
    NAMES,
    ROWS,
    SMALL,
    TINY_ANSWER,
    follower,
    problem_of,
)
from verilocc_bench.allocators import Request
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.windows import INSTRUCTIONS, cut_windows
from verilocc_bench.settings.language_model import WINDOW_REGISTERS

DOCS = Path(__file__).parents[2] / "docs" / "prompt-formats.md"


@pytest.mark.parametrize("width", [1, 4, WINDOW_REGISTERS])
@pytest.mark.parametrize("row", ROWS[::4], ids=lambda row: row.id)
def test_windows_cover_the_text(row: Row, width: int) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    windows = cut_windows(problem, width)
    lines = [line for w in windows for line in w.lines if not line.endswith(" continued")]
    body = row.normalized[row.normalized.index("\nbb0") + 1 :].splitlines()
    assert lines == body
    assert [n for w in windows for n in w.new] == list(range(row.n_virtual_registers))
    for window in windows:
        mentioned = {int(n) for line in window.lines for n in re.findall(r"%(\d+)", line)}
        assert mentioned == {*window.new, *window.known}
        assert sum(not line.startswith("bb") for line in window.lines) <= INSTRUCTIONS
        own = len(window.instructions)
        assert len(window.new) <= width or own == 1


@pytest.mark.parametrize("width", [2, WINDOW_REGISTERS])
@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.id)
def test_free_in_windows_is_what_is_left(row: Row, width: int) -> None:
    """What lines leave to a register is what is legal for it, given the windows before."""
    assert row.label is not None
    problem = AllocationProblem.from_text(row.normalized)
    model = follower(row.label)
    options = replace(FREE, window_registers=width)
    run_episode(get_prompt_format("window"), Request(problem), options, model)
    state = RegisterState(problem)
    classes, placements = problem.function.virtual_registers, problem.placements
    for ask in model.asks:
        text = last_prompt(ask)
        assert 1 <= len(asked(ask)) <= width
        placed = re.findall(r"^place (.*)$", text, re.MULTILINE)[0].split()
        assert placed == [f"{key}:{classes[int(key[1:])].name}" for key in asked(ask)]
        for key in asked(ask):
            register_class = classes[int(key[1:])]
            common = re.findall(rf"^free {register_class.name} (.*)$", text, re.MULTILINE)
            own = re.findall(rf"^{key} also (.*)$", text, re.MULTILINE)
            assert len(common) == 1
            assert len(own) <= 1
            legal = placements.legal[register_class]
            found = [listed_bases(listed, legal) for listed in (*common, *own)]
            assert set.union(*found) == set(state.legal(int(key[1:])))
            assert sum(map(len, found)) == len(set.union(*found))
        for key in asked(ask):
            number = int(key[1:])
            state.place(number, placements.by_name[classes[number]][row.label[key]])


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.id)
def test_beyond_windows_is_what_lives_on(row: Row) -> None:
    """Of registers that hold something elsewhere; the others are mentioned nowhere else."""
    problem = AllocationProblem.from_text(row.normalized)
    places = [
        (block, instruction)
        for block, each in enumerate(problem.function.blocks)
        for instruction in range(len(each.instructions))
    ]
    model = ScriptedModel()
    run_episode(get_prompt_format("window"), Request(problem), CONSTRAINED, model)
    every = cut_windows(problem)
    windows = [window for window in every if window.new]
    assert len(windows) == len(model.asks)
    liveness, classes = problem.liveness, problem.function.virtual_registers
    told = set()
    for window, ask in zip(windows, model.asks, strict=True):
        here = {places[instruction] for instruction in window.instructions}
        beyond = re.findall(r"^beyond (.*)$", last_prompt(ask), re.MULTILINE)
        found = set(beyond[0].split()) if beyond else set()
        expected = {
            f"%{register}"
            for register in window.new
            for lane in range(classes[register].width)
            for point, place in enumerate(liveness.points)
            if place not in here
            and (
                liveness.live[liveness.lane_offsets[register] + lane]
                | liveness.defined[liveness.lane_offsets[register] + lane]
            )
            >> point
            & 1
        }
        text = "\n".join(line for other in every if other != window for line in other.lines)
        elsewhere = {f"%{number}" for number in re.findall(r"%(\d+)", text)}
        assert found == expected | elsewhere & set(asked(ask))
        told |= found
    assert told
    assert len(told) < row.n_virtual_registers


def listed_bases(listed: str, legal: Mapping[int, str]) -> set[int]:
    """The bases of `v4..v8 v10`, given the legal ones with their names."""
    numbers = {name: base for base, name in legal.items()}
    found: set[int] = set()
    for run in listed.split():
        if run != "none":
            first, _, last = run.partition("..")
            found |= {b for b in legal if numbers[first] <= b <= numbers[last or first]}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_docs_show_the_exact_prompts(name: str) -> None:
    """docs/prompt-formats.md holds the conversation about TINY, turn by turn."""
    model = follower(TINY_ANSWER)
    run_episode(get_prompt_format(name), Request(problem_of(TINY)), FREE, model)
    assert model.asks
    blocks = re.findall(r"^```text\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    system = model.asks[0].messages[0].content
    assert f"{system}\n" in blocks, system
    text = ""
    for ask in list(model.asks):
        said = model.answer(ask).text
        text += f"{last_prompt(ask)}=> {said}\n"
    assert text in blocks, text
