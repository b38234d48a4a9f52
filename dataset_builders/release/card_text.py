"""What a dataset card says in words: card_text.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
def card_words() -> Mapping[str, Any]:
    """The texts by topic; `load` has the examples, `experts` the words for experts' kernels."""
    text = files("dataset_builders.release").joinpath("card_text.yaml").read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.safe_load(text)
    return words
