"""A build that cannot be finished is refused before it compiles anything."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from dataset_builders.building.fingerprint import check_compilers
from dataset_builders.compilers import toolchains
from dataset_builders.sweeps import SWEEPS
from verilocc_bench.errors import MissingExtraError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("triton", "triton"),
        ("llvmlite", "llvmlite"),
        ("matplotlib", "matplotlib"),
        ("rapidfuzz", "rapidfuzz"),
    ],
)
def test_what_is_missing_is_named_at_once(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = SWEEPS["mini"].points(["gfx90a"])
    pytest.importorskip("triton", reason="the extra 'build' is not installed")
    check_compilers(points)
    monkeypatch.setattr(
        toolchains, "find_spec", lambda name: None if name == module else find_spec(name)
    )
    with pytest.raises(MissingExtraError, match=package):
        check_compilers(points)
