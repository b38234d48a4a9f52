"""Further questions: exact, short, and never to be taken for what the harness asks."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from tests.generated import random_function
from tests.training.small import generated, recipe, write_recipe
from tests.training.test_examples import letters, pairs, same
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.training.auxiliary import QUESTIONS, Auxiliary, with_auxiliary
from verilocc_bench.training.card_words import augmentation
from verilocc_bench.training.examples import Examples, make_examples
from verilocc_bench.training.ordering import reordered
from verilocc_bench.training.recipe import ExampleSource, read_recipe
from verilocc_bench.training.text_tokenizer import text_tokenizer
from verilocc_bench.views import get_training_format, problem_of
from verilocc_bench.views.training_turns import TrainingTurn

TASKS = ("pressure", "lifetimes")

LOOP = """\
verilocc-bench 1
target gfx942
registers v:8 a:4 s:16 vcc:2=vcc_lo,vcc_hi
class V 1 v
class A 1 a
class G2 2 s/2
bb0(v0)->bb1
%0=COPY v0
%1:G2=IMPLICIT_DEF
%2=V_MOV_B32
bb1->bb1,bb2
%3:A=V_MOV_B32
%4=V_ADD_U32 %0,%3
%5=V_MOV_B32
S_NOP %1.1,%5
bb2
DS_WRITE_B32 %4
"""
"""%2 is never read; %1.0 dies in bb0; %0 and %1.1 are live all through the loop, %4 beyond it."""


def turns_of(
    problem: AllocationProblem,
    style: str,
    every: int = 1,
    seed: int = 0,
    tasks: tuple[str, ...] = TASKS,
) -> list[TrainingTurn]:
    turns = get_training_format(style).turns(problem, dict.fromkeys(_names(problem), "v0"))
    return list(with_auxiliary(problem, style, turns, Auxiliary(tasks, every), seed))


def _names(problem: AllocationProblem) -> list[str]:
    return [f"%{number}" for number in range(len(problem.function.virtual_registers))]


def is_further(turn: TrainingTurn) -> bool:
    return turn.messages[-1].content.endswith(tuple(QUESTIONS.values()))


@pytest.mark.parametrize("style", ["whole", "window"])
def test_a_loop_by_hand(style: str) -> None:
    usual, pressure, lifetimes = turns_of(AllocationProblem.from_text(LOOP), style)
    assert usual.completion.startswith('{"%0": "v0"')
    # %0, %3, %4's old value is not read; after V_MOV %5: %0, %4, %5; s: %1.1 alone in the loop.
    assert pressure.completion == "v:3 s:2"
    assert lifetimes.completion == "bb1 %0:4 %1:4 bb0 %2:3 bb1 %3:1 %4:4 %5:3"
    assert all(turn.ends for turn in (usual, pressure, lifetimes))


def test_the_question_stands_after_the_usual_prompt() -> None:
    problem = AllocationProblem.from_text(LOOP)
    usual, *others = turns_of(problem, "window")
    for task, turn in zip(TASKS, others, strict=True):
        assert turn.messages[-1].content == usual.messages[-1].content + QUESTIONS[task]
        assert turn.messages[0] != usual.messages[0]
    for task, turn in zip(TASKS, turns_of(problem, "whole")[1:], strict=True):
        assert turn.messages[-1].content == problem.normalized + QUESTIONS[task]


def read_lifetimes(completion: str) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    block = -1
    for word in completion.split():
        if word.startswith("bb"):
            block = int(word[2:])
        else:
            register, place = word.removeprefix("%").split(":")
            found[int(register)] = block, int(place)
    return found


def read_pressure(completion: str) -> dict[str, int]:
    return {name: int(n) for name, n in (word.split(":") for word in completion.split())}


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "sm_80"])
def test_generated_functions_point_by_point(target: str) -> None:
    for seed in range(60):
        problem = AllocationProblem(random_function(seed, target=target))
        found = [turn for turn in turns_of(problem, "whole") if is_further(turn)]
        liveness = problem.liveness
        expected: dict[int, tuple[int, int]] = {}
        for point, (block, index) in enumerate(liveness.points):
            for register, kind in enumerate(problem.function.virtual_registers):
                lane = liveness.lane_offsets[register]
                if any(mask >> point & 1 for mask in liveness.live[lane : lane + kind.width]):
                    expected[register] = block, index + 1
        told: dict[int, tuple[int, int]] = {}
        most: dict[str, int] = {}
        for turn in found:
            if turn.messages[-1].content.endswith(QUESTIONS["lifetimes"]):
                told = read_lifetimes(turn.completion)
            else:
                most = read_pressure(turn.completion)
        assert told == expected
        first = problem.target.vector_files[0]
        wanted = {
            {"vector": first}.get(group, group): count
            for group, count in problem.pressure.maximum.items()
            if count
        }
        assert most == wanted


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "sm_80"])
def test_windows_show_their_part(arch: str) -> None:
    """Each window's lifetimes by its own lines, its pressure by those of its instructions."""
    row = next(row for row in mini() if row.arch == arch and "\nbb4" in row.normalized)
    original = problem_of(row)
    *_, other = reordered(original, {}, 1, 0)
    for problem in (original, other.problem):
        turns = turns_of(problem, "window")
        highest: dict[str, int] = {}
        sites = [(block, index) for block, index, _ in problem.function.instructions()]
        done = 0
        for turn in (turn for turn in turns if is_further(turn)):
            lines = turn.messages[-1].content.splitlines()[:-1]
            if turn.messages[-1].content.endswith(QUESTIONS["pressure"]):
                for file, count in read_pressure(turn.completion).items():
                    highest[file] = max(highest.get(file, 0), count)
                continue
            body = lines[next(n for n, line in enumerate(lines) if line.startswith("bb")) :]
            placed = next(line for line in lines if line.startswith("place "))
            counts: dict[int, int] = {}
            for line in body:
                if line.startswith("bb"):
                    head = int(re.match(r"bb(\d+)", line)[1])  # type: ignore[index]
                    counts[head] = 0
                else:
                    counts[head] += 1
            for register, (block, place) in read_lifetimes(turn.completion).items():
                assert f"%{register}" in re.findall(r"%\d+", placed)
                assert place <= counts[block]
                lane = problem.liveness.lane_offsets[register]
                width = problem.function.virtual_registers[register].width
                shown = sites[done : done + sum(counts.values())]
                start = min((i for b, i in shown if b == block), default=0)
                point = problem.liveness.after[block][start + place - 1] if place else 0
                masks = problem.liveness.live[lane : lane + width]
                after = shown.index((block, start + place - 1)) + 1 if place else 0
                assert any(mask >> point & 1 for mask in masks)
                for b, i in shown[after:]:
                    later = problem.liveness.after[b][i]
                    assert not any(mask >> later & 1 for mask in masks)
            done += sum(counts.values())
        assert done == len(sites)
        assert highest[problem.target.vector_files[0]] == problem.pressure.maximum["vector"]


# What the model is given


@cache
def mini() -> list[Any]:
    return sorted(load_rows("mini").rows, key=lambda row: (row.n_instructions, row.id))


@cache
def text() -> Any:
    return text_tokenizer()


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "sm_80"])
def test_the_words_of_the_small_tokenizer_suffice(arch: str) -> None:
    row = next(row for row in mini() if row.arch == arch and "\nbb4" in row.normalized)
    codec = TokenCodec(text(), frozenset({text().eos_token_id}), None, "here")
    for style in ("whole", "window"):
        asked: list[tuple[bool, tuple[int, ...]]] = []
        usual: tuple[int, ...] = ()
        for turn in turns_of(problem_of(row), style):
            prompt = codec.prompt(turn.messages)
            said = [token for piece in turn.pieces for token in codec.piece(piece)]
            assert text().unk_token_id not in prompt + said
            assert "".join(text().decode(said).split()) == "".join(turn.completion.split())
            asked.append((is_further(turn), tuple(prompt)))
            if is_further(turn):
                word = "given" if "given at most" in turn.messages[-1].content else "place"
                assert text().convert_ids_to_tokens(prompt[-2:]) == [word, "\n"]
                assert tuple(prompt[:-2]) == usual
                # The first word tells the answer from an object.
                assert said[0] != text().convert_tokens_to_ids('{"')
            else:
                usual = tuple(prompt)
                assert text().convert_ids_to_tokens(prompt[-2]) not in ("given", "place")
        usual_ones = {prompt for further, prompt in asked if not further}
        assert usual_ones.isdisjoint(prompt for further, prompt in asked if further)


def test_large_numbers_can_be_said() -> None:
    body = "".join(f"%{n}=V_MOV_B32\n" for n in range(1, 2345))
    problem = AllocationProblem.from_text(
        LOOP[: LOOP.index("class A")].replace("v:8", "v:256")
        + f"bb0(v0)\n%0=COPY v0\n{body}DS_WRITE_B32 %0\n"
    )
    lifetimes = turns_of(problem, "whole", tasks=("lifetimes",))[1]
    assert lifetimes.completion.startswith("bb0 %0:2345 %1:2 ")
    codec = TokenCodec(text(), frozenset({text().eos_token_id}), None, "here")
    words = [text().convert_ids_to_tokens(list(codec.piece(p))) for p in lifetimes.pieces[:4]]
    assert words == [["bb0"], ["%0", ":23"], ["45"], ["%1", ":2"]]


def made(folder: Path, tokenizer: Any, **options: Any) -> Examples:
    source = {"format": "window", "label": "compiler", **options}
    wanted = recipe(folder, sources=[source], training={"steps": 1, "maximum_tokens": 100_000})
    name = "-".join(f"{key}{value}" for key, value in sorted(options.items()))
    return make_examples(wanted, tokenizer, generated(4), folder / re.sub(r"\W", "", name))


def is_object(tokens: list[int]) -> bool:
    return str(letters().decode(tokens)).startswith("{")


@pytest.mark.parametrize("style", ["whole", "window"])
def test_the_usual_examples_do_not_change(style: str, tmp_path: Path) -> None:
    plain = made(tmp_path, letters(), format=style, renamings=1)
    more = made(
        tmp_path, letters(), format=style, renamings=1, auxiliary=[*TASKS], auxiliary_every=1
    )
    kept = [n for n, (_, said) in enumerate(pairs(more)) if is_object(said)]
    assert same(more.take(np.array(kept)), plain)
    others = [pair for pair in pairs(more) if not is_object(pair[1])]
    # Once for each prompt, not for each renaming.
    assert 0 < len(others) <= len(plain)
    assert {said[-1] for _, said in others} == {letters().eos_token_id}


def test_questions_are_about_the_windows_that_are_shown(tmp_path: Path) -> None:
    """Narrow ones, too: each lists its own registers."""
    options = {"format": "window", "new_registers": [1]}
    plain = made(tmp_path, letters(), **options)
    more = made(tmp_path, letters(), **options, auxiliary=["lifetimes"], auxiliary_every=1)
    asked: dict[str, str] = {}
    for prompt, said in pairs(more):
        shown = str(letters().decode(prompt))
        if not is_object(said):
            placed = next(line for line in shown.splitlines() if line.startswith("place "))
            asked[placed] = str(letters().decode(said))
    assert len(plain) / 2 < len(asked) <= len(plain)
    for placed, said in asked.items():
        assert set() < set(re.findall(r"%\d+", said)) <= set(re.findall(r"%\d+", placed))


def test_orders_come_after_the_function_as_it_is(tmp_path: Path) -> None:
    plain = made(tmp_path, letters(), format="whole", renamings=1)
    more = made(tmp_path, letters(), format="whole", renamings=1, orderings=2)
    kept = pairs(more)
    assert len(plain) == 8
    assert len(plain) < len(more) <= 24
    place = 0
    for pair in pairs(plain):  # in their order, others between
        place = kept.index(pair, place) + 1
    prompts = {tuple(prompt) for prompt, _ in kept}
    assert len(prompts) * 2 == len(more)  # each order is renamed as well


def test_one_in_so_many() -> None:
    row = next(row for row in mini() if row.n_instructions > 300)
    problem = problem_of(row)
    all_of_them = turns_of(problem, "window", tasks=("lifetimes",))
    some = turns_of(problem, "window", 4, tasks=("lifetimes",))
    assert some == turns_of(problem, "window", 4, tasks=("lifetimes",))
    assert some != turns_of(problem, "window", 4, seed=1, tasks=("lifetimes",))
    count, most = (sum(map(is_further, turns)) for turns in (some, all_of_them))
    assert most / 10 < count < most / 2


# Recipes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"auxiliary": ["presure"]}, ("auxiliary", "'presure'", "pressure, lifetimes")),
        ({"auxiliary": "pressure"}, ("auxiliary", "a list")),
        ({"auxiliary": [3]}, ("auxiliary 1", "a text")),
        ({"auxiliary": ["pressure", "pressure"]}, ("auxiliary", "twice")),
        ({"auxiliary": ["pressure"], "auxiliary_every": 0}, ("auxiliary_every", "at least 1")),
        ({"auxiliary_every": 2}, ("auxiliary_every", "'auxiliary'")),
        ({"format": "state", "auxiliary": ["pressure"]}, ("'state'", "auxiliary", "window")),
        ({"format": "candidates", "orderings": 1}, ("'candidates'", "orderings", "whole")),
        ({"orderings": -1}, ("orderings", "at least 0")),
        ({"orderings": 0.5}, ("orderings", "whole number")),
    ],
)
def test_mistakes(changes: dict[str, Any], said: tuple[str, ...], tmp_path: Path) -> None:
    source = {"format": "window", "label": "best", **changes}
    path = write_recipe(tmp_path / "r.yaml", sources=[source])
    with pytest.raises(InputError) as refusal:
        read_recipe(path)
    line = str(refusal.value)
    assert line.startswith(f"{path}: sources 1")
    assert all(word in line for word in said)


def test_policies_are_shown_in_one_order() -> None:
    with pytest.raises(InputError, match="orderings are for whole and window"):
        ExampleSource("state", label="best", orderings=1)


def test_a_recipe_tells_the_keys_where_they_are_used(tmp_path: Path) -> None:
    plain = recipe(tmp_path)
    told = plain.as_json()["sources"][0]
    assert not {"orderings", "auxiliary", "auxiliary_every"} & told.keys()
    used = recipe(
        tmp_path,
        sources=[{"format": "window", "label": "best", "orderings": 2, "auxiliary": ["pressure"]}],
    )
    told = used.as_json()["sources"][0]
    assert told["orderings"] == 2
    assert told["auxiliary"] == ["pressure"]
    (words,) = augmentation(used.as_json()["sources"])
    for part in ("`window`", "2 times more", "(pressure)", "one prompt in 4"):
        assert part in words
    assert list(augmentation(plain.as_json()["sources"])) == []
