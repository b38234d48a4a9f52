"""Allocators that answer one request at a time, and what their exceptions count as."""

from __future__ import annotations

import itertools
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from verilocc_bench.allocators.protocol import FailureKind, Request, Response
from verilocc_bench.edits import Answer
from verilocc_bench.errors import (
    AllocationFailed,
    ContradictionError,
    InfrastructureError,
    MissingExtraError,
)

_CLAIMS = frozenset(FailureKind) - {FailureKind.INFRASTRUCTURE, FailureKind.BEYOND_ANALYSIS}
"""The failures that an allocator may report of itself."""

TRACEBACK_LENGTH = 8_000


class SingleAllocator(ABC):
    """The part of Allocator that all allocators share that answer one request at a time.

    A subclass overrides `respond_to` if it says more than its answer.
    """

    foreign: ClassVar[bool] = False
    prompt: ClassVar[None] = None
    group_size: ClassVar[None] = None
    keeps_groups_whole: ClassVar[bool] = False
    tracks: ClassVar[tuple[str, ...]] = ("assign", "split")

    @abstractmethod
    def allocate(self, request: Request) -> Answer:
        """See Allocator."""

    def respond_to(self, request: Request) -> Response:
        """The answer with its details. Raises what `allocate` raises."""
        return Response(self.allocate(request))

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """See Allocator. Whatever `respond_to` raises is a failure of its own.

        Two errors of this package's own allocators pass: a ContradictionError, and a
        MissingExtraError, which says nothing of the allocator.
        """
        for place, request in enumerate(requests):
            yield place, self._guarded(request)

    def check_ids(self, known: Callable[[], Container[str]]) -> None:  # noqa: B027
        """Does nothing: it can be asked about any function."""

    def close(self) -> None:  # noqa: B027  nothing was started
        """Does nothing."""

    def _guarded(self, request: Request) -> Response:
        started = time.perf_counter()
        try:
            found = self.respond_to(request)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, ContradictionError | MissingExtraError) and not self.foreign:
                raise
            failure, message = _failure_of(error, foreign=self.foreign)
            told = foreign_traceback(error) if self.foreign else None
            seconds = time.perf_counter() - started
            details: Mapping[str, Any] = {}
            if isinstance(error, AllocationFailed) and not self.foreign:
                details = error.details
            return Response(None, failure, message, seconds, details, traceback=told)
        seconds = time.perf_counter() - started
        return Response(found.answer, None, None, seconds, found.details)


def _failure_of(error: BaseException, *, foreign: bool) -> tuple[FailureKind, str]:
    """What an exception counts as. Foreign code cannot take a sample out of the count."""
    if isinstance(error, InfrastructureError) and not foreign:
        return FailureKind.INFRASTRUCTURE, str(error)
    if isinstance(error, AllocationFailed) and error.kind in _CLAIMS:
        return FailureKind(error.kind), describe_exception(error, with_name=False)
    return FailureKind.CRASHED, describe_exception(error)


def foreign_traceback(error: BaseException) -> str:
    """The traceback of an exception, from the first frame outside this package on.

    A long one keeps its last lines. An exception that cannot be printed gives its
    frames alone.
    """
    tracebacks = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parents[1])
    outside = list(itertools.dropwhile(lambda frame: frame.filename.startswith(own), tracebacks))
    frames = "".join(traceback.format_list(outside or tracebacks))
    text = f"Traceback (most recent call last):\n{frames}{describe_exception(error)}"
    return text if len(text) <= TRACEBACK_LENGTH else "…" + text[-TRACEBACK_LENGTH:]


def describe_exception(error: BaseException, *, with_name: bool = True) -> str:
    """An exception in words, even if its class cannot be printed."""
    name = type(error).__name__
    try:
        text = f"{error}"
    except Exception:  # noqa: BLE001  foreign code may raise anything
        return f"{name}, which cannot be printed"
    return f"{name}: {text}" if with_name else text
