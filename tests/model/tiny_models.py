"""Tiny random models with tokenizers of several kinds, made in a moment and without a network."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verilocc_bench.model.language_model import Ask, Completion, Message, TokenSampling
from verilocc_bench.model.transformers_model import load_transformers_model
from verilocc_bench.settings.language_model import LocalModelSettings

TEXTS = [
    "bb0(v0,s[2:3])->bb2,bb1\n%0=COPY v0\n%1:V2.0!=V_LSHLREV_B32 %0\n%1.1=V_MOV_B32\n",
    '{"%0": "s16", "%1": "v4", "%12": "v120"}\nclass V2 2 v/2\nregisters v:256 a:256 s:102\n',
    "Give every virtual register a physical one. Answer in JSON. é ü 寄存器\n",
]
SPECIAL = ["<unk>", "<s>", "</s>"]


def byte_level_tokenizer(vocabulary: int = 320) -> Any:
    """As GPT-2 and Llama 3: byte-level BPE, exact."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    return tokenizer


def metaspace_tokenizer(vocabulary: int = 400) -> Any:
    """As Llama 2 (SentencePiece): a space before every text, and bytes for what is unknown."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    letters = sorted(set("".join(TEXTS)) - set(" 寄存器"))
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - 256,
        special_tokens=SPECIAL,
        initial_alphabet=[*letters, "▁"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([text.replace("寄存器", "") for text in TEXTS] * 20, trainer)
    raw = json.loads(tokenizer.to_str())
    words = raw["model"]["vocab"]
    words.update({f"<0x{byte:02X}>": len(words) + byte for byte in range(256)})
    return Tokenizer.from_str(json.dumps(raw))


def word_tokenizer(words: Sequence[str]) -> Any:
    """One token a word, no white space kept."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def save_model(
    folder: Path,
    tokenizer: Any | None = None,
    *,
    context: int = 512,
    chat_template: str | None = None,
    begin: bool = False,
) -> Path:
    """A random Llama of two layers; `begin` puts <s> before every text."""
    import torch
    from tokenizers.processors import TemplateProcessing
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    tokenizer = tokenizer or byte_level_tokenizer()
    if begin:
        tokenizer.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    if chat_template is not None:
        fast.chat_template = chat_template
    torch.manual_seed(0)
    configuration = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LlamaForCausalLM(configuration).save_pretrained(folder)
        fast.save_pretrained(folder)
    return folder


def load(folder: Path, **options: Any) -> Any:
    """The model of a folder in float32 on the CPU."""
    chosen = LocalModelSettings(**{"dtype": "float32", "device": "cpu", **options})
    return load_transformers_model(str(folder), chosen)


def ask(text: str, maximum_tokens: int = 24, **others: Any) -> Ask:
    """A prompt of one message."""
    return Ask((Message("user", text),), maximum_tokens, **others)


PROMPTS = ["hello", TEXTS[0] * 2, TEXTS[1], "x", TEXTS[2], "%1 %1 %1", "bb0", "class V"]


def draw(seed: int, **others: Any) -> TokenSampling:
    """Sampling with temperature 1."""
    return TokenSampling(seed, **{"temperature": 1.0, **others})


def reference_logs(model: Any, tokens: list[int]) -> Any:
    """Log-probabilities at every place of one sequence, without cache, padding or batch."""
    import torch

    with torch.inference_mode():
        logits = model._network.module(torch.tensor([tokens])).logits[0]
    return torch.log_softmax(logits.double(), dim=-1)


def check_scores(model: Any, messages: Sequence[Message], said: Completion) -> None:
    """The log-probabilities of what was said are those of the network."""
    import pytest

    before = model._codec.prompt(messages)
    logs = reference_logs(model, before + list(said.tokens))[len(before) - 1 :]
    expected = [float(row[token]) for row, token in zip(logs, said.tokens, strict=False)]
    assert said.log_probabilities == pytest.approx(expected, abs=1e-4)


def complete(model: Any, asks: Sequence[Ask], how: Sequence[TokenSampling]) -> list[Completion]:
    """The completions in the order of their asks."""
    found = dict(model.completions(asks, how))
    return [found[place] for place in range(len(asks))]
