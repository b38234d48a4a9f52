"""What training changes of a process for good is put back."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def same_process() -> Iterator[None]:
    """Deterministic algorithms, threads and variables as they were."""
    torch = pytest.importorskip("torch")
    variables, threads = dict(os.environ), torch.get_num_threads()
    yield
    if torch.are_deterministic_algorithms_enabled():  # asking for less imports half of torch
        torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)
    os.environ.clear()
    os.environ.update(variables)
