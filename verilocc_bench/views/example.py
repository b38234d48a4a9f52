"""Tokenized examples and their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from verilocc_bench.errors import InputError
from verilocc_bench.views.training_turns import get_training_format
from verilocc_bench.views.view_rows import parse_label

IGNORED = -100
"""The label of a token that is not learnt, as in the losses of torch and transformers."""

TooLong = Literal["skip", "cut_start", "cut_end"]
Cuts = Literal["pieces", "whole"]


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """The token ids of a prompt and its completion; the three lists have the same length.

    `labels` are the ids of the completion, and -100 for a masked prompt. They are
    aligned with the ids; the model or its loss shifts them.
    """

    input_ids: list[int]
    attention_mask: list[int]
    labels: list[int]


@dataclass(frozen=True, slots=True)
class TokenizedOptions:
    """The options for making examples of rows. Raises InputError for impossible options.

    `prompt_format` names one that any model can be asked in. For `label` see
    parse_label. An example longer than `maximum_tokens` is left out (if `too_long` is
    `skip`), or loses its first (`cut_start`) or last tokens (`cut_end`); None takes
    all. With `mask_prompt` only the completion is learnt. `cuts` encodes the completion
    in the pieces of constrained decoding, or as a `whole`. `chat` applies the chat
    template; None does so if there is one. With `block_tokens`, examples are packed into
    blocks of that many tokens, and longer examples count as too long.
    """

    prompt_format: str = "window"
    label: str = "compiler"
    maximum_tokens: int | None = None
    too_long: TooLong = "skip"
    mask_prompt: bool = True
    cuts: Cuts = "pieces"
    chat: bool | None = None
    block_tokens: int | None = None

    def __post_init__(self) -> None:
        get_training_format(self.prompt_format)
        parse_label(self.label)
        for name in ("maximum_tokens", "block_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} {value}: expected at least 1")
        for name, known in (("too_long", get_args(TooLong)), ("cuts", get_args(Cuts))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} {getattr(self, name)!r}: expected {' or '.join(known)}")

    @property
    def limit(self) -> int | None:
        """The most tokens of an example."""
        limits = [n for n in (self.maximum_tokens, self.block_tokens) if n is not None]
        return min(limits, default=None)
