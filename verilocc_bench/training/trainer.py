"""transformers' Trainer for batches in which only the completions are learnt."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

from verilocc_bench.training.batches import IGNORED, Batches
from verilocc_bench.training.examples import Examples
from verilocc_bench.training.recipe import Recipe


class Learnt(NamedTuple):
    """The examples to learn, and the examples to validate on."""

    examples: Examples
    validation: Examples | None


class CompletionTrainer(transformers.Trainer):  # type: ignore[misc]
    """A Trainer that computes scores only at the ends of the rows, where the completions are."""

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,  # noqa: ARG002  all batches count the same
    ) -> Any:
        """The mean loss of the learnt tokens of a batch."""
        kept, labels = inputs["kept"], inputs["labels"]
        output = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            logits_to_keep=kept,
            use_cache=False,
            **self._positions(inputs),
        )
        scores = output.logits[:, :-1].flatten(0, 1).float()
        wanted = labels[:, labels.shape[1] - kept + 1 :].flatten()
        loss = torch.nn.functional.cross_entropy(scores, wanted, ignore_index=IGNORED)
        return (loss, output) if return_outputs else loss

    def _positions(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The positions of the tokens, if any row has padding before its first token."""
        if not self.takes_positions or inputs["attention_mask"].all():
            return {}
        return {"position_ids": inputs["position_ids"]}

    @cached_property
    def takes_positions(self) -> bool:
        """True if the network takes positions. Some do not: Bloom derives its own."""
        network = self.model
        inner = network.get_base_model() if hasattr(network, "get_base_model") else network
        return "position_ids" in inspect.signature(inner.forward).parameters

    def prediction_step(
        self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any
    ) -> tuple[Any, Any, Any]:
        """The loss of a validation batch. Counts the answers that are right in all tokens."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, output = self.compute_loss(model, inputs, return_outputs=True)
        kept, labels = inputs["kept"], inputs["labels"]
        wanted = labels[:, labels.shape[1] - kept + 1 :]
        right = (output.logits[:, :-1].argmax(dim=-1) == wanted) | (wanted == IGNORED)
        self.answers_right += int(right.all(dim=1).sum())
        self.answers_seen += len(right)
        return loss.detach(), None, None

    def evaluate(self, *arguments: Any, **options: Any) -> dict[str, float]:
        """The validation loss, and the share of answers that equal the teacher's."""
        self.answers_right = self.answers_seen = 0
        found: dict[str, float] = super().evaluate(*arguments, **options)
        found = {name: value for name, value in found.items() if name == "eval_loss"}
        found["eval_accuracy"] = self.answers_right / max(self.answers_seen, 1)
        self.log({**found})
        return found


def make_trainer(
    recipe: Recipe, network: Any, padding: int, learnt: Learnt, checkpoints: Path
) -> CompletionTrainer:
    """The trainer of a recipe; `padding` is the tokenizer's padding token."""
    options = recipe.training

    def batches(found: Examples | None) -> Batches | None:
        return found and Batches(found, options.batch_tokens, padding, recipe.seed)

    arguments = transformers.TrainingArguments(
        output_dir=str(checkpoints),
        per_device_train_batch_size=1,  # an item is a whole batch
        per_device_eval_batch_size=1,
        max_steps=options.steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        adam_beta2=options.adam_beta2,
        max_grad_norm=options.gradient_norm,
        bf16=options.precision == "bfloat16",
        logging_first_step=True,  # so that the log of a short run has a loss
        logging_steps=options.log_steps,
        save_steps=options.save_steps,
        save_total_limit=2,
        eval_strategy="steps" if learnt.validation is not None else "no",
        eval_steps=options.save_steps,
        remove_unused_columns=False,
        label_names=["labels"],
        prediction_loss_only=True,
        seed=recipe.seed,
        data_seed=recipe.seed,
        full_determinism=True,
        dataloader_pin_memory=False,
        report_to=[],
    )
    # With several GPUs a step would take several batches; it must be the same on any machine.
    # Reading `device` makes transformers count the GPUs, so this comes after it.
    if arguments.device.type == "cuda":
        arguments._n_gpu = 1
    return CompletionTrainer(
        model=network,
        args=arguments,
        train_dataset=batches(learnt.examples),
        eval_dataset=batches(learnt.validation),
        data_collator=_only,
    )


def _only(items: Sequence[Any]) -> Any:
    (item,) = items
    return item
