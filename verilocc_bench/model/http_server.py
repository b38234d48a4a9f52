"""A server behind an address: requests and their retries, with the key, within limits.

No redirect is followed, so the key goes to the host of the address alone. A
body of more than 64 MiB is not read to its end. A time limit is for one whole
try; it is checked whenever a part of the answer arrives.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.model.http_errors import HttpReply, TransientFailure, one_line, read_json

if TYPE_CHECKING:
    import ssl

    import httpx2


LARGEST_BODY_BYTES = 64 << 20
CONNECT_SECONDS = 30.0
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 60.0
KEY_VARIABLES = ("VERILOCC_BENCH_API_KEY", "OPENAI_API_KEY")

Result = TypeVar("Result")


def check_address(address: str) -> str:
    """The address as it is asked, without a slash at its end.

    Raises InputError if it is not an http(s) address of a host, or holds what
    must not stand in results: a user name, a password, a query.
    """
    parts = _split(address)
    if "@" in parts.netloc:
        raise InputError(
            "the address of --model holds a user name or password, and it is written to the "
            f"results; leave it out, and set {KEY_VARIABLES[0]} for a key"
        )
    if parts.query or parts.fragment or "?" in address or "#" in address:
        raise InputError(
            "the address of --model holds a query (?…) or a fragment (#…); give the base of the "
            "API alone, as in http://localhost:8000/v1"
        )
    path = parts.path.rstrip("/")
    for end in ("/chat/completions", "/completions", "/models"):
        if path.endswith(end):
            raise InputError(f"{address}: give the base of the API, without {end}")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _split(address: str) -> SplitResult:
    import httpx2

    expected = "expected an address as in http://localhost:8000/v1"
    try:
        parts = urlsplit(address)
        has_host = bool(parts.hostname) and parts.port != 0
        httpx2.URL(address)
    except (ValueError, httpx2.InvalidURL):
        raise InputError(f"the address of --model cannot be read; {expected}") from None
    if parts.scheme not in {"http", "https"} or not has_host:
        raise InputError(f"the address of --model names no http or https host; {expected}")
    if not address.isprintable() or " " in address or "\\" in address:
        raise InputError(
            f"the address of --model holds a character that must be escaped; {expected}"
        )
    return parts


def api_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """The key that the environment holds. The first variable that is set decides, even if empty.

    Raises InputError, without the key, if it cannot stand in a header.
    """
    name = next((name for name in KEY_VARIABLES if name in environment), None)
    key = environment[name].strip() if name is not None else ""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(f"{name}: a key has printable ASCII characters alone, and no spaces")
    return key or None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is made again, and after how long a wait.

    Waits double from half a second up to a minute. Each is shortened by up to a
    half at random, so that requests which failed together do not come back
    together. Retry-After has precedence; a server that asks for a longer wait
    than `longest_wait_seconds` is given up.
    """

    retries: int
    longest_wait_seconds: float
    sleep: Callable[[float], None] = time.sleep
    spread: Callable[[], float] = random.random
    now: Callable[[], float] = time.time

    def wait_seconds(self, attempt: int, asked: float | None) -> float:
        """How long to wait before a try again; `attempt` counts the tries so far, from 1."""
        if asked is not None:
            return asked
        longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(attempt - 1, 20))
        return longest * (1 - self.spread() / 2)


@dataclass(slots=True)
class HttpServer:
    """Makes requests below `address`; can be used from many threads."""

    address: str
    key: str | None = field(repr=False)
    time_limit_seconds: float
    connections: int
    policy: RetryPolicy
    largest_body_bytes: int = LARGEST_BODY_BYTES
    _client: httpx2.Client | None = field(default=None, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        read: Callable[[Any], Result],
    ) -> Result:
        """What `read` makes of the server's JSON. It raises TransientFailure for anything else.

        Raises InfrastructureError when the last try has failed, and
        ContextExceeded and RefusedRequest (model.http_errors) at once.
        """
        url = self.address + path
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        attempt = 0
        while True:
            attempt += 1
            try:
                return read(read_json(self._send(method, url, content), self.clean, self._now))
            except TransientFailure as failure:
                self._wait(url, attempt, failure)

    def close(self) -> None:
        """Closes all connections; a later request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def clean(self, text: str) -> str:
        """Words of the server as one short line without the key."""
        return one_line(text, self.key)

    def _now(self) -> float:
        return self.policy.now()

    def _wait(self, url: str, attempt: int, failure: TransientFailure) -> None:
        """Waits for another try. Raises InfrastructureError after the last."""
        if attempt > self.policy.retries:
            tries = "1 try" if attempt == 1 else f"{attempt} tries"
            raise InfrastructureError(f"{url}: {failure} (gave up after {tries})") from None
        seconds = self.policy.wait_seconds(attempt, failure.retry_after_seconds)
        if seconds > self.policy.longest_wait_seconds:
            raise InfrastructureError(
                f"{url}: {failure} (gave up: the server asks for a longer wait than "
                f"{self.policy.longest_wait_seconds:g} s)"
            ) from None
        self.policy.sleep(seconds)

    def _send(self, method: str, url: str, content: bytes | None) -> HttpReply:
        """One try. Raises TransientFailure if no whole reply came in time."""
        import httpx2

        deadline = time.monotonic() + self.time_limit_seconds
        try:
            with self._opened().stream(method, url, content=content) as response:
                return HttpReply(
                    url,
                    response.status_code,
                    self._body(response, deadline),
                    response.headers.get("retry-after"),
                    response.headers.get("location"),
                )
        except httpx2.TimeoutException:
            raise TransientFailure(self._too_late()) from None
        except httpx2.RequestError as error:
            words = self.clean(str(error)) or type(error).__name__
            raise TransientFailure(f"no answer: {words}") from None

    def _body(self, response: httpx2.Response, deadline: float) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self.largest_body_bytes:
                raise InfrastructureError(
                    f"{response.url}: the server's answer has more than "
                    f"{self.largest_body_bytes:,} bytes"
                )
            if time.monotonic() > deadline:
                raise TransientFailure(self._too_late())
        return bytes(body)

    def _too_late(self) -> str:
        return f"no answer within {self.time_limit_seconds:g} s"

    def _opened(self) -> httpx2.Client:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> httpx2.Client:
        import httpx2

        # Compression would make the limit on a body one of what it unpacks to.
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        limit = self.time_limit_seconds
        try:
            return httpx2.Client(
                headers=headers,
                verify=_tls_context(),
                follow_redirects=False,
                timeout=httpx2.Timeout(limit, connect=min(limit, CONNECT_SECONDS), pool=None),
                limits=httpx2.Limits(
                    max_connections=self.connections, max_keepalive_connections=self.connections
                ),
                mounts=self._without_proxy(),
            )
        except (ImportError, ValueError, httpx2.InvalidURL):
            # Their messages may hold a proxy's password.
            raise InputError(
                "the proxies in the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) "
                "cannot be used; a SOCKS proxy needs the package 'socksio'"
            ) from None

    def _without_proxy(self) -> dict[str, None]:
        """This machine is asked directly, even if the environment names proxies."""
        host = urlsplit(self.address).hostname or ""
        if not _is_this_machine(host):
            return {}
        return {f"all://[{host}]" if ":" in host else f"all://{host}": None}


@cache
def _tls_context() -> ssl.SSLContext:
    """One context for all connections: it takes a tenth of a second to make."""
    import httpx2

    return httpx2.create_ssl_context()


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
