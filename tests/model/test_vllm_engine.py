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
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import resolve_model
from verilocc_bench.model.language_model import Finish, TokenSampling
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import Engine, LocalModelSettings

pytestmark = pytest.mark.slow

CONTEXT, TOKENS = 64, 24
ASKS = [ask(prompt, TOKENS) for prompt in PROMPTS]
GREEDY = [TokenSampling(2**40, temperature=0.0)] * len(ASKS)


class Pretended(SimpleNamespace):
    """Enough of vLLM and its engine: two more tokens for each request a step."""

    def LLM(self, **arguments: Any) -> Any:  # noqa: N802  its name there
        if (arguments["tensor_parallel_size"], arguments["load_format"]) != (2, "safetensors"):
            raise RuntimeError("two GPUs, not more")
        return SimpleNamespace(llm_engine=self)

    def add_request(self, name: str, prompt: dict[str, list[int]], how: Any) -> None:
        assert 0 < how.max_tokens <= min(TOKENS, CONTEXT + 1 - len(prompt["prompt_token_ids"]))
        assert (how.temperature, how.seed < 2**31) == (0.0, True)
        self.requests[name] = (self.known[tuple(prompt["prompt_token_ids"])], 2)

    def step(self) -> Iterator[Any]:
        for name, (said, count) in list(self.requests.items()):
            logs = zip(said.tokens, said.log_probabilities, strict=True)
            output = SimpleNamespace(
                token_ids=list(said.tokens[:count]),
                logprobs=[{token: SimpleNamespace(logprob=log)} for token, log in logs],
            )
            finished = count >= len(said.tokens)
            self.requests[name] = (said, count + 2)
            if finished:
                del self.requests[name]
            yield SimpleNamespace(request_id=name, outputs=[output], finished=finished)

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            del self.requests[name]


def test_it_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_model(tmp_path / "model", context=CONTEXT)
    transformers = load(folder)
    whole = complete(transformers, ASKS, GREEDY)
    prompts = [tuple(transformers._codec.prompt(each.messages)) for each in ASKS]
    told = SimpleNamespace(max_model_len=CONTEXT + 1, hf_config=None)
    vllm = Pretended(requests={}, SamplingParams=SimpleNamespace, model_config=told)
    vllm.known, vllm.__spec__ = dict(zip(prompts, whole, strict=True)), SimpleNamespace()

    def refused(words: str, name: str = str(folder), **more: Any) -> None:
        settings = LocalModelSettings(**{"engine": Engine.VLLM, "tensor_parallel": 2, **more})
        with pytest.raises(InputError, match=words):
            resolve_model(name, settings)

    monkeypatch.setitem(sys.modules, "vllm", None)
    refused(r"verilocc-bench\[vllm\]")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    refused("two GPUs, not more", tensor_parallel=3)
    refused("CUDA_VISIBLE_DEVICES", device="cpu")
    refused("GGUF", name="smollm2")
    refused("--engine means nothing", name="reference-llm")
    refused("is for --engine vllm", engine=None)
    refused("cannot be constrained", decoding=Decoding.CONSTRAINED)

    model = load(folder, device=None, engine=Engine.VLLM, tensor_parallel=2)
    kept: dict[int, Any] = {}
    counts: list[int] = []
    found = dict(model.completions(ASKS, GREEDY, counts.append, kept.__setitem__))
    assert [found[place] for place in range(len(ASKS))] == whole
    assert kept == found
    assert {each.finish for each in whole} >= {Finish.LENGTH, Finish.CONTEXT}
    assert sum(counts) == sum(each.completion_tokens for each in whole)
    asked = model.completions(ASKS, GREEDY)
    assert [next(asked)[0] for _ in range(2)]
    asked.close()
    assert not vllm.requests
