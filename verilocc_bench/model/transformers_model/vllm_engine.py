"""Models that vLLM runs (`--engine vllm`): the prompts are the same, the batches are vLLM's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.advice import CONFIGURATION_KEY, Advice
from verilocc_bench.model.endpoint import server_seed
from verilocc_bench.model.transformers_model.loading import load_tokens
from verilocc_bench.model.transformers_model.model import TransformersModel
from verilocc_bench.model.transformers_model.model_files import find_model_folder
from verilocc_bench.model.transformers_model.utterance import Utterance
from verilocc_bench.settings.language_model import LocalModelSettings


class VllmModel(TransformersModel):
    """A model that says free words alone, each as soon as it is said.

    Raises InputError if vLLM cannot load it.
    """

    can_constrain = False

    def __init__(self, name: str, settings: LocalModelSettings) -> None:
        trust = settings.trust_remote_code
        folder, revision = find_model_folder(name, settings.model_revision, trust)
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # it logs where tables go
        vllm = import_module("vllm")
        try:
            engine = vllm.LLM(
                model=str(folder),
                dtype=settings.dtype,
                load_format="safetensors",
                tensor_parallel_size=settings.tensor_parallel or 1,
                trust_remote_code=trust,
            ).llm_engine
        except Exception as error:  # whatever its many parts raise
            words = " ".join(str(error).split())[:300]
            raise InputError(f"vLLM cannot load it: {words}", source=name) from error
        told = engine.model_config
        advice = Advice.from_json(getattr(told.hf_config, CONFIGURATION_KEY, None), name)
        # A place is left for the first token, as vLLM wants it.
        network: Any = SimpleNamespace(context=told.max_model_len - 1)
        super().__init__(network, load_tokens(name, settings)[0], revision, advice)
        self._engine, self._parameters = engine, vllm.SamplingParams

    @property
    def widest_batch(self) -> int:
        """More than vLLM works on at once: it keeps the rest waiting."""
        return 256

    def _speak(
        self, utterances: list[Utterance], tell_tokens: Callable[[int], object]
    ) -> Iterator[Utterance]:
        yield from (each for each in utterances if each.finish is not None)
        waiting = {str(place): each for place, each in enumerate(utterances) if not each.finish}
        for name, utterance in waiting.items():
            parameters = self._parameters(
                temperature=utterance.sampling.temperature,
                top_p=utterance.sampling.top_p,
                seed=server_seed(utterance.sampling.seed),
                max_tokens=utterance.room,
                stop_token_ids=sorted(self._codec.end_tokens),
                logprobs=0,
            )
            tokens = list(utterance.pending)
            self._engine.add_request(name, {"prompt_token_ids": tokens}, parameters)
        try:
            while waiting:
                for output in self._engine.step():
                    utterance, (said,) = waiting[output.request_id], output.outputs
                    new = said.token_ids[utterance.said :]
                    tell_tokens(len(new))
                    for token in new:
                        utterance.say(token, said.logprobs[utterance.said][token].logprob)
                    if output.finished:
                        utterance.stop()
                        yield waiting.pop(output.request_id)
        finally:
            self._engine.abort_request(list(waiting))
