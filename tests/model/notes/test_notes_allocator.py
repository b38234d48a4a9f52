"""The allocator of models that keep notes, and the decoding of their windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.notes.test_reading import EXAMPLE
from verilocc_bench.allocators import FailureKind, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.notes.allocator import NotesAllocator
from verilocc_bench.model.notes.files import notes_folder, save_network
from verilocc_bench.model.prompts.notes.words import PAD
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

torch = pytest.importorskip("torch")

from verilocc_bench.model.notes.network import (  # noqa: E402
    Cache,
    NotesConfiguration,
    NotesNetwork,
)

pytestmark = pytest.mark.slow

SMALL = NotesConfiguration(hidden=16, layers=2, heads=2, head_width=8, feed_forward=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("notes")
    save_network(NotesNetwork(SMALL), made)
    return made


def test_a_step_gives_what_the_whole_sequence_gives() -> None:
    network, generator = NotesNetwork(SMALL), torch.Generator().manual_seed(1)
    for parameter in network.parameters():  # so that every part counts
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
    words = torch.randint(1, len(text_vocabulary()), (3, 40), generator=generator)
    lengths = torch.tensor([2, 17, 9])
    with torch.inference_mode():
        vectors = network.vectors()
        whole = network.scores(network(words), vectors)
        cache = Cache(SMALL, 3, 17)
        prompt = words[:, :17].clone()
        for row, length in enumerate(lengths):
            prompt[row, length:] = text_vocabulary().index(PAD)
        network(prompt, cache, lengths)
        done = lengths.clone()
        for step in range(8):
            counts = torch.tensor([1 + step % 3, 1 + (step + 1) % 3, 2])
            fed = torch.zeros(3, 3, dtype=torch.long)
            for row in range(3):
                fed[row, : counts[row]] = words[row, done[row] : done[row] + counts[row]]
            scores = network.step(fed, counts, cache, vectors)
            done += counts
            assert torch.allclose(scores, whole[torch.arange(3), done - 1], atol=1e-4)
        cache.keep([0, 2])
        scores = network.step(
            words[[0, 2], done[[0, 2]]][:, None], counts[:2] * 0 + 1, cache, vectors
        )
        assert torch.allclose(scores, whole[[0, 2], done[[0, 2]]], atol=1e-4)


def test_classes_without_words_have_no_answer(folder: Path) -> None:
    allocator = NotesAllocator("m", folder, LocalModelSettings())
    text = EXAMPLE.replace("S2 2 s/2 vcc/2", "C2 2 vcc/2").replace(":S2", ":C2")
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
        LocalModelSettings(batch_size=0),
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
    (tmp_path / "config.json").write_text("{}")
    assert notes_folder(str(tmp_path)) is None


def test_each_word_has_a_vector_of_its_own() -> None:
    vectors = NotesNetwork(SMALL).vectors()
    assert len({tuple(vector.tolist()) for vector in vectors}) == len(text_vocabulary())


def test_the_split_track_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--model", str(folder), "--dataset", "mini", "--track", "split"]
    assert main(command) == 2
    assert "does not answer the track 'split'" in capsys.readouterr().err
