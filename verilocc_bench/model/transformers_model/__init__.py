"""Causal language models through transformers; the only package that may import torch.

Nothing heavy is imported before a model is asked for.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.model.shipped import gguf_file, is_gguf
from verilocc_bench.model.transformers_model.model_files import check_model_folder
from verilocc_bench.settings.language_model import Engine, LocalModelSettings

if TYPE_CHECKING:
    from verilocc_bench.model.advice import Advice
    from verilocc_bench.model.transformers_model.model import TransformersModel
    from verilocc_bench.model.transformers_model.token_codec import TokenCodec

__all__ = ["load_codec", "load_transformers_model"]


def load_transformers_model(name: str, settings: LocalModelSettings) -> TransformersModel:
    """The causal language model in a folder, or of that id on the Hub.

    Weights come from safetensors and GGUF files alone, and code from the model's
    folder runs only where `settings.trust_remote_code` says so. Raises
    InputError for a model that is not there or cannot be used, and
    MissingExtraError if torch or transformers is not installed.
    """
    _check(name, settings)
    if settings.engine is Engine.VLLM:
        from verilocc_bench.model.transformers_model.vllm_engine import VllmModel

        return VllmModel(name, settings)
    from verilocc_bench.model.transformers_model.loading import load_model

    return load_model(name, settings)


def load_codec(name: str, settings: LocalModelSettings) -> tuple[TokenCodec, int | None, Advice]:
    """A model's tokenizer, how many tokens it can see, and its advice; no weights are read."""
    _check(name, settings)
    from verilocc_bench.model.transformers_model.loading import load_tokens

    return load_tokens(name, settings)


def _check(name: str, settings: LocalModelSettings) -> None:
    needed = {"torch": "model", "transformers": "model"}
    if settings.engine is Engine.VLLM:
        needed["vllm"] = "vllm"
        if is_gguf(name) or settings.device is not None:
            message = "--engine vllm takes no file of GGUF, and CUDA_VISIBLE_DEVICES for --device"
            raise InputError(message, source=name)
    elif settings.tensor_parallel is not None:
        raise InputError("--tensor-parallel is for --engine vllm")
    if is_gguf(name):
        gguf_file(name)
        needed["gguf"] = "gguf"
    else:
        check_model_folder(name, settings.model_revision)
    for package, extra in needed.items():
        if find_spec(package) is None:
            raise MissingExtraError(package, extra, f"the language model {name!r}")
