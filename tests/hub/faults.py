"""Faults on order: which request of a kind goes wrong, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

How = Literal["status", "drop", "cut", "hold"]


@dataclass
class Fault:
    """Requests whose `METHOD /raw/path` matches `kind`, but the first `skip`, fail `times` times.

    `status` is answered in place of the reply, with `body` (in which `{authorization}` is
    what the client sent, as servers do that echo headers); `drop` closes the connection
    without a reply, `cut` in the middle of it; `hold` keeps the client waiting until it is
    gone, or the tests say `release`. Where `applied`, the request does its work nevertheless.
    """

    kind: str
    how: How = "status"
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = "fault"
    skip: int = 0
    times: int = 1
    applied: bool = False

    def strikes(self, request: str) -> bool:
        """Whether this request is one that fails; counts it."""
        if not re.search(self.kind, request) or self.times <= 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


async def strike(fault: Fault, reply: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Says to a client what the fault wants it to hear, in place of the `reply`."""
    if fault.how == "status":
        said = Request(scope).headers.get("authorization", "")
        body = {"error": fault.body.replace("{authorization}", said)}
        headers = {
            name: text.replace("{authorization}", said).strip()
            for name, text in fault.headers.items()
        }
        await JSONResponse(body, fault.status, headers=headers)(scope, receive, send)
    elif fault.how == "cut":
        await reply(scope, receive, _half(send))
    elif fault.how == "drop":
        # uvicorn's own object for the request; ASGI has no word for hanging up.
        receive.__self__.transport.abort()  # type: ignore[attr-defined]


def _half(send: Send) -> Send:
    """Sends half of the body, and then nothing: the server closes the connection for that."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.body":
            half: dict[str, Any] = {"body": message["body"][: len(message["body"]) // 2]}
            await send({**message, **half, "more_body": True})
        else:
            await send(message)

    return sending
