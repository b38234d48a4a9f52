"""What prompts say: all of the function, exactly what is free, and what the docs show."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.generated import random_function
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
    problem_of,
)
from tests.model.test_register_state import count_idle, points, points_held
from verilocc_bench.allocators import (
    Request,
)
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.model.language_model import Ask
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.decision_features import decision_order
from verilocc_bench.model.prompts.state import SHOWN, STATE
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


@cache
def units_by_name(problem: AllocationProblem) -> dict[str, int]:
    return {problem.placements.unit_name(u): u for u in range(problem.placements.unit_count)}


def listed_bases(listed: str, legal: Mapping[int, str]) -> set[int]:
    """The bases of `v4..v8 v10 s0..s0~3`, given the legal ones with their names."""
    numbers = {name: base for base, name in legal.items()}
    found: set[int] = set()
    for run in listed.split():
        if run != "none":
            first, _, last = re.sub(r"~\d+", "", run).partition("..")
            found |= {b for b in legal if numbers[first] <= b <= numbers[last or first]}
    return found


def read_state(text: str, problem: AllocationProblem) -> tuple[int, set[int], bool]:
    """The register of a `state` prompt, the bases that its lines allow, and whether one is cut."""
    head, *lines = text.splitlines()
    number = int(head.split()[0][1:])
    register_class, placements = problem.function.virtual_registers[number], problem.placements
    legal = placements.legal[register_class]
    allowed, cut, lanes = set(legal), False, 0
    shown: list[set[int]] = []
    for line in lines:
        place, _, listed = line.partition(": ")
        if place == "tied":
            allowed &= {placements.by_name[register_class].get(listed, -1)}
            continue
        first, _, last = place.split()[1].partition("-")
        assert lanes <= int(first) <= int(last or first) < register_class.width
        lanes = int(last or first) + 1
        shown.append(listed_bases(listed, legal))
        allowed &= shown[-1]
        cut |= len(listed.split()) == SHOWN
        assert len(listed.split()) <= SHOWN
        assert ("~" in listed) == (register_class.width == 1 and listed != "none")
    assert shown
    if not cut:  # no line says what another says already
        assert not any(one <= other for one in shown for other in shown if one is not other)
    return number, allowed, cut


def test_state_prompts_hold_what_is_legal() -> None:
    """A base is legal exactly where it is in every line."""
    whole = cut = 0
    for row in SMALL[:4]:
        problem = AllocationProblem.from_text(row.normalized)
        generator = random.Random(row.id)

        def choose(_: Ask, __: str, names: Sequence[str]) -> str:
            return generator.choice(names[:4])  # noqa: B023

        model = ScriptedModel(choose=choose)
        response = run_episode(get_prompt_format("state"), Request(problem), CONSTRAINED, model)
        assert response.answer is not None
        state = RegisterState(problem)
        classes, placements = problem.function.virtual_registers, problem.placements
        for ask in model.asks:
            number, allowed, is_cut = read_state(last_prompt(ask), problem)
            legal = set(state.legal(number))
            assert allowed <= legal if is_cut else allowed == legal
            assert allowed
            # The lowest is there even where lines are cut.
            assert min(legal) in allowed or classes[number].width == 1
            whole, cut = whole + (not is_cut), cut + is_cut
            name = response.answer.assignment[f"%{number}"]
            state.place(number, placements.by_name[classes[number]][name])
    assert whole > 200
    assert cut > 10


def test_state_prompts_hold_what_is_legal_on_generated_functions() -> None:
    """Ties, lanes of different lives, classes of several files, and nowhere to go."""
    tied = nowhere = apart = 0
    for seed in range(240):
        target = ("gfx942", "sm_80")[seed % 2]
        problem = AllocationProblem(random_function(seed, guarded=seed % 2 == 1, target=target))
        generator = random.Random(seed)
        state, viewer = RegisterState(problem), STATE.make_viewer(problem)
        for register in decision_order(problem):
            legal = state.legal(register)
            lines = viewer(state, register, legal).lines
            text = "\n".join([viewer.query(state, register), *lines])
            assert read_state(text, problem)[:2] == (register, set(legal)), (seed, register)
            tied += "tied: " in text and bool(legal)
            nowhere += not legal
            apart += len(lines) > 1
            bases = list(problem.placements.legal[problem.function.virtual_registers[register]])
            state.place(register, generator.choice(list(legal) or bases))
    assert tied > 5
    assert min(nowhere, apart) > 30


def test_state_shows_idle_times() -> None:
    checked = 0
    for row in SMALL[:3]:
        problem = AllocationProblem.from_text(row.normalized)
        names = units_by_name(problem)
        model = ScriptedModel()
        response = run_episode(get_prompt_format("state"), Request(problem), CONSTRAINED, model)
        assert response.answer is not None
        state = RegisterState(problem)
        for ask in model.asks:
            number = int(asked(ask)[0][1:])
            register_class = problem.function.virtual_registers[number]
            (life, *_) = state.lifetimes(number)
            own, held = points(life[0]) | points(life[1]), None
            for first, last, digits in re.findall(r"(\w+)\.\.(\w+)~(\d+)", last_prompt(ask)):
                held = held or points_held(state)
                for unit in range(names[first], names[last] + 1):
                    idle = count_idle(own, held[unit], len(problem.liveness.points))
                    assert idle.bit_length() == int(digits)
                    checked += 1
            name = response.answer.assignment[f"%{number}"]
            state.place(number, problem.placements.by_name[register_class][name])
    assert checked > 1000


MANY = """\
verilocc-bench 1
target gfx942
registers v:128 a:0 s:0 vcc:2=vcc_lo,vcc_hi
class V 1 v
"""


def test_state_shows_the_lowest_runs_of_a_tuple() -> None:
    """Every third unit is taken."""
    lines = [f"%{number}=OP" for number in range(40)]
    lines += ["%40:V2=OP", "USE %40", *(f"USE %{number}" for number in range(40))]
    problem = problem_of(MANY + "class V2 2 v/2\nbb0\n" + "\n".join(lines) + "\n")
    state, viewer = RegisterState(problem), STATE.make_viewer(problem)
    for number in range(40):
        state.place(number, 3 * number)
    # A pair begins at an even unit: of two free ones only where the first is even.
    expected = [3 * k + 1 for k in range(1, 2 * SHOWN, 2)]
    (line,) = viewer(state, 40, {}).lines
    assert line == "lanes 0-1: " + " ".join(f"v{unit}..v{unit}" for unit in expected)


def test_state_shows_the_least_idle_of_single_lanes() -> None:
    """Every third unit was taken until lately, the highest the latest."""
    lines = [f"%{number}=OP\nUSE %{number}" for number in range(40)]
    problem = problem_of(MANY + "bb0\n" + "\n".join(lines) + "\n%40=OP\nUSE %40\n")
    state, viewer = RegisterState(problem), STATE.make_viewer(problem)
    for number in range(40):
        state.place(number, 3 * number)
    lives = [set.union(*map(points, state.lifetimes(number)[0])) for number in range(41)]
    count = len(problem.liveness.points)
    idle = {3 * k: count_idle(lives[40], lives[k], count).bit_length() for k in range(40)}
    least = sorted(idle, key=lambda unit: (idle[unit], unit))[:SHOWN]
    (line,) = viewer(state, 40, {}).lines
    assert line == "lane 0: " + " ".join(f"v{unit}..v{unit}~{idle[unit]}" for unit in sorted(least))
    assert len({idle[unit] for unit in least}) > 3
    assert least != sorted(idle)[-SHOWN:]


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
