"""The language models that come with the package, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

SHIPPED: dict[str, str] = {
    "reference": "a language model of 1.3 million parameters, by prompts of candidates or state",
    "reference-notes": "a network of 1.0 million parameters, by prompts of notes",
    "reference-text-notes": "a network of 1.0 million parameters, by prompts of text-notes",
    "reference-text": "a language model of 1.6 million parameters, by prompts of window",
}
"""Names for `--model`, with what they are."""


def shipped_folder(name: str) -> Path | None:
    """The folder of a model that comes with the package; None for any other name."""
    if name not in SHIPPED:
        return None
    return Path(str(files("verilocc_bench").joinpath("data", "models", name)))
