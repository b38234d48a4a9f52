"""The body of a commit request, one JSON object a line, applied to a tree."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from tests.hub.errors import Refusal, no_entry
from tests.hub.repository import Repository, StoredFile, Tree


@dataclass(slots=True)
class CommitRequest:
    title: str
    description: str
    parent: str | None
    operations: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def read_commit_request(body: bytes) -> CommitRequest:
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    if not lines or lines[0].get("key") != "header":
        raise Refusal(400, "Expected a header first")
    header = lines[0]["value"]
    return CommitRequest(
        header["summary"],
        header.get("description", ""),
        header.get("parentCommit"),
        [(line["key"], line["value"]) for line in lines[1:]],
    )


def changed_tree(repository: Repository, tree: Tree, request: CommitRequest) -> Tree:
    """The tree after all operations; it is not changed where one of them is refused."""
    files = dict(tree)
    for key, value in request.operations:
        path = value["path"]
        if key == "file":
            files[path] = StoredFile(base64.b64decode(value["content"], validate=True))
        elif key == "lfsFile":
            files[path] = _large_file(repository, value["oid"])
        elif key == "deletedFile":
            if files.pop(path, None) is None:
                raise no_entry(f"A file with this name doesn't exist: {path}")
        elif key == "deletedFolder":
            inside = [name for name in files if name.startswith(path.rstrip("/") + "/")]
            if not inside:
                raise no_entry(f"A folder with this name doesn't exist: {path}")
            for name in inside:
                del files[name]
        else:
            raise Refusal(400, f"Unknown operation: {key}")
    return files


def _large_file(repository: Repository, sha256: str) -> StoredFile:
    if sha256 not in repository.large_files:
        raise Refusal(400, f"LFS pointer to a file that was not uploaded: {sha256}")
    return StoredFile(repository.large_files[sha256], is_lfs=True)
