"""The packages of the extra `train`."""

from __future__ import annotations

from importlib.util import find_spec

from verilocc_bench.errors import MissingExtraError

PACKAGES = ("torch", "transformers", "accelerate", "datasets", "peft", "trl")


def check_packages() -> None:
    """Raises MissingExtraError if a package of the extra `train` is missing."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise MissingExtraError(package, "train", "training")
