"""Whole allocations by a model, many side by side, with the choices that it had.

The prompts are those of `candidates`. The model chooses among the offered
names: the chance of each is the softmax over the offered names' tokens alone,
as in constrained decoding. So every base is legal; at a dead end registers are
ejected to make room. If only one name is offered, the model is not asked.

A pass over the network has one prompt of each unfinished allocation.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import torch

from verilocc_bench.allocators.ejection import Ejection
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.decision_features import decision_order
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.views.training_turns import TrainingFormat

NEVER = -1e4
"""The score of a filler: low enough for a chance of 0, and finite so that sums stay finite."""


class Decision(NamedTuple):
    """The tokens of a prompt, one token for each offered name, and the index of the taken name.

    `taken` is -1 before the model has chosen.
    """

    prompt: tuple[int, ...]
    offered: tuple[int, ...]
    taken: int = -1


@dataclass(frozen=True, slots=True)
class Rollout:
    """One whole allocation. `decisions` are those that offered more than one name.

    `answer` is None if there were more dead ends than allowed.
    """

    decisions: tuple[Decision, ...]
    answer: NamedAssignment | None
    dead_ends: int


@dataclass(frozen=True, slots=True)
class Start:
    """A problem to allocate. A generator draws the names; without one the likeliest is taken."""

    problem: AllocationProblem
    generator: Random | None = None


class Encoder:
    """Turns prompts of `candidates` and register names into tokens."""

    def __init__(self, tokenizer: Any) -> None:
        end = tokenizer.eos_token_id
        self.padding: int = tokenizer.pad_token_id or 0
        self._codec = TokenCodec(
            tokenizer, frozenset(() if end is None else (end,)), None, "the tokenizer"
        )
        self.style = CANDIDATES
        self._format = TrainingFormat(CANDIDATES)

    def decision(self, prompt: str, names: Sequence[str]) -> Decision:
        """The prompt and the names in tokens. Raises InputError if a name has several tokens."""
        turn = self._format.turn(Turn(prompt, names[0]))
        return Decision(
            tuple(self._codec.prompt(turn.messages)), tuple(self._token(name) for name in names)
        )

    def _token(self, name: str) -> int:
        tokens = self._codec.piece(name)
        if len(tokens) != 1:
            raise InputError(
                f"the tokenizer cuts {name!r} into {len(tokens)} tokens; reinforcement needs one "
                "token for each register name, as the tokenizer 'decisions' has"
            )
        return tokens[0]


def roll_out(
    network: Any, encoder: Encoder, starts: Sequence[Start], most_dead_ends: int
) -> list[Rollout]:
    """One whole allocation for each start, in their order. No gradients are kept.

    The draws depend on a start's own generator and, through rounding alone, on
    the other starts in the same pass.
    """
    finished: dict[int, Rollout] = {}
    walks = {n: _walk(start.problem, encoder, most_dead_ends) for n, start in enumerate(starts)}
    asked: dict[int, Decision] = {}
    answers: dict[int, int | None] = dict.fromkeys(walks)
    while answers:
        for number, taken in answers.items():
            try:
                asked[number] = walks[number].send(taken)
            except StopIteration as stop:
                finished[number] = stop.value
                asked.pop(number, None)
        answers = {}
        if asked:
            with torch.no_grad():
                scores = offered_scores(network, list(asked.values()), encoder.padding).tolist()
            for (number, decision), row in zip(asked.items(), scores, strict=True):
                answers[number] = _choose(row[: len(decision.offered)], starts[number].generator)
    return [finished[number] for number in range(len(starts))]


def offered_scores(network: Any, decisions: Sequence[Decision], padding: int) -> Any:
    """Log-probabilities of the offered names, of shape (decisions, most names offered).

    Rows with fewer names are filled up with entries of probability 0.
    """
    width = max(len(decision.prompt) for decision in decisions)
    most = max(len(decision.offered) for decision in decisions)
    # Padding on the left: all prompts end in the last column, the only one that is scored.
    fill = [width - len(decision.prompt) for decision in decisions]
    ids = [[padding] * n + list(d.prompt) for n, d in zip(fill, decisions, strict=True)]
    real = [[0] * n + [1] * (width - n) for n in fill]
    names = [[*d.offered, *[-1] * (most - len(d.offered))] for d in decisions]
    mask = torch.tensor(real, device=network.device)
    offered = torch.tensor(names, device=network.device)
    output = network(
        input_ids=torch.tensor(ids, device=network.device),
        attention_mask=mask,
        position_ids=(mask.cumsum(dim=1) - 1).clamp(min=0),
        logits_to_keep=1,
        use_cache=False,
    )
    scores = output.logits[:, -1].float().gather(1, offered.clamp(min=0))
    return torch.log_softmax(scores.masked_fill(offered < 0, NEVER), dim=1)


def _choose(scores: Sequence[float], generator: Random | None) -> int:
    """The index of a name: drawn by log-probabilities, or else the first of the likeliest."""
    if generator is None:
        return scores.index(max(scores))
    return generator.choices(range(len(scores)), [math.exp(score) for score in scores])[0]


def _walk(
    problem: AllocationProblem, encoder: Encoder, most_dead_ends: int
) -> Generator[Decision, int | None, Rollout]:
    """One allocation. Yields a decision and is sent the index of the name that is taken."""
    viewer = encoder.style.make_viewer(problem)
    search = Ejection(RegisterState(problem), decision_order(problem))
    decisions: list[Decision] = []
    while (register := search.register) is not None:
        choices = search.choices()
        if not choices:
            if search.steps >= most_dead_ends or not search.eject():
                return Rollout(tuple(decisions), None, search.steps + 1)
            continue
        view = viewer(search.state, register, choices)
        assert view.names is not None
        taken = 0
        if len(view.names) > 1:
            prompt = "\n".join([viewer.query(search.state, register), *view.lines, ""])
            asked = encoder.decision(prompt, view.names)
            taken = (yield asked) or 0
            decisions.append(asked._replace(taken=taken))
        search.take(next(b for b, name in choices.items() if name == view.names[taken]))
    return Rollout(tuple(decisions), _answer(search.state), search.steps)


def _answer(state: RegisterState) -> NamedAssignment:
    classes, legal = state.problem.function.virtual_registers, state.problem.placements.legal
    return {f"%{number}": legal[classes[number]][b] for number, b in sorted(state.placed.items())}
