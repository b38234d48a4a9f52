"""The local Hub for these tests too."""

from tests.hub.fixtures import hub, hub_server

__all__ = ["hub", "hub_server"]
