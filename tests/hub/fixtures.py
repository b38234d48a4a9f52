"""Fixtures of the local Hub: a conftest.py that imports them has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hub.server import LocalHub, running_hub


@pytest.fixture(scope="session")
def hub_server() -> Iterator[LocalHub]:
    """One server for all tests of a process."""
    with running_hub() as hub:
        yield hub


@pytest.fixture
def hub(hub_server: LocalHub) -> LocalHub:
    """A Hub without repositories, that has been asked nothing yet."""
    hub_server.reset()
    return hub_server
