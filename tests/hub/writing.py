"""Endpoints that write: repositories, references, uploads, commits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import yaml
from starlette.responses import JSONResponse, Response

from tests.hub.accounts import may_write
from tests.hub.commits import read_commit_request
from tests.hub.errors import Refusal
from tests.hub.repository import MAIN, Repository
from tests.hub.routing import FILES, REPOSITORY, REVISION, Call, json_body, route

LARGE_SUFFIXES = (".parquet", ".arrow", ".safetensors", ".bin", ".png", ".zip", ".gz")
LARGE_BYTES = 10 << 20


@route("POST", r"/api/repos/create")
async def create(call: Call) -> Response:
    account = call.signed_in()
    asked = await json_body(call.request)
    name = f"{asked.get('organization') or account.name}/{asked['name']}"
    private = asked.get("visibility") == "private" or bool(asked.get("private"))
    made = call.store.create(asked.get("type", "model"), name, account, private=private)
    return JSONResponse({"url": call.repository_address(made), "name": name, "id": "0"})


@route("POST", rf"{REPOSITORY}/tag{REVISION}")
async def tag(call: Call) -> Response:
    repository = call.repository_to_write()
    name = (await json_body(call.request))["tag"]
    commit = repository.resolve(call.parts["revision"])
    repository.create_reference(f"refs/tags/{name}", commit)
    return Response()


@route("POST", rf"{REPOSITORY}/branch/(?P<branch>[^/]+)")
async def branch(call: Call) -> Response:
    repository = call.repository_to_write()
    start = (await json_body(call.request)).get("startingPoint", MAIN)
    repository.create_reference(f"refs/heads/{call.parts['branch']}", repository.resolve(start))
    return Response()


@route("POST", r"/api/validate-yaml")
async def validate_card(call: Call) -> Response:
    content = (await json_body(call.request))["content"]
    try:
        head = yaml.safe_load(content.split("---")[1]) if content.startswith("---") else {}
    except yaml.YAMLError as error:
        return JSONResponse({"errors": [{"message": str(error)}], "warnings": []}, 400)
    warnings = [] if head else [{"message": "empty or missing yaml metadata in repo card"}]
    return JSONResponse({"errors": [], "warnings": warnings})


def _repository_to_change(call: Call) -> Repository:
    """Anybody who may read may propose; only members may change."""
    if "create_pr" in call.request.query_params or call.parts.get("revision", "").startswith(
        "refs/pr/"
    ):
        call.signed_in()
        return call.repository()
    return call.repository_to_write()


@route("POST", rf"{REPOSITORY}/preupload{REVISION}")
async def before_upload(call: Call) -> Response:
    repository = _repository_to_change(call)
    present = repository.resolve(call.parts["revision"]).files
    answers = []
    for file in (await json_body(call.request))["files"]:
        path = file["path"]
        large = path.endswith(LARGE_SUFFIXES) or file["size"] > LARGE_BYTES
        answer = {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        if path in present:
            answer["oid"] = present[path].content_oid
        answers.append(answer)
    return JSONResponse({"files": answers})


@route("POST", rf"{FILES}\.git/info/lfs/objects/batch")
async def large_files(call: Call) -> Response:
    """What is still to be sent: nothing for a file that is already here."""
    repository = call.repository()
    body = await json_body(call.request)
    if not may_write(call.signed_in(), repository.namespace):
        _check_may_propose(body)
    root = f"{call.address}/_lfs/{repository.kind}/{repository.name}"
    objects = []
    for asked in body["objects"]:
        answer = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] not in repository.large_files:
            upload, verify = f"{root}/{asked['oid']}", f"{root}/{asked['oid']}/verify"
            answer["actions"] = {"upload": {"href": upload}, "verify": {"href": verify}}
        objects.append(answer)
    return JSONResponse({"transfer": "basic", "objects": objects})


def _check_may_propose(body: Mapping[str, object]) -> None:
    """For a pull request clients name no branch here, and may upload without being members."""
    if "ref" in body and not str(body["ref"]).count("refs/pr/"):
        raise Refusal(403, "Forbidden: you must use a write token to upload to a repository.")


_LFS = r"/_lfs/(?P<kind>model|dataset|space)/(?P<name>[^/]+/[^/]+)/(?P<oid>[0-9a-f]{64})"


@route("PUT", _LFS)
async def upload(call: Call) -> Response:
    # The address is the permission, as with signed ones: clients send no token here.
    repository = call.store.repositories[call.parts["kind"], call.parts["name"]]
    data = await call.request.body()
    if hashlib.sha256(data).hexdigest() != call.parts["oid"]:
        raise Refusal(400, "The content is not what its hash says")
    repository.large_files[call.parts["oid"]] = data
    return Response()


@route("POST", rf"{_LFS}/verify")
async def verify(call: Call) -> Response:
    stored = call.repository().large_files.get(call.parts["oid"])
    if stored is None or len(stored) != (await json_body(call.request))["size"]:
        raise Refusal(404, "There is no such upload")
    return Response()


@route("POST", rf"{REPOSITORY}/commit{REVISION}")
async def commit(call: Call) -> Response:
    repository, revision = _repository_to_change(call), call.parts["revision"]
    request = read_commit_request(await call.request.body())
    author = call.signed_in().name
    address = call.repository_address(repository)
    answer = {}
    if "create_pr" in call.request.query_params:
        made, opened = call.store.commit_as_pull_request(repository, revision, request, author)
        answer["pullRequestUrl"] = f"{address}/discussions/{opened.number}"
    else:
        made = call.store.commit(repository, revision, request, author)
    answer |= {"commitUrl": f"{address}/commit/{made.oid}", "commitOid": made.oid, "success": "1"}
    return JSONResponse(answer)
