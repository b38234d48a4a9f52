"""Tiny models, made once for all tests of a process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a byte-level tokenizer."""
    pytest.importorskip("torch")
    from tests.model.tiny_models import save_model

    return save_model(tmp_path_factory.mktemp("model") / "bytes")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """Its folder, to be changed."""
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.fixture(scope="session")
def model(folder: Path) -> Any:
    """That model, loaded; nothing may change it for good."""
    from tests.model.tiny_models import load

    return load(folder)


@pytest.fixture(scope="session")
def metaspace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model whose tokenizer puts a space before every text."""
    from tests.model.tiny_models import load, metaspace_tokenizer, save_model

    return load(save_model(tmp_path_factory.mktemp("model") / "meta", metaspace_tokenizer()))
