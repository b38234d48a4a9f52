"""A tokenizer whose words are a fixed list, for models that are trained from a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

END, PADDING, UNKNOWN = "<end>", "<padding>", "<unknown>"

WIDEST = 32
"""The largest number of lanes that has a word of its own."""
UNITS = 256
"""The largest number of registers of a file that has a word of its own."""

TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] != 'system' -%}{{ message['content'] }}{%- endif -%}
{%- endfor -%}
"""
"""Leaves the system message out: it is the same in every prompt."""


def word_tokenizer(words: Iterable[str], rewritten: Iterable[tuple[str, str]], pattern: str) -> Any:
    """A transformers tokenizer with one token for each of these words.

    A text is cut in two steps. First each pair of `rewritten` (a pattern and
    its replacement) is applied, in order. Then each match of `pattern` is a
    word, and the text between matches is dropped.
    """
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    known = [UNKNOWN, PADDING, END, *dict.fromkeys(words)]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(known)}, UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(found), text) for found, text in rewritten]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        eos_token=END,
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
