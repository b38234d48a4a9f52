"""The local Hub as a program: prints its address, then serves until it is told to end.

`/_test/…` is for the tests: `requests` lists what was asked, `faults` orders faults,
`calm` takes them back, `release` lets held requests go on, `forget` empties the list,
`reset` forgets everything.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

import tests.hub.reading
import tests.hub.talking
import tests.hub.writing  # noqa: F401  endpoints register themselves
from tests.hub.faults import Fault, strike
from tests.hub.routing import answer, json_body
from tests.hub.store import Store


class Hub:
    """The application."""

    def __init__(self) -> None:
        self.store = Store()
        self.faults: list[Fault] = []
        self.requests: list[dict[str, Any]] = []
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        if request.url.path.startswith("/_test/"):
            await (await self._order(request))(scope, receive, send)
            return
        asked = f"{request.method} {scope['raw_path'].decode()}"
        entry = self._log(asked)
        fault = next((fault for fault in self.faults if fault.strikes(asked)), None)
        await request.body()
        if fault is not None and fault.how == "hold" and await self._is_let_go(receive):
            fault = None
        reply = await self._reply(request, fault)
        entry["status"] = reply.status_code
        if fault is None:
            await reply(scope, receive, send)
        else:
            entry["status"] = None
            await strike(fault, reply, scope, receive, send)

    def _log(self, asked: str) -> dict[str, Any]:
        entry = {"asked": asked, "status": None}
        self.requests.append(entry)
        return entry

    async def _reply(self, request: Request, fault: Fault | None) -> Response:
        if fault is None or fault.applied or fault.how == "cut":
            return await answer(request, self.store)
        return Response()

    async def _is_let_go(self, receive: Receive) -> bool:
        """Waits until the request may go on, or its client is gone."""
        gone = asyncio.ensure_future(receive())
        go_on = asyncio.ensure_future(self.released.wait())
        await asyncio.wait((gone, go_on), return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        go_on.cancel()
        return self.released.is_set()

    async def _order(self, request: Request) -> Response:
        order = request.url.path.removeprefix("/_test/")
        if order == "faults":
            self.faults.append(Fault(**await json_body(request)))
        elif order == "reset":
            self.store, self.faults, self.requests = Store(), [], []
            self.released = asyncio.Event()
        elif order == "calm":
            self.faults.clear()
        elif order == "release":
            self.released.set()
        elif order == "forget":
            self.requests.clear()
        return JSONResponse(self.requests)


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Hub(), log_level="critical", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
