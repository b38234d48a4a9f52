"""Tokenizers for models that are trained from a configuration.

`decisions` knows the words of the prompt formats `state` and `candidates`,
each a token: register names, `idle 5`, `+12`, `lanes 0`. What is no such word
(names of virtual registers and classes, the system message) is left out. So
a decision takes 10 to 80 tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from verilocc_bench.targets import TARGETS

__all__ = ["TOKENIZERS", "decisions_tokenizer", "word_tokenizer"]

END, PADDING, UNKNOWN = "<end>", "<padding>", "<unknown>"

WIDEST = 32
UNITS = 256
DIGITS = 24
"""Binary digits of a feature: there are fewer points than 2 to the power of this."""
MOST = {"copies": 16, "grows": 64, "idle": DIGITS, "conflicts": DIGITS, "lives": DIGITS}

TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] != 'system' -%}{{ message['content'] }}{%- endif -%}
{%- endfor -%}
"""
"""The system message, the same in every prompt, is left out."""


def decisions_tokenizer() -> Any:
    """A transformers tokenizer for `state` and `candidates`."""
    features = "|".join([*MOST, "spare"])
    pattern = (
        rf"(?:{features}) \d+|lanes? \d+|-\d+|tied|none|\+\d+|~\d+|\n"
        r"|[A-Za-z_]+\d*(?:_[a-z]+)?(?:/\d+)?|\d+"
    )
    return word_tokenizer(_decision_words(), [(r"%\d+ \S+ ", "")], pattern)


def word_tokenizer(words: Iterable[str], rewritten: Iterable[tuple[str, str]], pattern: str) -> Any:
    """A transformers tokenizer with a token for each of these words.

    `rewritten` are patterns and what stands for them, put in one after the
    other; what then fits `pattern` is a word, and all else is left out.
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


def _text_tokenizer() -> Any:
    from verilocc_bench.training.text_tokenizer import text_tokenizer

    return text_tokenizer()


def _decision_words() -> Iterator[str]:
    yield from ("\n", "tied", "none")
    for target in TARGETS.values():
        for file in target.files:
            yield from file.unit_names or (f"{file.name}{n}" for n in range(file.count))
            yield file.name
            yield from (f"{file.name}/{step}" for step in (2, 4, 8, 16))
    yield from ("vcc",)
    yield from (str(number) for number in range(1, WIDEST + 1))
    for feature, most in MOST.items():
        yield from (f"{feature} {number}" for number in range(most))
    yield from (f"spare {number}" for number in range(DIGITS))
    yield from (f"+{number}" for number in range(1, UNITS + 1))
    yield from (f"~{number}" for number in range(DIGITS))
    yield from (f"lane {number}" for number in range(WIDEST))
    yield from (f"lanes {number}" for number in range(WIDEST))
    yield from (f"-{number}" for number in range(WIDEST))


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "decisions": decisions_tokenizer,
    "text": _text_tokenizer,
}
"""The tokenizers that a recipe may name."""
