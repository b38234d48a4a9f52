"""The models that come with the package."""

from __future__ import annotations

from verilocc_bench.evaluation.models.resolve import settings_kind
from verilocc_bench.model.reading.reading_allocator import CHANGE
from verilocc_bench.model.shipped import SHIPPED, is_shipped, shipped_folder
from verilocc_bench.settings.language_model import LocalModelSettings


def test_each_name_has_a_folder_with_weights() -> None:
    for name in SHIPPED:
        folder = shipped_folder(name)
        assert folder is not None
        assert (folder / CHANGE).stat().st_size < 9_000_000
        assert settings_kind(name) is LocalModelSettings
    assert not is_shipped("reference")
    assert shipped_folder("reference") is None
