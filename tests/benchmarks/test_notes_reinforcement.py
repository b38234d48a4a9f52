"""Reinforcement of a model that keeps notes."""

from __future__ import annotations

from copy import deepcopy

import pytest

from verilocc_bench.dataset import load_rows
from verilocc_bench.model.notes.formats import TEXT_NOTES_FORMAT

torch = pytest.importorskip("torch")

from benchmarks.notes_reinforcement import (  # noqa: E402
    INVALID,
    LabelledFunction,
    Options,
    Played,
    learn,
    play,
    reinforce,
)
from verilocc_bench.model.notes.network import NotesConfiguration, NotesNetwork  # noqa: E402
from verilocc_bench.training.notes.lessons import Lesson  # noqa: E402

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=1, heads=2, head_width=8, feed_forward=16)


def network() -> NotesNetwork:
    return NotesNetwork(SMALL, prompt_format=TEXT_NOTES_FORMAT).eval()


def test_a_step_makes_the_words_of_the_better_answer_likelier() -> None:
    one = network()
    start = deepcopy(one)
    better, worse = Lesson((1, 5, 9), (False, False, True)), Lesson((1, 5, 8), (False, False, True))

    def probability(lesson: Lesson) -> float:
        with torch.no_grad():
            states = one(torch.tensor([lesson.tokens[:-1]]))
            scores = one.scores(states, one.vectors())[0, -1]
            return float(scores.softmax(-1)[lesson.tokens[-1]])

    before = probability(better), probability(worse)
    loss = learn(one, start, [(better, 1.0), (worse, -1.0)], 1.0, 0.1)
    loss.backward()
    with torch.no_grad():
        for weight in one.parameters():
            if weight.grad is not None:
                weight.sub_(0.05 * weight.grad)
    assert probability(better) > before[0]
    assert probability(worse) < before[1]


def test_answers_that_are_all_alike_teach_nothing() -> None:
    row = min(load_rows("mini").rows, key=lambda row: row.n_instructions)
    one = network()
    before = deepcopy(one.state_dict())
    lines = list(reinforce(one, [row], [row], Options(steps=1, functions=1, group=2)))
    assert lines[1]["groups_that_differ"] == 0
    assert lines[1]["valid"] == lines[0]["before"]["valid"] == 0
    assert lines[1]["reward"] == INVALID
    assert all(torch.equal(value, before[name]) for name, value in one.state_dict().items())


def test_the_words_of_an_answer_are_kept() -> None:
    row = min(load_rows("mini").rows, key=lambda row: row.n_instructions)
    (game,) = play(network(), [LabelledFunction.of(row)], [0], 1.0)
    words = [word for word, _ in game.windows[0]]
    assert words[0] in ("W", "D")
    said = [place for place, (_, said) in enumerate(game.windows[0]) if said]
    assert said
    assert said[0] > words.index("SAY")
    assert Played(ratio=1.25).reward == -1.25
