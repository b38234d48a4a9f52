"""Loads the network and tokenizer of a recipe, and writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.model.advice import CONFIGURATION_KEY, Advice
from verilocc_bench.model.transformers_model.loading import load_parts
from verilocc_bench.settings.language_model import SamplingStrategy
from verilocc_bench.training.own_words import add_words, word_layer_names, words_of
from verilocc_bench.training.recipe import Recipe


def begin(recipe: Recipe, rows: Iterable[Row]) -> tuple[Any, Any, list[int]]:
    """(network, tokenizer, the tokens of own words); not adapted yet.

    Raises InputError for a model that cannot be loaded.
    """
    model = recipe.model
    network, tokenizer = load_parts(model.pretrained, model.revision)
    known = network.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > known:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} tokens, but the model knows {known}",
            source=model.pretrained,
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    try:
        network.set_attn_implementation(model.attention)
    except (ValueError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"model: attention: {reason}", source=model.pretrained) from None
    if recipe.training.packing and model.attention in ("sdpa", "eager"):
        check_packing(network, model.pretrained)
    words: list[int] = []
    if model.own_words:
        texts = (text for row in rows for text in (row.normalized, row.assignment or ""))
        words = add_words(network, tokenizer, words_of(texts))
    if recipe.training.precision == "bfloat16" and model.lora is not None:
        network.to(torch.bfloat16)
    return network, tokenizer, words


def check_packing(network: Any, source: str) -> None:
    """Raises InputError if examples that share a sequence would see each other."""
    ids = torch.arange(12)[None] % network.get_input_embeddings().weight.shape[0]
    places = {"position_ids": torch.arange(12)[None] % 6, "use_cache": False}
    network.eval()
    with torch.no_grad():
        alone = network(input_ids=ids[:, 6:], use_cache=False).logits
        try:
            packed = network(input_ids=ids, **places).logits[:, 6:]
        except TypeError:  # it takes no positions
            packed = torch.full_like(alone, torch.inf)
    network.train()
    if (packed - alone).abs().max() > 1e-4 * alone.abs().max():
        message = "with this model examples in a sequence see each other: 'packing: false'"
        raise InputError(f"training: {message} keeps them apart", source=source)


def low_rank_options(recipe: Recipe, network: Any, words: list[int]) -> dict[str, Any]:
    """The arguments of peft's LoraConfig. The recipe must have `lora`."""
    lora = recipe.model.lora
    assert lora is not None
    return {
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": list(lora.targets) or "all-linear",
        "task_type": "CAUSAL_LM",
        "trainable_token_indices": dict.fromkeys(word_layer_names(network), words) or None
        if words
        else None,
    }


def adapted(recipe: Recipe, network: Any, words: list[int]) -> Any:
    """The network with low-rank layers, if the recipe asks for them."""
    if recipe.model.lora is None:
        return network
    import peft

    configuration = peft.LoraConfig(**low_rank_options(recipe, network, words))
    try:
        changed = peft.get_peft_model(network, configuration)
    except ValueError as error:  # names of layers that it does not have
        reason = str(error).splitlines()[0]
        raise InputError(f"lora: {reason}", source=recipe.model.pretrained) from None
    head = network.get_output_embeddings()
    if not hasattr(head, "bias"):  # peft's wrapper of trained tokens hides it; TRL reads it
        head.bias = getattr(head.original_module, "bias", None)
    return changed


def write_model(recipe: Recipe, network: Any, tokenizer: Any, folder: Path) -> Any:
    """Writes the adapter, the merged weights, configuration and tokenizer; the merged network.

    The configuration advises what `evaluate` would else be told: prompt format,
    width of windows, greedy sampling.
    """
    if hasattr(network, "merge_and_unload"):
        network.save_pretrained(folder / "adapter", save_embedding_layers=False)
    merged = network.merge_and_unload() if hasattr(network, "merge_and_unload") else network
    setattr(merged.config, CONFIGURATION_KEY, advice(recipe))
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return merged


def advice(recipe: Recipe) -> dict[str, Any]:
    """What config.json says of how the model is asked."""
    style, width = recipe.asked
    return Advice(style, SamplingStrategy.GREEDY, width).to_json()


def device_name(device: torch.device) -> str:
    """The name of a GPU, or the number of threads on a CPU, for records of a run."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type}, {torch.get_num_threads()} threads"
