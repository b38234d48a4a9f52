"""Windows that are answered at once have the words of those that are answered word by word."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.generated import random_function
from tests.model.notes.test_shipped_notes import shipped, smallest
from verilocc_bench.allocators import Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.notes.allocator import NotesAllocator
from verilocc_bench.model.notes.attempt import NotesAttempt
from verilocc_bench.model.notes.files import load_network
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

torch = pytest.importorskip("torch")

from verilocc_bench.model.notes.network import NotesConfiguration, NotesNetwork  # noqa: E402
from verilocc_bench.model.notes.picking import drawn_words  # noqa: E402

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


def problems() -> list[AllocationProblem]:
    """Two kernels, and functions with loops."""
    made = [random_function(seed, target="gfx942", blocks=3) for seed in range(6)]
    kernels = [AllocationProblem.from_text(row.normalized) for row in smallest()[::3]]
    return [*kernels, *map(AllocationProblem, made)]


def answers(network: NotesNetwork, settings: LocalModelSettings) -> list[Response]:
    """The answers to all problems."""
    allocator = NotesAllocator.of_network("m", network, settings)
    requests = [Request(problem, seed=seed) for seed, problem in enumerate(problems())]
    found = dict(allocator.respond(requests))
    return [found[place] for place in range(len(requests))]


def same(one: Response, other: Response) -> bool:
    """Whether two are the same word for word, as far as a response tells."""
    probabilities = [each.details["log_probability"] for each in (one, other)]
    told = [{**each.details, "log_probability": 0} for each in (one, other)]
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-2)
    return (one.answer, one.failure, one.message, told[0]) == (
        other.answer,
        other.failure,
        other.message,
        told[1],
    )


def networks() -> Iterator[NotesNetwork]:
    yield load_network(shipped())[0]
    yield NotesNetwork(SMALL)


@pytest.mark.parametrize(
    ("decoding", "temperature"), [(Decoding.FREE, 0.0), (Decoding.CHECKED, 1.6)]
)
def test_drafts_change_no_word(
    decoding: Decoding, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LocalModelSettings(
        decoding=decoding, strategy=SamplingStrategy.RANDOM, temperature=temperature, batch_size=4
    )
    known = list(networks())
    at_once = [answers(network, settings) for network in known]
    monkeypatch.setattr(NotesAttempt, "drafts", lambda _: [])
    word_by_word = [answers(network, settings) for network in known]
    for some, others in zip(at_once, word_by_word, strict=True):
        assert all(map(same, some, others))
    assert any(each.answer is not None for each in at_once[0]) or temperature > 1
    assert all(each.answer is None for each in at_once[1])


def test_most_windows_of_a_trained_network_are_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from verilocc_bench.model.notes import decoding

    asked: list[int] = []
    plain = decoding.answer_windows

    def counted(network: NotesNetwork, some: list[decoding.WindowAnswer]) -> None:
        asked.append(len(some))
        plain(network, some)

    monkeypatch.setattr(decoding, "answer_windows", counted)
    network, _ = load_network(shipped())
    found = answers(network, LocalModelSettings(strategy=SamplingStrategy.GREEDY))
    windows = sum(each.details["asks"] for each in found)
    assert sum(asked) * 20 < windows


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
    assert drawn_words(scores, 0.7, chances).tolist() == drawn
