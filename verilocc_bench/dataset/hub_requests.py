"""Requests to the Hub: repeats them if that can help, and explains errors in one line.

Messages of the Hub and its client never show a secret, and libraries stay out of the log.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from verilocc_bench.errors import InputError

WAITS_SECONDS = (1.0, 2.0, 4.0)
LONGEST_WAIT_SECONDS = 60.0
REASON_LENGTH = 300
LOGGED_OUT = "no token: log in with `hf auth login`, or set HF_TOKEN"
_TRY_AGAIN = "try again later"

Result = TypeVar("Result")


class HubError(InputError):
    """An error of the Hub or of the way to it. `status` is None without a response."""

    def __init__(
        self, message: str, source: str, *, status: int | None = None, wait: float | None = None
    ) -> None:
        super().__init__(message, source=source)
        self.status, self.wait_seconds = status, wait

    def __reduce__(self) -> tuple[object, ...]:
        return (HubError, (self.message, self.source, self.status, self.wait_seconds))

    @property
    def is_refused_for_now(self) -> bool:
        """True if the Hub did nothing and may succeed when asked again."""
        return self.status in (429, 503)

    @property
    def is_conflict(self) -> bool:
        """True if the branch is not at the expected commit."""
        return self.status in (409, 412)

    @property
    def may_be_done(self) -> bool:
        """True if the Hub may have carried out the request."""
        return self.status is None or self.status >= 500

    def pause_seconds(self, otherwise: float) -> float:
        """Seconds until the next attempt: as the Hub says, within limits, or `otherwise`."""
        wait = otherwise if self.wait_seconds is None else self.wait_seconds
        return min(wait, LONGEST_WAIT_SECONDS)


def ask(source: str, request: Callable[[], Result]) -> Result:
    """The result of a request that may be repeated; repeats it while the Hub is busy.

    Raises HubError about `source`, and passes on other errors of this package.
    """
    for wait in WAITS_SECONDS:
        try:
            return ask_once(source, request)
        except HubError as error:
            if not error.is_refused_for_now:
                raise
            pause = error.pause_seconds(wait)
        time.sleep(pause)
    return ask_once(source, request)


def ask_once(source: str, request: Callable[[], Result]) -> Result:
    """The result of a request. Raises HubError without a trace of the original error."""
    try:
        return request()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        failure = _explained(source, error)
    # Raised outside the handler: the original error holds the token and must not be its context.
    raise failure


def _explained(source: str, error: BaseException) -> HubError:
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    while isinstance(error, RuntimeError) and error.__cause__ is not None:
        error = error.__cause__  # the error of a thread is wrapped
    if isinstance(error, HfHubHTTPError) and error.response is not None:
        return _refused(source, error)
    if isinstance(error, OfflineModeIsEnabled):
        return HubError("HF_HUB_OFFLINE is set, and this needs the Hub", source)
    if isinstance(error, LocalTokenNotFoundError):
        return HubError(LOGGED_OUT, source)
    reason = _short(str(error)) or type(error).__name__
    if isinstance(error, OSError) or type(error).__module__.startswith("httpx"):
        endpoint = without_secrets(constants.ENDPOINT)
        return HubError(f"the Hub cannot be reached at {endpoint}: {reason}", source)
    return HubError(f"the Hub's client says: {reason}", source, status=0)


def _refused(source: str, error: object) -> HubError:
    response = error.response  # type: ignore[attr-defined]
    status = int(response.status_code)
    said = _short(str(getattr(error, "server_message", None) or ""))
    owner = source.split("/", maxsplit=1)[0]
    if status == 401:
        message = "the Hub does not accept the token: log in with `hf auth login`, or set HF_TOKEN"
    elif status == 403:
        message = f"this token may not do that: it needs write access to {owner!r} on the Hub"
    elif status == 429:
        message = f"the Hub asks for fewer requests (429): {_TRY_AGAIN}"
    elif status >= 500:
        message = f"the Hub has an error of its own ({status}): {_TRY_AGAIN}"
    else:
        message = f"the Hub answered {status}"
    # A server's message may be anything, so it comes last, cut and without secrets.
    wait = response.headers.get("Retry-After", "")
    return HubError(
        f"{message}: {said}" if said and status < 429 else message,
        source,
        status=status,
        wait=float(wait) if wait.isascii() and wait.isdecimal() and len(wait) < 7 else None,
    )


def _short(text: str) -> str:
    return without_secrets(" ".join(text.split()))[:REASON_LENGTH]


HIDDEN = "…"
_LOOKS_SECRET = re.compile(
    r"\bhf_[A-Za-z0-9_]{4,}"  # a token
    r"|(?<=[Bb]earer )[^\s\"',;]+"
    r"|(?<=://)[^/@\s]+(?=@)"  # a name and a password in an address
)


def without_secrets(text: str) -> str:
    """A text without the token in use, without passwords, and without anything like a token.

    Servers echo headers, and libraries quote servers.
    """
    from huggingface_hub import get_token

    token = get_token()
    if token:
        text = text.replace(token, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, text)


@contextmanager
def quiet(*libraries: ModuleType) -> Iterator[None]:
    """Suppresses the log lines of libraries: errors say the same."""
    # Libraries set their levels at import, so they are imported before.
    loggers = [logging.getLogger(library.__name__) for library in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
