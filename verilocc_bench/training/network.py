"""Loads the network and tokenizer of a recipe, and writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.model.advice import CONFIGURATION_KEY, Advice
from verilocc_bench.model.transformers_model.loading import load_parts
from verilocc_bench.settings.language_model import SamplingStrategy
from verilocc_bench.training.recipe import LowRank, ModelRecipe


def begin(recipe: ModelRecipe) -> tuple[Any, Any]:
    """The network and its tokenizer, with low-rank layers if the recipe asks for them.

    Raises InputError for a model that cannot be loaded.
    """
    network, tokenizer = load_parts(recipe.pretrained, recipe.revision)
    rows = network.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} tokens, but the model knows {rows}",
            source=recipe.pretrained,
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return (network if recipe.lora is None else _low_rank(network, recipe.lora)), tokenizer


def merge(network: Any) -> Any:
    """The network with low-rank changes added to its weights, so that any program can load it."""
    return network.merge_and_unload() if hasattr(network, "merge_and_unload") else network


def write_model(
    network: Any,
    tokenizer: Any,
    folder: Path,
    prompt_format: str,
    window_registers: int | None = None,
) -> None:
    """Writes weights (safetensors), configuration and tokenizer.

    The configuration advises the prompt format, the width of windows and greedy
    sampling. A user then does not need `--prompt-format`, `--window-registers`
    and `--sampling`.
    """
    merged = merge(network)
    advice = Advice(prompt_format, SamplingStrategy.GREEDY, window_registers)
    setattr(merged.config, CONFIGURATION_KEY, advice.to_json())
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def device_name(device: torch.device) -> str:
    """The name of a GPU, or the number of threads on a CPU, for records of a run."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type}, {torch.get_num_threads()} threads"


def _low_rank(network: Any, options: LowRank) -> Any:
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError("peft", "lora", "low-rank adaptation") from error
    configuration = peft.LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(network, configuration)
