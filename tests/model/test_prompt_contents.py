"""What prompts say: all of the function, exactly what is free, and what the docs show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.scripted import ScriptedModel, asked, last_prompt, run_episode
from tests.model.test_prompts import (
    CONSTRAINED,
    FREE,
    NAMES,
    ROWS,
    SMALL,
    TINY,
    TINY_ANSWER,
    follower,
    offered,
    problem_of,
)
from verilocc_bench.allocators import Request
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.candidates import OFFERED
from verilocc_bench.model.prompts.windows import INSTRUCTIONS, NEW_REGISTERS, cut_windows

DOCS = Path(__file__).parents[2] / "docs" / "prompt-formats.md"


@pytest.mark.parametrize("row", ROWS[::4], ids=lambda row: row.id)
def test_windows_cover_the_text(row) -> None:  # type: ignore[no-untyped-def]
    problem = AllocationProblem.from_text(row.normalized)
    windows = cut_windows(problem)
    lines = [line for w in windows for line in w.lines if not line.endswith(" continued")]
    body = row.normalized[row.normalized.index("\nbb0") + 1 :].splitlines()
    assert lines == body
    assert [n for w in windows for n in w.new] == list(range(row.n_virtual_registers))
    for window in windows:
        mentioned = {int(n) for line in window.lines for n in re.findall(r"%(\d+)", line)}
        assert mentioned == {*window.new, *window.known}
        assert sum(not line.startswith("bb") for line in window.lines) <= INSTRUCTIONS
        assert len(window.new) <= NEW_REGISTERS


def test_occupied_in_windows_is_what_is_taken() -> None:
    """What no line forbids a register alone is legal for it, given the windows before."""
    row = SMALL[3]
    assert row.label is not None
    problem = AllocationProblem.from_text(row.normalized)
    model = follower(row.label)
    run_episode(get_prompt_format("window"), Request(problem), FREE, model)
    state = RegisterState(problem)
    classes, placements = problem.function.virtual_registers, problem.placements
    for ask in model.asks:
        text = last_prompt(ask)
        common = runs(re.findall(r"^occupied (.*)$", text, re.MULTILINE)[0], problem)
        for key in asked(ask):
            own = re.findall(rf"^{key} not (.*)$", text, re.MULTILINE)
            forbidden = common | (runs(own[0], problem) if own else set())
            number = int(key[1:])
            width = classes[number].width
            allowed = {
                base
                for base in placements.legal[classes[number]]
                if forbidden.isdisjoint(range(base, base + width))
            }
            legal = set(state.legal(number))
            assert allowed == legal if width == 1 else allowed <= legal
        for key in asked(ask):
            number = int(key[1:])
            state.place(number, placements.by_name[classes[number]][row.label[key]])


def runs(text: str, problem: AllocationProblem) -> set[int]:
    """The units of `v4+6 s0+1`."""
    names = {problem.placements.unit_name(u): u for u in range(problem.placements.unit_count)}
    found: set[int] = set()
    for run in text.split():
        if run != "none":
            name, _, length = run.partition("+")
            found |= set(range(names[name], names[name] + int(length)))
    return found


def test_state_prompts_hold_what_is_legal() -> None:
    """A base is legal exactly where each lane's unit is in a run of its line."""
    for row in (SMALL[0], SMALL[3]):
        assert row.label is not None
        problem = AllocationProblem.from_text(row.normalized)
        model = follower(row.label)
        run_episode(get_prompt_format("state"), Request(problem), FREE, model)
        state = RegisterState(problem)
        classes, placements = problem.function.virtual_registers, problem.placements
        for ask in model.asks:
            head, *lines = last_prompt(ask).splitlines()
            number = int(head.split()[0][1:])
            free: dict[int, set[int]] = {}
            for line in lines:
                place, _, text = line.partition(": ")
                first, _, last = place.split()[1].partition("-")
                for lane in range(int(first), int(last or first) + 1):
                    free[lane] = runs(text, problem)
            assert sorted(free) == list(range(classes[number].width))
            shown = {
                base
                for base in placements.legal[classes[number]]
                if all(base + lane in units for lane, units in free.items())
            }
            assert shown == set(state.legal(number))
            name = row.label[f"%{number}"]
            state.place(number, placements.by_name[classes[number]][name])


def test_candidates_are_legal_and_bounded() -> None:
    row = SMALL[4]
    problem = AllocationProblem.from_text(row.normalized)
    model = ScriptedModel(choose=lambda _a, _t, names: names[0])
    response = run_episode(get_prompt_format("candidates"), Request(problem), CONSTRAINED, model)
    assert response.answer is not None
    state = RegisterState(problem)
    classes = problem.function.virtual_registers
    spared = 0
    for ask in model.asks:
        number = int(asked(ask)[0][1:])
        legal = {name: base for base, name in state.legal(number).items()}
        shown = offered(ask)
        assert len(shown) == min(OFFERED, len(legal))
        assert shown[0] == next(iter(legal))
        spared += " copies 1 " in last_prompt(ask)
        for line in last_prompt(ask).splitlines()[1:]:
            name, _, below, _, above, _, _, _, grows = line.split()
            base, width = legal[name], classes[number].width
            live, defined = state.lifetimes(number)[0]
            around = range(base - int(below), base)
            assert all(state.is_free((live, defined), unit) for unit in around)
            end = base + width
            assert int(grows) == 0 or not state.is_used(end - 1)
            assert 0 <= int(above) <= 16
        state.place(number, legal[shown[0]])
    assert spared > 0


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
