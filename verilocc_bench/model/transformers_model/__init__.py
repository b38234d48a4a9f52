"""Causal language models through transformers; the only package that may import torch.

Nothing heavy is imported before a model is asked for.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from verilocc_bench.errors import MissingExtraError
from verilocc_bench.model.transformers_model.model_files import check_model_folder
from verilocc_bench.settings.language_model import LocalModelSettings

if TYPE_CHECKING:
    from verilocc_bench.model.transformers_model.model import TransformersModel

__all__ = ["load_transformers_model"]


def load_transformers_model(name: str, settings: LocalModelSettings) -> TransformersModel:
    """The causal language model in a folder, or of that id on the Hub.

    Weights come from safetensors files alone, and code from the model's
    folder runs only where `settings.trust_remote_code` says so. Raises
    InputError for a model that is not there or cannot be used, and
    MissingExtraError if torch or transformers is not installed.
    """
    check_model_folder(name, settings.model_revision)
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "model", f"the language model {name!r}")
    from verilocc_bench.model.transformers_model.loading import load_model

    return load_model(name, settings)
