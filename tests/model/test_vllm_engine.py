"""`--engine vllm`, with a module in vLLM's place that says what transformers said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.model.tiny_models import PROMPTS, ask, complete, load, save_model
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.evaluation import resolve_model
from verilocc_bench.model.language_model import Finish, TokenSampling
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import Engine, LocalModelSettings

pytestmark = pytest.mark.slow

CONTEXT, TOKENS = 64, 24
ASKS = [ask(prompt, TOKENS) for prompt in PROMPTS]
GREEDY = [TokenSampling(2**40, temperature=0.0)] * len(ASKS)


class Pretended:
    """Enough of vLLM and its engine: two more tokens for each request a step."""

    __spec__ = SimpleNamespace()
    SamplingParams = SimpleNamespace
    model_config = SimpleNamespace(max_model_len=CONTEXT + 1, hf_config=None)

    def __init__(self, folder: Path) -> None:
        model = load(folder)
        self.asked: dict[str, Any] = {}
        self.requests: dict[str, Any] = {}
        self.whole = complete(model, ASKS, GREEDY)
        self.known = {
            tuple(model._codec.prompt(each.messages)): said
            for each, said in zip(ASKS, self.whole, strict=True)
        }
        self.llm_engine = self

    def LLM(self, **arguments: Any) -> Any:  # noqa: N802  its name there
        if arguments["tensor_parallel_size"] > 2:
            raise RuntimeError("two GPUs, not more")
        self.asked = arguments
        return self

    def add_request(self, name: str, prompt: dict[str, list[int]], how: Any) -> None:
        said = self.known[tuple(prompt["prompt_token_ids"])]
        assert 0 < how.max_tokens <= TOKENS
        assert len(prompt["prompt_token_ids"]) + how.max_tokens <= CONTEXT + 1
        assert (how.temperature, how.seed < 2**31) == (0.0, True)
        self.requests[name] = (said, 0)

    def step(self) -> Iterator[Any]:
        for name, (said, before) in list(self.requests.items()):
            count = min(before + 2, len(said.tokens))
            logs = zip(said.tokens, said.log_probabilities, strict=True)
            output = SimpleNamespace(
                token_ids=list(said.tokens[:count]),
                logprobs=[{token: SimpleNamespace(logprob=log)} for token, log in logs],
            )
            self.requests[name] = (said, count)
            finished = count == len(said.tokens)
            if finished:
                del self.requests[name]
            yield SimpleNamespace(request_id=name, outputs=[output], finished=finished)

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            del self.requests[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("vllm") / "model", context=CONTEXT)


def test_it_says_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = Pretended(folder)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    model = load(folder, device=None, engine=Engine.VLLM, tensor_parallel=2)
    assert (vllm.asked["tensor_parallel_size"], vllm.asked["load_format"]) == (2, "safetensors")
    kept: dict[int, Any] = {}
    told: list[int] = []
    found = dict(model.completions(ASKS, GREEDY, told.append, kept.__setitem__))
    assert [found[place] for place in range(len(ASKS))] == vllm.whole
    assert kept == found
    assert {each.finish for each in vllm.whole} >= {Finish.LENGTH, Finish.CONTEXT}
    assert sum(told) == sum(each.completion_tokens for each in vllm.whole)
    asked = model.completions(ASKS, GREEDY)
    next(iter(asked))
    next(iter(asked))
    asked.close()
    assert not vllm.requests


def test_what_it_cannot_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: type[InputError], words: str, name: str = str(folder), **more: Any) -> None:
        settings = LocalModelSettings(**{"engine": Engine.VLLM, **more})
        with pytest.raises(kind, match=words):
            resolve_model(name, settings)

    monkeypatch.setitem(sys.modules, "vllm", None)
    refused(MissingExtraError, r"verilocc-bench\[vllm\]")
    monkeypatch.setitem(sys.modules, "vllm", Pretended(folder))
    refused(InputError, "two GPUs, not more", tensor_parallel=3)
    refused(InputError, "CUDA_VISIBLE_DEVICES", device="cpu")
    refused(InputError, "GGUF", name="smollm2")
    refused(InputError, "--engine means nothing", name="reference")
    refused(InputError, "is for --engine vllm", engine=None, tensor_parallel=2)
    refused(InputError, "cannot be constrained", decoding=Decoding.CONSTRAINED)
