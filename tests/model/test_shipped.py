"""The models that come with the package, and the names that they had before."""

from __future__ import annotations

from verilocc_bench.evaluation.models.resolve import settings_kind
from verilocc_bench.model.shipped import ALIASES, SHIPPED, is_shipped, shipped_folder
from verilocc_bench.settings.language_model import LocalModelSettings


def test_each_name_has_a_folder_with_weights() -> None:
    for name in (*SHIPPED, *(each for each in ALIASES if is_shipped(each))):
        folder = shipped_folder(name)
        assert folder is not None
        assert (folder / "model.safetensors").is_file()
        assert settings_kind(name) is LocalModelSettings


def test_the_earlier_name_is_the_same_model() -> None:
    assert shipped_folder("reference-text-notes") == shipped_folder("reference")
    assert not is_shipped("reference-text")
    assert shipped_folder("reference-text") is None
