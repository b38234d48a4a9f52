"""Endpoints that read: information, trees, references, files."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

import yaml
from starlette.responses import JSONResponse, Response

from tests.hub.errors import Refusal, no_entry
from tests.hub.repository import MAIN, Commit, Repository, StoredFile
from tests.hub.routing import FILES, REPOSITORY, REVISION, Call, route

PAGE_LENGTH = 20
"""Short, so that clients must ask for the next page."""


@route("GET", r"/api/whoami-v2")
async def who_am_i(call: Call) -> Response:
    account = call.signed_in()
    return JSONResponse(
        {
            "type": "user",
            "name": account.name,
            "orgs": [{"type": "org", "name": name} for name in account.organizations],
            "auth": {"type": "access_token", "accessToken": {"displayName": "t", "role": "write"}},
        }
    )


@route("GET", rf"{REPOSITORY}(?:/revision{REVISION})?")
async def information(call: Call) -> Response:
    repository = call.repository()
    commit = repository.resolve(call.parts.get("revision", MAIN))
    sizes = "blobs" in call.request.query_params
    return JSONResponse(
        {
            "_id": "0",
            "id": repository.name,
            "author": repository.namespace,
            "sha": commit.oid,
            "lastModified": commit.date,
            "createdAt": commit.date,
            "private": repository.private,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "cardData": _card_data(commit),
            "siblings": [_sibling(path, file, sizes) for path, file in commit.files.items()],
        }
    )


def _sibling(path: str, file: StoredFile, sizes: bool) -> dict[str, Any]:
    if not sizes:
        return {"rfilename": path}
    return {"rfilename": path, "size": len(file.data), "blobId": file.oid}


def _card_data(commit: Commit) -> dict[str, Any]:
    card = commit.files.get("README.md")
    head = re.match(r"---\n(.*?)\n---\n", card.data.decode() if card else "", re.DOTALL)
    return dict(yaml.safe_load(head[1]) or {}) if head else {}


@route("GET", rf"{REPOSITORY}/tree{REVISION}(?:/(?P<path>.+))?")
async def tree(call: Call) -> Response:
    asked = call.request.query_params
    commit = call.repository().resolve(call.parts["revision"])
    folder = f"{call.parts['path'].strip('/')}/" if "path" in call.parts else ""
    recursive = asked.get("recursive", "").lower() in ("true", "1")
    entries = _entries(commit, folder, recursive=recursive)
    if folder and not entries:
        raise no_entry(folder)
    start = int(asked.get("cursor", 0))
    page, more = entries[start : start + PAGE_LENGTH], entries[start + PAGE_LENGTH :]
    headers = {}
    if more:
        following = call.request.url.include_query_params(cursor=start + PAGE_LENGTH)
        raw = call.request.scope["raw_path"].decode()
        headers["Link"] = f'<{call.address}{raw}?{following.query}>; rel="next"'
    return JSONResponse(page, headers=headers)


def _entries(commit: Commit, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders below a folder, by path."""
    found: dict[str, dict[str, Any]] = {}
    for path, file in commit.files.items():
        if not path.startswith(folder):
            continue
        *folders, _ = path[len(folder) :].split("/")
        for depth in range(1, len(folders) + 1 if recursive else min(len(folders), 1) + 1):
            inner = folder + "/".join(folders[:depth])
            found[inner] = _folder_entry(inner)
        if recursive or not folders:
            found[path] = _file_entry(path, file)
    return [found[path] for path in sorted(found)]


def _folder_entry(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": "0" * 40, "size": 0, "path": path}


def _file_entry(path: str, file: StoredFile) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "file",
        "oid": file.oid,
        "size": len(file.data),
        "path": path,
    }
    if file.is_lfs:
        sizes = {"size": len(file.data), "pointerSize": len(file.pointer)}
        entry["lfs"] = {"oid": file.sha256, **sizes}
    return entry


@route("POST", rf"{REPOSITORY}/paths-info{REVISION}")
async def paths_information(call: Call) -> Response:
    commit = call.repository().resolve(call.parts["revision"])
    found = []
    for path in await _paths(call):
        if path in commit.files:
            found.append(_file_entry(path, commit.files[path]))
        elif any(name.startswith(path.rstrip("/") + "/") for name in commit.files):
            found.append(_folder_entry(path))
    return JSONResponse(found)


async def _paths(call: Call) -> list[str]:
    if "json" in call.request.headers.get("content-type", ""):
        return list((await call.request.json())["paths"])
    return parse_qs((await call.request.body()).decode()).get("paths", [])


@route("GET", rf"{REPOSITORY}/refs")
async def references(call: Call) -> Response:
    repository = call.repository()
    found: dict[str, list[dict[str, str]]] = {
        "branches": _references(repository, "refs/heads/"),
        "tags": _references(repository, "refs/tags/"),
        "converts": [],
    }
    if "include_prs" in call.request.query_params:
        found["pullRequests"] = _references(repository, "refs/pr/")
    return JSONResponse(found)


def _references(repository: Repository, prefix: str) -> list[dict[str, str]]:
    return [
        {"name": name.removeprefix(prefix), "ref": name, "targetCommit": commit.oid}
        for name, commit in repository.references.items()
        if name.startswith(prefix)
    ]


@route("GET", rf"{REPOSITORY}/commits{REVISION}")
async def commits(call: Call) -> Response:
    head = call.repository().resolve(call.parts["revision"])
    return JSONResponse(
        [
            {
                "id": commit.oid,
                "title": commit.title,
                "message": commit.description,
                "date": commit.date,
                "authors": [{"user": commit.author}],
            }
            for commit in head.history()
        ]
    )


@route("GET HEAD", rf"{FILES}/resolve{REVISION}/(?P<path>.+)")
async def resolve(call: Call) -> Response:
    path = call.parts["path"]
    commit, file = call.repository().file(call.parts["revision"], path)
    headers = {
        "X-Repo-Commit": commit.oid,
        "ETag": f'"{file.content_oid}"',
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'inline; filename="{path.rsplit("/", 1)[-1]}"',
    }
    if file.is_lfs:
        headers["X-Linked-Etag"] = f'"{file.sha256}"'
        headers["X-Linked-Size"] = str(len(file.data))
    start, end = 0, len(file.data)
    asked = call.request.headers.get("range")
    if asked is not None:
        start, end = _range(asked, len(file.data))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(file.data)}"
    content = file.data[start:end]
    body = b"" if call.request.method == "HEAD" else content
    headers["Content-Length"] = str(len(content))
    return Response(
        body, 206 if asked else 200, headers=headers, media_type="application/octet-stream"
    )


def _range(asked: str, size: int) -> tuple[int, int]:
    """First byte and one past the last of a single range."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked)
    if match is None or match[0] == "bytes=-":
        raise Refusal(416, f"Invalid range: {asked}")
    if not match[1]:
        return max(size - int(match[2]), 0), size
    start, end = int(match[1]), min(int(match[2] or size - 1) + 1, size)
    if start >= end:
        raise Refusal(416, f"Invalid range: {asked}")
    return start, end
