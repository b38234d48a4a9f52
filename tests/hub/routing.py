"""Requests by method and raw path: a revision arrives as `refs%2Fpr%2F1`, one part of a path."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.hub.accounts import ACCOUNTS, Account
from tests.hub.errors import Refusal
from tests.hub.repository import Repository
from tests.hub.store import Store

REPOSITORY = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
REVISION = r"/(?P<revision>[^/]+)"
FILES = r"/(?:(?P<kind>dataset|space)s/)?(?P<name>[^/]+/[^/]+)"
"""Outside of the API a path without a kind is a model's."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request with what its path and its token say."""

    request: Request
    store: Store
    account: Account | None
    parts: Mapping[str, str]

    @property
    def address(self) -> str:
        return str(self.request.base_url).rstrip("/")

    @property
    def kind(self) -> str:
        return self.parts.get("kind", "model")

    def repository(self) -> Repository:
        return self.store.find(self.kind, self.parts["name"], self.account)

    def repository_to_write(self) -> Repository:
        return self.store.find_to_write(self.kind, self.parts["name"], self.account)

    def signed_in(self) -> Account:
        if self.account is None:
            raise Refusal(401, "Invalid username or password.")
        return self.account

    def repository_address(self, repository: Repository) -> str:
        prefix = "" if repository.kind == "model" else f"{repository.kind}s/"
        return f"{self.address}/{prefix}{repository.name}"


Endpoint: TypeAlias = Callable[[Call], Awaitable[Response]]
_ROUTES: list[tuple[frozenset[str], re.Pattern[str], Endpoint]] = []


def route(methods: str, pattern: str) -> Callable[[Endpoint], Endpoint]:
    """Puts a function into the table; the first that matches is asked."""

    def add(endpoint: Endpoint) -> Endpoint:
        _ROUTES.append((frozenset(methods.split()), re.compile(pattern), endpoint))
        return endpoint

    return add


async def answer(request: Request, store: Store) -> Response:
    try:
        return await _dispatch(request, store)
    except Refusal as refusal:
        body = {"error": refusal.message}
        return JSONResponse(body, refusal.status, headers=refusal.headers())


async def _dispatch(request: Request, store: Store) -> Response:
    path = request.scope["raw_path"].decode().split("?")[0]
    for methods, pattern, endpoint in _ROUTES:
        match = pattern.fullmatch(path)
        if match and request.method in methods:
            parts = {name: unquote(part) for name, part in match.groupdict().items() if part}
            return await endpoint(Call(request, store, _account(request), parts))
    raise Refusal(404, f"Sorry, we can't find the page you are looking for: {path}")


def _account(request: Request) -> Account | None:
    header = request.headers.get("authorization")
    if header is None:
        return None
    account = ACCOUNTS.get(header.removeprefix("Bearer "))
    if account is None:
        raise Refusal(401, "Invalid credentials in Authorization header")
    return account


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; none means an empty one."""
    body = await request.body()
    return (await request.json() or {}) if body else {}
