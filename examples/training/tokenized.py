"""Trains a language model on examples that are tokenized as they are read.

    python tokenized.py --dataset mini --split test --steps 4 --output trained

Needs the extra `model` (`pip install -e '.[model]'`). `--dataset` is `mini`, a
folder that `verilocc-bench build` wrote, or a dataset on the Hub. Without
`--model` it makes a tiny Llama with random weights and a tokenizer of its
own, which runs anywhere in seconds and learns next to nothing. `--output`
writes a folder that `verilocc-bench evaluate --model FOLDER` can score.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import IterableDataset
from loading import rows_of
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from verilocc_bench.views import TokenizedOptions, TokenizedView, tokenize_dataset

VOCABULARY = 512
BEGIN, END = "<s>", "</s>"


def tiny_tokenizer(texts: list[str]) -> Any:
    """A byte-level BPE tokenizer of the texts, which can say anything."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BEGIN, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END, pad_token=END
    )


def tiny_model(tokenizer: Any, context: int) -> Any:
    """A Llama of two layers with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=context,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=True,
        )
    )


def batches(blocks: IterableDataset, size: int) -> Iterator[dict[str, torch.Tensor]]:
    """Tensors of `size` blocks at a time.

    No attention mask: from positions that begin anew transformers sees where
    an example begins, and keeps attention within it. Padding is not learnt.
    """
    for batch in blocks.iter(batch_size=size):
        yield {name: torch.tensor(batch[name]) for name in ("input_ids", "labels", "position_ids")}


def train(model: Any, blocks: IterableDataset, arguments: argparse.Namespace) -> None:
    """A plain loop; transformers' Trainer takes the same datasets."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    model.train()
    for step, batch in enumerate(batches(blocks, arguments.batch_size), 1):
        loss = model(**batch, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if step == arguments.steps:
            return


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Train a language model on kernels.")
    parser.add_argument("--dataset", default="verilocc/regalloc")
    parser.add_argument("--config", default="gfx90a", help="default, or an architecture")
    parser.add_argument("--split", default="train")
    parser.add_argument("--model", help="a folder or Hub id; default: a tiny random one")
    parser.add_argument("--prompt-format", default="window")
    parser.add_argument("--label", default="best")
    parser.add_argument("--block-tokens", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def main() -> None:
    """Loads, tokenizes, trains and writes."""
    arguments = parse_arguments()
    disable_progress_bar()
    torch.manual_seed(0)
    rows = rows_of(arguments.dataset, arguments.config, arguments.split)
    if arguments.model is None:
        tokenizer = tiny_tokenizer([row["normalized"] for row in rows.take(4)])
        model = tiny_model(tokenizer, context=32_768)
    else:
        tokenizer = AutoTokenizer.from_pretrained(arguments.model)
        model = AutoModelForCausalLM.from_pretrained(arguments.model)
    options = TokenizedOptions(
        prompt_format=arguments.prompt_format,
        label=arguments.label,
        block_tokens=arguments.block_tokens,
    )
    view = TokenizedView(tokenizer, options)
    blocks, report = tokenize_dataset(rows.shuffle(seed=0, buffer_size=100), view, batch_rows=2)
    train(model, blocks, arguments)
    print(f"examples made: {report}")
    if arguments.output is not None:
        model.save_pretrained(arguments.output)
        tokenizer.save_pretrained(arguments.output)


if __name__ == "__main__":
    main()
