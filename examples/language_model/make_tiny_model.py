"""Makes a tiny causal language model with random weights, and a tokenizer for normalized text.

    python make_tiny_model.py FOLDER

Needs the extra `model` (`pip install -e '.[model]'`) and no network. The model
has learned nothing. Use it to try the commands of README.md, and as a template
for a model of your own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

CONTEXT_TOKENS = 32_768
VOCABULARY = 512
BEGIN, END = "<s>", "</s>"


def tokenizer_of(texts: list[str]) -> object:
    """A byte-level BPE tokenizer trained on the texts: it can say anything, exactly."""
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
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=END,
    )


def make_tiny_model(folder: Path, seed: int) -> None:
    """Writes configuration, weights and tokenizer into a folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    from verilocc_bench.dataset import load_rows

    logging.disable_progress_bar()
    torch.manual_seed(seed)
    tokenizer = tokenizer_of([row.normalized for row in load_rows("mini").rows])
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT_TOKENS,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
            tie_word_embeddings=True,
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Make a tiny random language model.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_tiny_model(arguments.folder, arguments.seed)


if __name__ == "__main__":
    main()
