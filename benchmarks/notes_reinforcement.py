"""Does a model that keeps notes learn from the verifier? python -m benchmarks.notes_reinforcement

Each step draws several answers to each of a few functions, word by word at a temperature. What the
verifier accepts is paid by its registers over the label's, all else gets a fixed low reward. The
words of an answer that is better than the others of its function become likelier (a group-relative
policy gradient, as in verilocc_bench.training.policy_gradient, at the temperature of the
draws), with a price on the distance from the model at the start. Functions of the validation split
are allocated greedily before and after. Prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.evaluation.metrics import geometric_mean
from verilocc_bench.model.notes.decoding import WindowAnswer, answer_windows
from verilocc_bench.model.notes.files import load_network, save_network
from verilocc_bench.model.notes.network import NotesNetwork
from verilocc_bench.model.prompts.notes.episode import noted_assignment
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.training.notes.lessons import Lesson
from verilocc_bench.training.rewards import advantages
from verilocc_bench.verification.fast import FastVerifier

INVALID = -3.0
"""The reward of an answer that is not valid; others get minus their registers over the label's."""

BATCH = 64
"""Windows that are learnt at once."""

Words = list[tuple[str, bool]]
"""The words of a window, each with whether the model said it."""


@dataclass
class LabelledFunction:
    """A function, its verifier, and the vector registers of its label."""

    problem: AllocationProblem
    verifier: FastVerifier
    label: int

    @classmethod
    def of(cls, row: Row) -> LabelledFunction:
        problem = AllocationProblem.from_text(row.normalized)
        verifier = FastVerifier(problem)
        used = verifier.verify(row.label or {}, 1).registers_used
        assert used is not None
        return cls(problem, verifier, max(1, used[VECTOR]))


@dataclass
class Played:
    """One answer: its windows, and its registers over the label's; None if it is not valid.

    `contradicts`: it ends where a word contradicts the notes, or no block is left.
    """

    windows: list[Words] = field(default_factory=list)
    ratio: float | None = None
    contradicts: bool = False

    @property
    def reward(self) -> float:
        return INVALID if self.ratio is None else -self.ratio


def play(
    network: NotesNetwork,
    judges: Sequence[LabelledFunction],
    seeds: Sequence[int],
    temperature: float,
) -> list[Played]:
    """An answer to each function, all side by side; at temperature 0 the likeliest."""
    games = [Played() for _ in judges]
    draws = [random.Random(seed) for seed in seeds]
    opened = [
        network.prompt_format.open(judge.problem.function, draw, ())
        for judge, draw in zip(judges, draws, strict=True)
    ]
    running = list(range(len(judges)))
    while running:
        asked: dict[int, WindowAnswer] = {}
        for place in running:
            window = next(opened[place][1], None)
            if window is None:
                _judge(games[place], judges[place], opened[place][0])
            else:
                asked[place] = WindowAnswer(window, draws[place], temperature)
        answer_windows(network, list(asked.values()))
        for place, answer in asked.items():
            games[place].windows.append(answer.words)
            games[place].contradicts = isinstance(answer.error, Contradiction)
        running = [place for place, answer in asked.items() if answer.error is None]
    return games


def _judge(game: Played, judge: LabelledFunction, ledger: Any) -> None:
    answer = answer_from_assignment(judge.problem, noted_assignment(ledger))
    verdict = judge.verifier.verify(answer, 1)
    if verdict.valid and verdict.registers_used is not None:
        game.ratio = verdict.registers_used[VECTOR] / judge.label


def told(games: Sequence[Played]) -> dict[str, Any]:
    """Means over some answers."""
    ratios = [game.ratio for game in games if game.ratio is not None]
    return {
        "answers": len(games),
        "valid": len(ratios),
        "registers_ratio": geometric_mean(ratios) if ratios else None,
        "reward": fmean(game.reward for game in games),
    }


def learn(
    network: NotesNetwork,
    start: NotesNetwork,
    learnt: Sequence[tuple[Lesson, float]],
    temperature: float,
    divergence: float,
) -> Tensor:
    """The loss of some windows with the advantages of their answers."""
    longest = max(len(lesson.tokens) for lesson, _ in learnt)
    tokens = torch.zeros(len(learnt), longest, dtype=torch.long)
    weights = torch.zeros(len(learnt), longest)
    for row, (lesson, advantage) in enumerate(learnt):
        tokens[row, : len(lesson.tokens)] = torch.tensor(lesson.tokens)
        said = torch.tensor(lesson.said)
        weights[row, : len(said)] = torch.where(said, advantage or 1e-12, 0.0)
    is_said = weights[:, 1:] != 0
    targets = tokens[:, 1:][is_said]
    advantage = weights[:, 1:][is_said]
    scores = _scores(network, tokens, is_said, temperature)
    with torch.no_grad():
        before = _scores(start, tokens, is_said, temperature)
    gain = advantage * scores.gather(1, targets[:, None]).squeeze(1)
    distance = (scores.exp() * (scores - before)).sum(1)
    return (divergence * distance - gain).sum() / len(learnt)


def _scores(network: NotesNetwork, tokens: Tensor, said: Tensor, temperature: float) -> Tensor:
    states = network(tokens[:, :-1])
    scores: Tensor = network.scores(states[said], network.vectors()) / temperature
    return scores.log_softmax(-1)


@dataclass(frozen=True)
class Options:
    """How it is done.

    Each of `steps` draws `group` answers to each of `functions`, and learns `windows` of each
    answer. `divergence` is the price on the distance from the model at the start, in nats a word.
    """

    steps: int = 20
    functions: int = 3
    group: int = 8
    windows: int = 16
    temperature: float = 1.0
    divergence: float = 0.1
    learning_rate: float = 1e-4


def reinforce(
    network: NotesNetwork, train: Sequence[Row], validation: Sequence[Row], options: Options
) -> Iterator[dict[str, Any]]:
    """Trains the network further; yields what there is to say before, of each step, and after."""
    start = deepcopy(network).requires_grad_(requires_grad=False)
    judges = [LabelledFunction.of(row) for row in train]
    held_out = [LabelledFunction.of(row) for row in validation]
    yield {"train": len(judges), "before": told(play(network, held_out, range(len(held_out)), 0.0))}
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.learning_rate, weight_decay=0.0)
    draw = random.Random(0)
    for step in range(options.steps):
        started = time.perf_counter()
        chosen = draw.sample(judges, min(options.functions, len(judges)))
        drawn = [judge for judge in chosen for _ in range(options.group)]
        seeds = [1000 * step + number for number in range(len(drawn))]
        games = play(network, drawn, seeds, options.temperature)
        groups = [games[at : at + options.group] for at in range(0, len(games), options.group)]
        found = [advantages([game.reward for game in group]) for group in groups]
        if any(any(each) for each in found):
            learnt = list(_learnt(network, groups, found, options.windows, draw))
            _step(network, start, optimizer, learnt, options)
        yield {
            "step": step + 1,
            **told(games),
            "contradictions": sum(game.contradicts for game in games),
            "groups_that_differ": sum(any(each) for each in found),
            "seconds": round(time.perf_counter() - started, 1),
        }
    yield {"after": told(play(network, held_out, range(len(held_out)), 0.0))}


def _learnt(
    network: NotesNetwork,
    groups: Sequence[Sequence[Played]],
    found: Sequence[Sequence[float]],
    windows: int,
    draw: random.Random,
) -> Iterator[tuple[Lesson, float]]:
    """Some windows of each answer, with its advantage."""
    numbers = {word: place for place, word in enumerate(network.prompt_format.vocabulary())}
    for group, values in zip(groups, found, strict=True):
        for game, advantage in zip(group, values, strict=True):
            for words in draw.sample(game.windows, min(windows, len(game.windows))):
                tokens = tuple(numbers[word] for word, _ in words)
                said = tuple(said for _, said in words)
                if any(said):
                    yield Lesson(tokens, said), advantage


def _step(
    network: NotesNetwork,
    start: NotesNetwork,
    optimizer: torch.optim.Optimizer,
    learnt: Sequence[tuple[Lesson, float]],
    options: Options,
) -> None:
    optimizer.zero_grad()
    for first in range(0, len(learnt), BATCH):
        part = learnt[first : first + BATCH]
        loss = learn(network, start, part, options.temperature, options.divergence)
        (loss * len(part) / len(learnt)).backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def main(arguments: list[str]) -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="benchmarks.notes_reinforcement")
    parser.add_argument("--base", type=Path, required=True, help="a folder with a model")
    parser.add_argument("--dataset", required=True, help="with the splits train and validation")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--most-instructions", type=int, default=500, help="of train")
    parser.add_argument("--validation", type=int, default=16, help="functions, the smallest")
    for each in fields(Options):
        flag = "--" + each.name.replace("_", "-")
        parser.add_argument(flag, type=type(each.default), default=each.default)
    given = vars(parser.parse_args(arguments))
    torch.set_num_threads(1)
    network, _ = load_network(given["base"])
    train = load_rows(given["dataset"], split="train").rows
    held_out = load_rows(given["dataset"], split="validation").rows
    lines = reinforce(
        network,
        [row for row in train if row.n_instructions <= given["most_instructions"]],
        sorted(held_out, key=lambda row: row.n_instructions)[: given["validation"]],
        Options(**{each.name: given[each.name] for each in fields(Options)}),
    )
    for line in lines:
        print(json.dumps(line), flush=True)
    given["output"].mkdir(parents=True, exist_ok=True)
    save_network(network, given["output"])


if __name__ == "__main__":
    main(sys.argv[1:])
