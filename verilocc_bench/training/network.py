"""Makes or loads the network and tokenizer of a recipe, and writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.model.advice import BACKTRACKS, CONFIGURATION_KEY, Advice
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.model.transformers_model.bounds import check_counts, check_memory
from verilocc_bench.model.transformers_model.loading import load_parts
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import SamplingStrategy
from verilocc_bench.training.recipe import LowRank, ModelRecipe
from verilocc_bench.training.tokenizers import TOKENIZERS

REASON_LENGTH = 300


def begin(recipe: ModelRecipe) -> tuple[Any, Any]:
    """The network and its tokenizer, with low-rank layers if the recipe asks for them.

    The weights of a new network are drawn from torch's global generator.
    Raises InputError for a model that cannot be made or loaded.
    """
    if recipe.pretrained is None:
        return _new(recipe)
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

    The configuration advises the prompt format, the width of windows, greedy
    sampling, the number of backtracks for formats that decide one register at
    a time, and constrained decoding for `candidates`. A user then needs none
    of `--prompt-format`, `--window-registers`, `--sampling`, `--backtracks`
    and `--decoding`.
    """
    merged = merge(network)
    decides = get_prompt_format(prompt_format).decisions is not None
    advice = Advice(
        prompt_format,
        SamplingStrategy.GREEDY,
        BACKTRACKS if decides else None,
        Decoding.CONSTRAINED if prompt_format == CANDIDATES.name else None,
        window_registers,
    )
    setattr(merged.config, CONFIGURATION_KEY, advice.to_json())
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def device_name(device: torch.device) -> str:
    """The name of a GPU, or the number of threads on a CPU, for records of a run."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type}, {torch.get_num_threads()} threads"


def _new(recipe: ModelRecipe) -> tuple[Any, Any]:
    assert recipe.configuration is not None
    assert recipe.tokenizer is not None
    tokenizer = TOKENIZERS[recipe.tokenizer]()
    check_counts(recipe.configuration, "model: configuration")
    configuration = _configuration(dict(recipe.configuration), tokenizer)
    try:
        check_memory(configuration)
        network = transformers.AutoModelForCausalLM.from_config(configuration)
    except InputError as error:
        raise InputError(f"model: configuration: {error.message}") from None
    except Exception as error:  # bad sizes raise whatever the layers stumble on
        raise _unusable(error) from error
    return network.to(torch.float32), tokenizer


def _configuration(arguments: dict[str, Any], tokenizer: Any) -> Any:
    model_type = arguments.pop("model_type")
    own = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    if twice := sorted(own.keys() & arguments):
        raise InputError(f"model: configuration: {twice[0]} is the tokenizer's: leave it out")
    try:
        usual = transformers.AutoConfig.for_model(model_type)
        # transformers stores unknown arguments and ignores them.
        unknown = [name for name in arguments if not hasattr(usual, name)]
        if unknown:
            raise InputError(f"model: configuration: {model_type} knows no {unknown[0]!r}")
        return transformers.AutoConfig.for_model(model_type, **own, **arguments)
    except InputError:
        raise
    except Exception as error:  # of several kinds, which transformers does not name
        raise _unusable(error) from error


def _unusable(error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:REASON_LENGTH]
    return InputError(f"model: configuration: {type(error).__name__}: {reason}")


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
