"""What the local Hub holds, and changes by somebody else: asked plainly, without its clients."""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.hub.accounts import OWNER_TOKEN
from tests.hub.server import LocalHub


@dataclass(frozen=True, slots=True)
class Held:
    """A dataset at a revision; `files` without .gitattributes, which every repository has."""

    head: str
    private: bool
    titles: list[str]
    tags: dict[str, str]
    files: dict[str, bytes]

    @property
    def texts(self) -> dict[str, str]:
        return {path: data.decode() for path, data in self.files.items()}


def look(hub: LocalHub, name: str, revision: str = "main") -> Held:
    api, at = f"/api/datasets/{name}", quote(revision, safe="")
    info = json.loads(ask(hub, f"{api}/revision/{at}"))
    files = {
        path: ask(hub, f"/datasets/{name}/resolve/{info['sha']}/{quote(path)}")
        for path in (sibling["rfilename"] for sibling in info["siblings"])
    }
    assert files.pop(".gitattributes").startswith(b"*.parquet")
    commits = json.loads(ask(hub, f"{api}/commits/{at}"))
    tags = json.loads(ask(hub, f"{api}/refs"))["tags"]
    return Held(
        info["sha"],
        info["private"],
        [commit["title"] for commit in commits],
        {tag["name"]: tag["targetCommit"] for tag in tags},
        files,
    )


def edit(hub: LocalHub, name: str, files: dict[str, str], revision: str = "main") -> None:
    """A commit of somebody who takes no notice of others."""
    lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": "edit"}}]
    for path, text in files.items():
        content = base64.b64encode(text.encode()).decode()
        lines.append({"key": "file", "value": {"path": path, "content": content}})
    body = "\n".join(map(json.dumps, lines)).encode()
    ask(hub, f"/api/datasets/{name}/commit/{quote(revision, safe='')}", body)


def merge(hub: LocalHub, name: str, number: int) -> None:
    ask(hub, f"/api/datasets/{name}/discussions/{number}/merge", b"{}")


def ask(hub: LocalHub, path: str, body: bytes | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {OWNER_TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(hub.address + path, body, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return bytes(reply.read())
