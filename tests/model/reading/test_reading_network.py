"""The base with a change, as the allocator reads with it and as it was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file

import verilocc_bench as vb
from benchmarks.reading_model import adapter
from benchmarks.reading_model.network import SHAPES, VOCABULARY, Memory, Reader, use_attention
from tests.command_line import CommandLine
from verilocc_bench.allocators import Assistance, FailureKind, Request
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.model.reading import reading_network
from verilocc_bench.model.reading.reading_allocator import ReadingAllocator, registers_of
from verilocc_bench.model.reading.talk import WrongWord
from verilocc_bench.model.transcripts import read_transcripts
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

SHAPE = SHAPES["tiny"]
SETTINGS = LocalModelSettings()


def base_model() -> Any:
    torch.manual_seed(1)
    configuration = transformers.LlamaConfig(
        vocab_size=50, hidden_size=SHAPE.width, intermediate_size=SHAPE.inner,
        num_hidden_layers=SHAPE.layers, num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.pairs, rms_norm_eps=1e-5, tie_word_embeddings=True,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(configuration)


def matrices(model: Any) -> dict[str, Any]:
    """By kind, as the training has them."""
    return {
        kind: torch.stack(
            [
                torch.cat([layer.get_submodule(name).weight.detach() for name in names])
                for layer in model.model.layers
            ]
        )
        for kind, names in reading_network.MATRICES.items()
    }


@pytest.fixture(scope="module")
def change(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("change") / "adapter.safetensors"
    torch.manual_seed(2)
    masters = adapter.random_masters(matrices(base_model()), VOCABULARY)
    masters["norms"] += torch.rand(masters["norms"].shape)
    adapter.save(masters, path)
    return path


def network_of(change: Path) -> reading_network.ReadingNetwork:
    module = reading_network.with_change(base_model(), load_file(change))
    return reading_network.ReadingNetwork(module, torch.device("cpu"))


def test_it_reads_as_the_network_that_was_trained(
    change: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_network, "LEAST_ROOM", 16)  # it becomes larger on the way
    use_attention("any")
    state = adapter.merged(matrices(base_model()), adapter.load(change))
    reader = Reader(SHAPE)
    reader.load_state_dict(state)
    words = torch.randint(VOCABULARY, (90,))
    with torch.no_grad():
        expected = reader(words[None])[0].argmax(-1).tolist()
    network, memory = network_of(change), Memory(reader, 128)
    found: dict[int, int] = {}
    # Read in parts, and a part once more after others that stood in its place.
    for start, end, wrong in ((0, 40, 0), (40, 60, 7), (40, 60, 0), (60, 61, 0), (61, 90, 0)):
        part = (words[start:end] + wrong) % VOCABULARY
        said = network.read(part.tolist(), start)
        assert said == memory.read(part, start).tolist()
        found |= dict(enumerate(said, start))
    assert list(found.values()) == expected
    network.begin()
    assert network.read(words.tolist(), 0) == expected
    drawn = [network.read(words.tolist(), 0, reading_network.chance(2.0, 3)) for _ in range(2)]
    assert drawn[0] == drawn[1] != expected


@pytest.mark.parametrize(("unit", "dtype"), [(True, "bfloat16"), (False, "float32")])
def test_the_dtype_auto_is_what_the_processor_multiplies(
    change: Path, monkeypatch: pytest.MonkeyPatch, unit: bool, dtype: str
) -> None:
    monkeypatch.setattr(reading_network, "has_matrix_unit", lambda: unit)
    monkeypatch.setattr(
        reading_network, "load_module", lambda _, s: base_model().to(getattr(torch, s.dtype))
    )
    allocator = ReadingAllocator("m", change.parent, SETTINGS)
    assert allocator.settings.dtype == dtype


def test_what_has_not_learnt_is_wrong(change: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_network, "load_network", lambda *_: network_of(change))
    allocator = ReadingAllocator("m", change.parent, SETTINGS)
    assert (allocator.assistance, allocator.prompt.format) == (Assistance.TEXT, "reading")
    assert len(allocator.revision) == len(allocator.prompt.hash) == 64
    (problem,) = vb.load_problems("mini", arch="gfx90a", limit=1)
    ((_, response),) = allocator.respond([Request(problem)])
    assert response.failure is FailureKind.UNPARSABLE
    assert "as an answer to" in (response.message or "")
    assert response.details["asks"] == 1
    with pytest.raises(WrongWord, match="of a file that the target lacks"):
        registers_of({"registers": {"v": "v"}}, {1: "u0"})


def test_what_it_is_shown_and_says_is_kept(
    change: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: CommandLine
) -> None:
    monkeypatch.setattr(reading_network, "load_network", lambda *_: network_of(change))
    asked = ("evaluate", "--model", "reference-llm", "--limit", "1", "--arch", "gfx90a")
    run(*asked, "--family", "gemm", "--output-path", str(tmp_path))
    (((_, kernel, _), (said,)),) = read_transcripts(tmp_path).items()
    assert run("prompt", kernel, "--model", "reference-llm").out.splitlines()[0] == said.prompt
    (shown, answer) = said.completion.split(" => ")
    assert said.message == f"{answer.split()[-1]} as an answer to {shown}"
    assert said.tokens_out == len(answer.split())
    assert said.completion in run("failures", str(tmp_path), "--id", kernel).out


@pytest.mark.parametrize(
    "options",
    [
        LocalModelSettings(decoding=Decoding.CONSTRAINED),
        LocalModelSettings(prompt_format="window"),
        LocalModelSettings(strategy=SamplingStrategy.PRIORITY),
        LocalModelSettings(feedback=FeedbackKind.REPAIR),
        LocalModelSettings(few_shot=2),
    ],
)
def test_options_that_mean_nothing_are_refused(options: LocalModelSettings) -> None:
    with pytest.raises(InputError):
        resolve_model("reference-llm", options, 1)


def test_a_file_of_another_form_is_refused(
    change: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_network, "load_module", lambda *_: base_model())
    parts = load_file(change)
    cut = parts | {"o.in:coded": parts["o.in:coded"][:9]}
    # With these scales the words would be a matrix of gigabytes.
    wide = parts | {"words:shape": torch.tensor([1, VOCABULARY * SHAPE.width])}
    few = wide | {"words:scale": parts["words:scale"][:1].clone()}
    wrongs = {"words:coded": {"norms": parts["norms"]}, "decompressing": cut, "expand": wide}
    for reason, wrong in (wrongs | {"1 words of": few}).items():
        save_file(wrong, tmp_path / "adapter.safetensors")
        with pytest.raises(InputError, match=f"no change of smollm2: .*{reason}"):
            reading_network.load_network(tmp_path / "adapter.safetensors", SETTINGS)
