"""Endpoints of discussions and pull requests."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from tests.hub.accounts import may_write
from tests.hub.discussions import Discussion
from tests.hub.errors import Refusal
from tests.hub.repository import Repository
from tests.hub.routing import REPOSITORY, Call, json_body, route

DISCUSSIONS = rf"{REPOSITORY}/discussions"
NUMBER = r"/(?P<number>\d{1,9})"


@route("GET", DISCUSSIONS)
async def discussions(call: Call) -> Response:
    repository = call.repository()
    kind = call.request.query_params.get("type", "all")
    found = [
        discussion.overview(repository)
        for discussion in call.store.discussions_of(repository)
        if kind == "all" or (kind == "pull_request") == (discussion.base is not None)
    ]
    return JSONResponse({"discussions": found, "count": len(found), "start": 0})


@route("GET", DISCUSSIONS + NUMBER)
async def details(call: Call) -> Response:
    repository = call.repository()
    return JSONResponse(_discussion(call, repository).details(repository))


@route("POST", rf"{DISCUSSIONS}{NUMBER}/comment")
async def comment(call: Call) -> Response:
    repository, account = call.repository(), call.signed_in()
    text = (await json_body(call.request))["comment"]
    return JSONResponse({"newMessage": _discussion(call, repository).comment(account.name, text)})


@route("POST", rf"{DISCUSSIONS}{NUMBER}/merge")
async def merge(call: Call) -> Response:
    repository = call.repository()
    account = call.signed_in()
    if not may_write(account, repository.namespace):
        raise Refusal(403, "Forbidden: not yours")
    discussion = _discussion(call, repository)
    asked = await json_body(call.request)
    if "comment" in asked:
        discussion.comment(account.name, asked["comment"])
    discussion.merge(repository, account.name)
    return Response()


def _discussion(call: Call, repository: Repository) -> Discussion:
    return call.store.discussion(repository, int(call.parts["number"]))
