"""TRL's trainers, as a recipe sets them up: on answers (SFT), and on verdicts (GRPO)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import torch
import transformers

from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Message
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.training.examples import Examples, chosen_rows
from verilocc_bench.training.recipe import Recipe

Verdicts = Callable[[Sequence[str], str], tuple[list[dict[str, Any]], Callable[..., list[float]]]]
"""From ids of kernels and a prompt format: a row for each prompt, and the reward of answers."""


class Learnt(NamedTuple):
    """The examples to learn, and the examples to validate on."""

    examples: Examples
    validation: Examples | None


class Setting(NamedTuple):
    """What both trainers take: the network is adapted already."""

    recipe: Recipe
    network: Any
    tokenizer: Any
    checkpoints: Path
    report_to: Sequence[str] = ()


def answer_trainer(setting: Setting, learnt: Learnt) -> Any:
    """TRL's SFTTrainer on examples that are tokens already."""
    from trl import SFTConfig, SFTTrainer

    options = setting.recipe.training
    validated = learnt.validation is not None
    arguments = SFTConfig(
        **_common(setting),
        max_length=options.maximum_tokens,
        packing=options.packing,
        eval_packing=False,
        per_device_eval_batch_size=options.batch,
        eval_strategy="steps" if validated else "no",
        eval_steps=options.save_steps,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SFTTrainer(
            model=setting.network,
            args=arguments,
            train_dataset=_dataset(learnt.examples),
            eval_dataset=_dataset(learnt.validation) if learnt.validation is not None else None,
            processing_class=setting.tokenizer,
        )


def verdict_trainer(setting: Setting, rows: Sequence[Row], verdicts: Verdicts) -> Any:
    """TRL's GRPOTrainer, whose reward is the verdict and the score of each answer."""
    from trl import GRPOConfig, GRPOTrainer

    recipe, tokenizer = setting.recipe, setting.tokenizer
    wanted, options = recipe.reward, recipe.training
    assert wanted is not None
    kernels = chosen_rows(wanted, rows, recipe.seed)
    if not kernels:
        raise InputError("reward: no kernel is of these archs and families")
    chosen = [row.id for row in kernels]
    prompts, reward = verdicts(chosen, wanted.format)
    codec = TokenCodec(tokenizer, frozenset(), None, "the tokenizer")
    asked = []
    for each in prompts:
        messages = [Message(**turn) for turn in each["prompt"]]
        if len(codec.prompt(messages)) <= options.maximum_tokens:
            asked.append(each if codec.chat else {**each, "prompt": codec.text(messages)})
    if not asked:
        most = options.maximum_tokens
        raise InputError(f"no prompt has at most {most} tokens ('maximum_tokens')")
    answers = options.batch * options.accumulation
    if answers % wanted.generations:
        raise InputError("reward: generations: expected a divisor of batch times accumulation")
    if len(asked) < answers // wanted.generations:  # TRL would train no step, and say nothing
        raise InputError(
            f"a step asks {answers // wanted.generations} kernels, and there are {len(asked)}: "
            "expected a smaller batch or accumulation"
        )
    arguments = GRPOConfig(
        **_common(setting),
        num_generations=wanted.generations,
        max_completion_length=wanted.maximum_answer_tokens,
        temperature=wanted.temperature,
        beta=wanted.beta,
    )
    print(f"prompts: {len(asked)}; too long for maximum_tokens: {len(chosen) - len(asked)}")
    most = wanted.maximum_answer_tokens
    long = sum(len(tokenizer.encode(json.dumps(row.label))) > most for row in kernels)
    if long:
        print(f"answers: {long} of {len(chosen)} labels are longer than maximum_answer_tokens "
              f"({most}): such answers are cut, and earn nothing")  # fmt: skip
    return GRPOTrainer(
        model=setting.network,
        args=arguments,
        reward_funcs=reward,
        train_dataset=datasets.Dataset.from_list(asked),
        processing_class=tokenizer,
    )


def _common(setting: Setting) -> dict[str, Any]:
    """The arguments that both trainers take."""
    recipe, options = setting.recipe, setting.recipe.training
    known = {field.name for field in fields(transformers.TrainingArguments)}
    names = ("activation_checkpointing", "gradient_checkpointing")  # transformers changed it
    checkpointing = next(name for name in names if name in known)
    return {
        "output_dir": str(setting.checkpoints),
        "per_device_train_batch_size": options.batch,
        "gradient_accumulation_steps": options.accumulation,
        checkpointing: options.checkpointing,
        "max_steps": options.steps,
        "learning_rate": options.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": options.warmup_steps,
        "weight_decay": options.weight_decay,
        "adam_beta2": options.adam_beta2,
        "max_grad_norm": options.gradient_norm,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": options.precision == "bfloat16",
        "logging_first_step": True,  # so that the log of a short run has a loss
        "logging_steps": options.log_steps,
        "save_steps": options.save_steps,
        "save_total_limit": 2,
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "full_determinism": True,
        "dataloader_pin_memory": False,
        "run_name": recipe.name,
        "report_to": list(setting.report_to),
    }


def _dataset(examples: Examples) -> Any:
    pairs = [examples.one(number) for number in range(len(examples))]
    columns = {"input_ids": [a for a, _ in pairs], "labels": [b for _, b in pairs]}
    return datasets.Dataset.from_dict(columns)
