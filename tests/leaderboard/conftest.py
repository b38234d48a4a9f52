"""The local Hub for these tests too, and an arena; judging in this process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from leaderboard import revalidate
from tests.hub.fixtures import hub, hub_server
from tests.leaderboard.submissions import arena, arena_folder

__all__ = ["arena", "arena_folder", "hub", "hub_server"]


class Here:
    """A pool that runs each task at once in this process, where tests can replace parts."""

    def submit(self, call: Any, *arguments: Any) -> Any:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def __enter__(self) -> Here:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture(autouse=True, scope="session")
def _judged_here() -> Iterator[None]:
    """A process of its own for each revalidation takes longer than what it judges.

    A test of what is submitted and reviewed has a real pool.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revalidate, "process_pool", lambda jobs: Here())
        yield
