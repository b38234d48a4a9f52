from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from verilocc_bench.allocators import FailureKind, Response
from verilocc_bench.model import priority
from verilocc_bench.model.language_model import (
    Alternative,
    Ask,
    Completion,
    Episode,
    Finish,
    Message,
    TokenSampling,
)
from verilocc_bench.model.priority import PrioritySearch

END = 0


@dataclass
class TableModel:
    """A model of a few tokens whose probabilities are a hash of everything before."""

    vocabulary: int = 4
    longest: int = 3
    asked: int = 0

    def weights(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        digest = hashlib.sha256(f"{prompt} {list(tokens)}".encode()).digest()
        weights = [1 + digest[token] ** 2 for token in range(self.vocabulary)]
        return [weight / sum(weights) for weight in weights]

    def complete(self, ask: Ask, how: TokenSampling) -> Completion:
        self.asked += 1
        prompt, tokens = ask.messages[0].content, list[int]()
        logs: list[float] = []
        others: list[tuple[Alternative, ...]] = []
        while len(tokens) < self.longest and (not tokens or tokens[-1] != END):
            weights = self.weights(prompt, tokens)
            best = max(range(self.vocabulary), key=lambda token: (weights[token], -token))
            forced = len(tokens) < len(how.forced)
            token = how.forced[len(tokens)] if forced else best
            ranked = sorted(range(self.vocabulary), key=lambda other: -weights[other])
            rest = [Alternative(o, math.log(weights[o])) for o in ranked if o != token]
            others.append(() if forced else tuple(rest[: how.alternatives]))
            logs.append(math.log(weights[token]))
            tokens.append(token)
        finish = Finish.STOP if tokens[-1] == END else Finish.LENGTH
        text = "".join(map(str, tokens))
        lists = (tuple(tokens), tuple(logs), tuple(others))
        return Completion(text, finish, 1, len(tokens), *lists)


def episode(asks: int = 2) -> Episode:
    """Asks for words, each question with all answers before it."""
    said: list[str] = []
    for _ in range(asks):
        said.append((yield Ask((Message("user", " ".join(said)),), 9)).text)
    return Response({"%0": " ".join(said)}, details={"own": 1})


def run(search: PrioritySearch, model: TableModel, rank: int) -> Response:
    conversation = search.sample(rank)
    try:
        question = next(conversation)
        while True:
            question = conversation.send(model.complete(*question[:2]))
    except StopIteration as end:
        response = end.value
        assert isinstance(response, Response)
        return response


Path = tuple[tuple[int, ...], ...]
"""The tokens of the completions of one episode, the last perhaps unfinished."""


def children(model: TableModel, path: Path, asks: int) -> list[tuple[float, Path]]:
    """Every next token after a path, with its probability there."""
    ended = not path or path[-1][-1] == END or len(path[-1]) == model.longest
    if ended and len(path) == asks:
        return []
    before, tokens = (path, ()) if ended else (path[:-1], path[-1])
    weights = model.weights(answer(before), tokens)
    return [(weight, (*before, (*tokens, token))) for token, weight in enumerate(weights)]


def by_brute_force(model: TableModel, asks: int) -> list[Path]:
    """All samples in order, by the definition, on the whole tree of what can be said."""
    nodes: dict[Path, float] = {(): 1.0}
    parents: dict[Path, Path] = {}
    for path in (queue := [()]):
        for weight, child in children(model, path, asks):
            nodes[child], parents[child] = nodes[path] * weight, path
            queue.append(child)
    explored: set[Path] = set()
    samples = []
    while len(explored) < len(nodes):
        unexplored = (n for n in nodes if n not in explored and parents.get(n, ()) in explored)
        path = max(unexplored, key=lambda node: nodes[node], default=())
        while True:
            explored.add(path)
            following = children(model, path, asks)
            if not following:
                break
            path = max(following, key=lambda child: child[0])[1]
        samples.append(path)
    return samples


def answer(path: Path) -> str:
    return " ".join("".join(map(str, tokens)) for tokens in path)


@pytest.mark.parametrize(
    ("vocabulary", "longest", "asks"), [(4, 3, 1), (3, 3, 2), (2, 2, 3), (5, 1, 3)]
)
def test_the_order_is_that_of_the_definition(vocabulary: int, longest: int, asks: int) -> None:
    model = TableModel(vocabulary, longest)
    expected = by_brute_force(model, asks)
    search = PrioritySearch(lambda: episode(asks))
    found = [run(search, model, rank) for rank in range(len(expected))]
    assert [response.answer for response in found] == [{"%0": answer(p)} for p in expected]
    assert len({answer(path) for path in expected}) == len(expected) > 20
    how = next(PrioritySearch(episode).sample(0))[1]
    assert how == TokenSampling(0, temperature=0.0, alternatives=priority.ALTERNATIVES)
    over = run(search, model, len(expected))
    assert (over.failure, over.message) == (FailureKind.NO_ANSWER, "no further unique sample")


def test_the_first_is_greedy_and_its_figures_are_its_own() -> None:
    model = TableModel()
    search = PrioritySearch(episode)
    first = run(search, model, 0)
    path: Path = ()
    total = 0.0
    while following := children(model, path, 2):
        weight, path = max(following)
        total += math.log(weight)
    assert first.answer == {"%0": answer(path)}
    assert first.details["log_probability"] == pytest.approx(total, abs=1e-6)
    assert first.details["asks"] == 2
    assert first.details["own"] == 1
    assert first.details["completion_tokens"] == sum(map(len, path))


def test_samples_can_be_asked_for_in_any_order() -> None:
    model = TableModel()
    one, other = PrioritySearch(episode), PrioritySearch(episode)
    in_order = [run(one, model, rank) for rank in range(12)]
    asked = model.asked
    assert run(other, model, 11) == in_order[11]
    assert [run(other, model, rank) for rank in range(12)] == in_order
    assert model.asked == 2 * asked  # and none of them twice


def test_what_is_before_a_branch_is_not_asked_again() -> None:
    model = TableModel(longest=2)
    search = PrioritySearch(lambda: episode(3))
    for rank in range(40):
        run(search, model, rank)
    assert model.asked < 3 * 40


def test_an_interrupted_sample_is_found_again() -> None:
    model = TableModel()
    whole, search = PrioritySearch(episode), PrioritySearch(episode)
    expected = [run(whole, model, rank) for rank in range(6)]
    for rank in range(6):
        conversation = search.sample(rank)
        question = next(conversation)
        if rank in {0, 3}:
            conversation.send(model.complete(*question[:2]))
        conversation.close()
        assert run(search, model, rank) == expected[rank]


def test_a_crash_is_a_sample() -> None:
    def crashing() -> Episode:
        said = (yield Ask((Message("user", ""),), 9)).text
        if said.startswith("1"):
            raise ValueError(f"cannot read {said}")
        return Response({"%0": said})

    model = TableModel(3, 2)
    search = PrioritySearch(crashing)
    found = [run(search, model, rank) for rank in range(7)]
    crashes = [response for response in found if response.failure is FailureKind.CRASHED]
    assert len(crashes) == 3  # 10, 11, 12
    assert all(str(r.message).startswith("ValueError: cannot read 1") for r in crashes)
    assert len({str(response.answer) for response in found}) == 5


def test_few_open_branches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search keeps the likeliest, which is all that so many samples can need."""
    model = TableModel(5, 3)
    whole = PrioritySearch(episode)
    expected = [run(whole, model, rank) for rank in range(8)]
    monkeypatch.setattr(priority, "OPEN_BRANCHES", 8)
    search = PrioritySearch(episode)
    assert [run(search, model, rank) for rank in range(8)] == expected
    assert len(search._open) <= 16
