"""The allocator of models of the format `text-notes`, and the decoding of their windows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.generated import random_function
from tests.model.notes.test_reading import example
from tests.model.text_notes.speaker import read
from verilocc_bench.allocators import Assistance, FailureKind, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.model.notes.allocator import ASKED_AGAIN, NotesAllocator
from verilocc_bench.model.notes.files import load_network, notes_folder, save_network
from verilocc_bench.model.notes.teacher import teach_dry
from verilocc_bench.model.notes.text_teacher import TextTeacher
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.text_notes.ledger import empty_text_ledger
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy
from verilocc_bench.verification import Verifier

torch = pytest.importorskip("torch")

from verilocc_bench.model.notes import decoding  # noqa: E402
from verilocc_bench.model.notes.network import NotesConfiguration, NotesNetwork  # noqa: E402

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("text-notes")
    save_network(NotesNetwork(SMALL), made)
    return made


class TeachersWords:
    """Stands in for model.notes.decoding._pick: what the teacher says, window by window."""

    def __init__(self) -> None:
        self.numbers = {word: number for number, word in enumerate(text_vocabulary())}
        self.teachers: dict[int, TextTeacher] = {}

    def pick(self, scores: object, rows: Sequence[decoding._AnsweredRow]) -> list[int]:
        del scores
        return [self.numbers[self._word(row)] for row in rows]

    def _word(self, row: decoding._AnsweredRow) -> str:
        window = row.answer.window
        if isinstance(window, DryWindow):
            return teach_dry(window.noted, window.mentions[row.answer.said])
        if row.answer.said == 0:
            self.teachers[id(window)] = TextTeacher(window.prompt())
        fed = row.feeding if row.answer.said == 0 else row.feeding[1:]  # after its own word
        return self.teachers[id(window)].say(fed)


def test_a_network_that_knows_the_teachers_words_fills_the_notes_as_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = NotesNetwork(SMALL)
    monkeypatch.setattr(decoding, "_pick", TeachersWords().pick)
    finished = 0
    for seed in range(8):
        function = random_function(seed, target="gfx942", blocks=3)
        ledger = empty_text_ledger(function)
        for window in read(function, seed, ledger):
            answer = decoding.WindowAnswer(window, random.Random(0))
            decoding.answer_windows(network, [answer])
            if answer.error is not None:
                assert isinstance(answer.error, Contradiction)
                assert "finds no place" in str(answer.error)
                break
        else:
            finished += 1
            assert ledger.given
    assert finished > 2


def test_the_answers_of_a_whole_function_are_valid(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "_pick", TeachersWords().pick)
    allocator = NotesAllocator("taught", folder, LocalModelSettings())
    problem = AllocationProblem(example())
    assert Verifier(problem).verify(allocator.allocate(Request(problem))).valid


def test_a_model_that_has_not_learnt_fails_and_is_asked_again_where_checked(folder: Path) -> None:
    request = Request(AllocationProblem(example()))
    free = NotesAllocator("free", folder, LocalModelSettings())
    assert free.assistance is Assistance.TEXT
    assert free.prompt.format == "text-notes"
    ((_, response),) = free.respond([request])
    assert response.failure is FailureKind.UNPARSABLE
    assert response.details["asks"] == 1
    checked = NotesAllocator("checked", folder, LocalModelSettings(decoding=Decoding.CHECKED))
    ((_, response),) = checked.respond([request])
    assert response.details["asks"] == 1 + ASKED_AGAIN


def test_a_batch_gives_what_its_requests_give_alone(folder: Path) -> None:
    options = LocalModelSettings(batch_size=3, strategy=SamplingStrategy.RANDOM, temperature=0.7)
    allocator = NotesAllocator("m", folder, options)
    requests = [Request(AllocationProblem(example()), seed=seed) for seed in range(5)]
    together = dict(allocator.respond(requests))
    for place, each in enumerate(requests):
        ((_, alone),) = allocator.respond([each])
        assert (alone.message, alone.answer) == (together[place].message, together[place].answer)


def test_the_folder_says_its_format_and_another_is_refused(folder: Path) -> None:
    assert notes_folder(str(folder)) == folder
    with pytest.raises(InputError, match="knows the prompt format text-notes alone"):
        NotesAllocator("m", folder, LocalModelSettings(prompt_format="window"))
    text = (folder / "config.json").read_text()
    try:
        (folder / "config.json").write_text(text.replace('"words": ', '"words": 9'))
        with pytest.raises(InputError, match="of the format text-notes with"):
            load_network(folder)
    finally:
        (folder / "config.json").write_text(text)
