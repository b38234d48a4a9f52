"""Windows that are answered at once have the words of those that are answered word by word."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from tests.generated import random_function
from tests.model.notes.test_shipped_notes import shipped, smallest
from verilocc_bench.allocators import Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.notes import drafts as drafting
from verilocc_bench.model.notes.notes_allocator import NotesAllocator
from verilocc_bench.model.notes.notes_files import load_network
from verilocc_bench.model.notes.notes_network import NotesConfiguration, NotesNetwork
from verilocc_bench.model.notes.notes_words import vocabulary
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


def functions() -> list[AllocationProblem]:
    """Functions with loops."""
    return [
        AllocationProblem(random_function(seed, target="gfx942", blocks=3)) for seed in range(6)
    ]


def answers(
    network: NotesNetwork, settings: LocalModelSettings, problems: Sequence[AllocationProblem]
) -> list[Response]:
    """The answers to some problems."""
    allocator = NotesAllocator.of_network("m", network, settings)
    requests = [Request(problem, seed=seed) for seed, problem in enumerate(problems)]
    found = dict(allocator.respond(requests))
    return [found[place] for place in range(len(requests))]


def same(one: Response, other: Response) -> bool:
    """Whether two are the same word for word, as far as a response tells."""
    told = [{**each.details, "log_probability": 0} for each in (one, other)]
    return (one.answer, one.failure, one.message, told[0]) == (
        other.answer,
        other.failure,
        other.message,
        told[1],
    )


def word_by_word(
    network: NotesNetwork, drafts: Sequence[drafting.Draft], temperature: float
) -> None:
    """Says one word of each draft that is not known yet, as a network without drafts does."""
    words = vocabulary()
    for draft in (each for each in drafts if each.said):
        draft.own = draft.said[: draft.known]
        if draft.known < len(draft.said):
            place = draft.places[draft.known]
            with torch.inference_mode():
                states = network(torch.tensor([draft.tokens[:place]]))
                scores = network.scores(states[:, -1], network.vectors())
            if temperature > 0:
                chance = draft.chances[draft.known : draft.known + 1]
                draft.own.append(words[int(drafting.drawn_words(scores, temperature, chance))])
            else:
                draft.own.append(words[int(scores.argmax())])


@pytest.mark.parametrize(
    ("decoding", "temperature"), [(Decoding.FREE, 0.0), (Decoding.CHECKED, 1.6)]
)
def test_drafts_change_no_word(
    decoding: Decoding, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LocalModelSettings(
        decoding=decoding, strategy=SamplingStrategy.RANDOM, temperature=temperature, batch_size=4
    )
    known = [load_network(shipped())[0], NotesNetwork(SMALL)]
    at_once = [answers(network, settings, functions()) for network in known]
    monkeypatch.setattr(drafting, "judge_drafts", word_by_word)
    alone = [answers(network, settings, functions()) for network in known]
    for some, others in zip(at_once, alone, strict=True):
        assert all(map(same, some, others))
    assert any(each.answer is not None for each in at_once[0]) or temperature > 1
    assert all(each.answer is None for each in at_once[1])


def test_most_windows_of_a_trained_network_are_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[drafting.Draft] = []
    plain = drafting.judge_drafts

    def kept(network: NotesNetwork, some: Sequence[drafting.Draft], temperature: float) -> None:
        plain(network, some, temperature)
        judged.extend(some)

    monkeypatch.setattr(drafting, "judge_drafts", kept)
    network, _ = load_network(shipped())
    kernel = AllocationProblem.from_text(smallest()[0].normalized)
    found = answers(network, LocalModelSettings(strategy=SamplingStrategy.GREEDY), [kernel])
    windows = sum(each.details["asks"] for each in found)
    assert sum(not draft.agreed for draft in judged) * 20 < windows


def test_the_scores_after_some_places_are_those_of_the_whole_sequence() -> None:
    network = NotesNetwork(SMALL)
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(1, 100, (3, 20), generator=generator)
    rows, places = torch.tensor([0, 0, 2, 1]), torch.tensor([3, 19, 0, 7])
    with torch.inference_mode():
        vectors = network.vectors()
        whole = network.scores(network(words), vectors)
        assert torch.allclose(
            network.scores_after(words, rows, places, vectors), whole[rows, places], atol=1e-5
        )


def test_a_word_is_drawn_as_random_draws_it() -> None:
    scores = torch.randn(50, 30, generator=torch.Generator().manual_seed(2))
    weights = (scores / 0.7).softmax(-1).tolist()
    drawn = [random.Random(seed).choices(range(30), each)[0] for seed, each in enumerate(weights)]
    chances = [random.Random(seed).random() for seed in range(50)]
    assert drafting.drawn_words(scores, 0.7, chances).tolist() == drawn
