"""The allocator of models that keep notes, and the decoding of their windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.notes.test_mentions import example
from tests.model.scripted import TINY
from verilocc_bench.allocators import Assistance, FailureKind, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.notes.notes_allocator import ASKED_AGAIN, NotesAllocator
from verilocc_bench.model.notes.notes_files import notes_folder, save_network
from verilocc_bench.model.notes.notes_network import (
    NotesConfiguration,
    NotesNetwork,
)
from verilocc_bench.model.notes.notes_words import vocabulary
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("notes")
    save_network(NotesNetwork(SMALL), made)
    return made


def test_a_model_that_has_not_learnt_fails_and_is_asked_again_where_checked(folder: Path) -> None:
    request = Request(AllocationProblem(example()))
    free = NotesAllocator("free", folder, LocalModelSettings())
    assert free.assistance is Assistance.INTERVALS
    assert free.prompt.format == "text-notes"
    assert len(free.prompt.hash) == 64
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


def test_classes_without_words_have_no_answer(folder: Path) -> None:
    allocator = NotesAllocator("m", folder, LocalModelSettings())
    text = TINY.replace("S2 2 s/2 vcc/2", "C2 2 vcc/2").replace(":S2", ":C2")
    lines = text.splitlines(keepends=True)
    lines[5], lines[6] = sorted((lines[5], lines[6]))
    problem = AllocationProblem.from_text("".join(lines))
    ((_, response),) = allocator.respond([Request(problem)])
    assert response.failure is FailureKind.NO_ANSWER
    assert "no word for class" in (response.message or "")


@pytest.mark.parametrize(
    "options",
    [
        LocalModelSettings(decoding=Decoding.CONSTRAINED),
        LocalModelSettings(prompt_format="window"),
        LocalModelSettings(strategy=SamplingStrategy.PRIORITY),
        LocalModelSettings(few_shot=2),
        LocalModelSettings(batch_size=-1),
        LocalModelSettings(temperature=-1),
    ],
)
def test_options_that_mean_nothing_are_refused(folder: Path, options: LocalModelSettings) -> None:
    with pytest.raises(InputError):
        resolve_model(str(folder), options, 1)


def test_only_models_that_keep_notes_can_be_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checked"):
        resolve_model("linear-scan", AllocatorSettings(decoding=Decoding.CHECKED), 1)
    checked = LocalModelSettings(prompt_format="window", decoding=Decoding.CHECKED)
    with pytest.raises(InputError, match="checked"):
        resolve_model(str(tmp_path), checked, 1)


def test_a_folder_of_another_version_is_refused(folder: Path, tmp_path: Path) -> None:
    text = (folder / "config.json").read_text()
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    for wrong, message in (
        (text.replace('"format_version": 2', '"format_version": 99'), "expected version 2"),
        (text.replace('"hidden": 16', '"hidden": 8'), "do not fit"),
        (text.replace('"layers"', '"storeys"'), "network: expected"),
    ):
        (tmp_path / "config.json").write_text(wrong)
        with pytest.raises(InputError, match=message):
            NotesAllocator("m", tmp_path, LocalModelSettings())
    with pytest.raises(InputError, match="knows the prompt format text-notes alone"):
        NotesAllocator("m", folder, LocalModelSettings(prompt_format="window"))
    (tmp_path / "config.json").write_text("{}")
    assert notes_folder(str(tmp_path)) is None
    assert notes_folder(str(folder)) == folder


def test_each_word_has_a_vector_of_its_own() -> None:
    vectors = NotesNetwork(SMALL).vectors()
    assert len({tuple(vector.tolist()) for vector in vectors}) == len(vocabulary())


def test_the_split_track_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--model", str(folder), "--dataset", "mini", "--track", "split"]
    assert main(command) == 2
    assert "does not answer the track 'split'" in capsys.readouterr().err
