"""The language models that come with the package, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

SHIPPED: dict[str, str] = {
    "reference": "a network of 1.0 million parameters that copies the rule reference-rule, which "
    "drafts its words; format text-notes, assistance intervals",
}
"""Names for `--model`, with what they are."""

ALIASES = {
    "reference-text-notes": "reference",
    "reference-text-notes-further": "reference-further",
}
"""Earlier names of models and of their recipes, which the next version drops."""


def is_shipped(name: str) -> bool:
    """True if a model of this name comes with the package."""
    return ALIASES.get(name, name) in SHIPPED


def shipped_folder(name: str) -> Path | None:
    """The folder of a model that comes with the package; None for any other name."""
    if not is_shipped(name):
        return None
    return Path(str(files("verilocc_bench").joinpath("data", "models", ALIASES.get(name, name))))
