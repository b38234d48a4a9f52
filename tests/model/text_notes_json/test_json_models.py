"""The format `text-notes-json` with models: behind an endpoint, and of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.model.http_server import Asked, FakeServer, Say, chat_reply
from tests.model.notes.test_reading import example
from tests.model.text_notes_json.teacher import answer
from verilocc_bench.allocators import Assistance, Example, FailureKind, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models.resolve import resolve_model
from verilocc_bench.model.allocator import LanguageModelAllocator, language_model_allocator
from verilocc_bench.model.prompts.text_notes_json.text_format import ASKED_AGAIN
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import (
    EndpointSettings,
    LocalModelSettings,
    SamplingStrategy,
)
from verilocc_bench.verification import Verifier

OPTIONS = EndpointSettings(
    model_name="teacher", prompt_format="text-notes-json", time_limit_seconds=20, concurrency=4
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """Plays the teacher, who has read the last message alone."""
    for name in ("VERILOCC_BENCH_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)

    def say(asked: Asked) -> Say:
        return chat_reply(answer(asked.body["messages"][-1]["content"]))

    with ExitStack() as stack:
        yield stack.enter_context(FakeServer(say).running())


def small_rows() -> list[Row]:
    """The smallest kernels of each architecture that the rule has an answer for."""
    rows = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
    return [
        next(row for row in rows if row.arch == arch and row.family == "mha")
        for arch in ("gfx90a", "gfx942", "sm_80")
    ]


def test_right_answers_go_through_whole_kernels_of_all_architectures(server: FakeServer) -> None:
    problems = [AllocationProblem.from_text(row.normalized) for row in small_rows()]
    allocator = resolve_model(server.address, OPTIONS)
    with closing(allocator):
        responses = dict(allocator.respond([Request(problem) for problem in problems]))
    for place, problem in enumerate(problems):
        found = responses[place].answer
        assert found is not None
        assert Verifier(problem).verify(found).valid
    asked = [each for each in server.asked if each.method == "POST"]
    assert {len(each.body["messages"]) for each in asked} == {2}


def test_examples_are_turns_of_the_conversation(server: FakeServer) -> None:
    row = small_rows()[0]
    problem = AllocationProblem.from_text(row.normalized)
    allocator = resolve_model(server.address, replace(OPTIONS, few_shot=1))
    request = Request(problem, examples=(Example(row.normalized, row.label or {}),))
    with closing(allocator):
        assert Verifier(problem).verify(allocator.allocate(request)).valid
    first = next(each for each in server.asked if each.method == "POST").body["messages"]
    assert [each["role"] for each in first][:3] == ["system", "user", "assistant"]
    assert answer(first[1]["content"]) == first[2]["content"]


def test_the_split_track_is_refused_by_name(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "--model", server.address, "--model-name", "x", "--dataset", "mini"]
    assert main([*command, "--prompt-format", "text-notes-json", "--track", "split"]) == 2
    assert "does not answer the track 'split'" in capsys.readouterr().err


def test_settings_are_refused_before_anything_is_asked(server: FakeServer) -> None:
    with pytest.raises(InputError, match="'text-notes-json' is free, checked or guided"):
        resolve_model(server.address, replace(OPTIONS, decoding=Decoding.CONSTRAINED))
    with pytest.raises(InputError, match="'text-notes-json' asks any language model"):
        resolve_model(server.address, replace(OPTIONS, prompt_format="text-notes"))
    checked = resolve_model(server.address, replace(OPTIONS, decoding=Decoding.CHECKED))
    assert isinstance(checked, LanguageModelAllocator)
    assert not [each for each in server.asked if each.method == "POST"]


@pytest.mark.slow
def test_a_transformers_model_is_asked_for_windows(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.model.tiny_models import save_model

    options = LocalModelSettings(
        prompt_format="text-notes-json",
        decoding=Decoding.CHECKED,
        strategy=SamplingStrategy.GREEDY,
        maximum_tokens=4,
        dtype="float32",
    )
    folder = save_model(tmp_path, context=8192)
    allocator = language_model_allocator(str(folder), options)
    assert allocator.assistance is Assistance.TEXT
    assert allocator.prompt.format == "text-notes-json"
    ((_, response),) = allocator.respond([Request(AllocationProblem(example()))])
    assert response.failure is FailureKind.UNPARSABLE
    assert response.details["asked_again"] == ASKED_AGAIN
    assert response.details["asks"] == 1 + ASKED_AGAIN
