"""The local Hub is here as a fixture."""

from tests.hub.fixtures import hub, hub_server

__all__ = ["hub", "hub_server"]
