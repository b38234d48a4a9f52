"""Episodes and rewards for models that learn."""

from __future__ import annotations

import json

import pytest

import verilocc_bench as vb
from verilocc_bench.api.environment import prompts, reward_function
from verilocc_bench.dataset import embedded_path

SMALL = ("ff6a8c95c1702273", "283d953e61cef95c")


@pytest.fixture(scope="module")
def environment() -> vb.Environment:
    return vb.Environment([vb.load_problem(each) for each in SMALL])


def label_of(environment: vb.Environment, place: int) -> str:
    label = environment.problems[place].label
    assert label is not None
    return json.dumps(dict(label))


def test_an_episode_of_one_step(environment: vb.Environment) -> None:
    assert [each.id for each in environment.problems] == list(SMALL)
    messages = environment.reset(0)
    assert [each["role"] for each in messages] == ["system", "user"]
    assert environment.problems[0].normalized in messages[1]["content"]
    step = environment.step(f"Sure:\n```json\n{label_of(environment, 0)}\n```")
    assert step.done
    assert step.messages == ()
    assert step.reward == 1.0  # LLVM is at the proved bound of 22 registers
    assert step.details["valid"]
    assert step.details["registers"] == 22
    with pytest.raises(vb.InputError, match="reset first"):
        environment.step("{}")


def test_wrong_words_have_no_reward_and_come_back(environment: vb.Environment) -> None:
    guided = vb.Environment(environment.problems, calls=3)
    guided.reset(SMALL[1])
    first = guided.step('{"%0": "v0"}')
    assert (first.done, first.reward, first.details["valid"]) == (False, 0.0, False)
    assert "missing" in str(first.details["findings"])
    second = guided.step("I cannot")
    assert second.details["failure"] == "unparsable"
    third = guided.step(label_of(guided, 1))
    assert third.done
    assert third.reward == 1.0
    guided.reset(0)
    for _ in range(3):
        last = guided.step("nothing")
    assert (last.done, last.reward) == (True, 0.0)
    with pytest.raises(vb.InputError, match="no kernel 'x'"):
        guided.reset("x")


def test_a_format_with_windows_takes_several_steps(environment: vb.Environment) -> None:
    windows = vb.Environment(environment.problems, prompt_format="window")
    label = environment.problems[0].label
    assert label is not None
    turns = list(windows.format.demonstrations(windows.problems[0], label))
    assert len(turns) > 1
    shown = windows.reset(0)
    for turn in turns:
        assert shown[-1]["content"] == turn.prompt
        step = windows.step(turn.completion)
        shown = step.messages
        assert step.done == (turn is turns[-1])
    assert step.reward == 1.0


def test_rewards_for_a_trainer(environment: vb.Environment) -> None:
    rows = prompts(environment.problems)
    assert [row["kernel"] for row in rows] == list(SMALL)
    reward = reward_function(environment.problems)
    answers = [label_of(environment, 0), label_of(environment, 1), "{}"]
    kernels = [*SMALL, SMALL[0]]
    assert reward(answers, kernel=kernels, prompts=[]) == [1.0, 1.0, 0.0]
    chats = [[{"role": "assistant", "content": each}] for each in answers]
    assert reward(chats, kernel=kernels) == [1.0, 1.0, 0.0]
    others = [[], [{"content": None}], [{"content": [{"type": "text", "text": answers[0]}]}]]
    assert reward(others, kernel=[*SMALL, SMALL[0]]) == [0.0, 0.0, 1.0]
    assert reward([f"<think>{answers[0]}"], kernel=[SMALL[0]]) == [0.0]  # it was cut off
    for made in (reward_function, prompts):
        with pytest.raises(vb.InputError, match="several steps"):
            made(environment.problems, prompt_format="window")
    with pytest.raises(vb.InputError, match="a list of messages"):
        reward([["{}"]], kernel=[SMALL[0]])
    with pytest.raises(vb.InputError, match="split 'train'"):
        vb.Environment(embedded_path())
    with pytest.raises(vb.InputError, match="need edits"):
        vb.Environment("mini", track="split")
    with pytest.raises(vb.InputError, match="arch: these choose kernels of a dataset"):
        vb.Environment(environment.problems, arch="sm_80")


def test_a_label_may_be_changed() -> None:
    one, other = (vb.load_problem(SMALL[0]).label for _ in range(2))
    assert isinstance(one, dict)
    one.clear()
    assert other


def test_environments_share_what_is_prepared(environment: vb.Environment) -> None:
    several = environment.spread(2)
    for place, each in enumerate(several):
        each.reset(place)
    steps = [each.step(label_of(environment, place)) for place, each in enumerate(several)]
    assert [each.reward for each in steps] == [1.0, 1.0]
    assert several[0].problems[0] is environment.problems[0]
