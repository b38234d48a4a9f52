"""Discussions and pull requests of a repository."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.hub.errors import Refusal
from tests.hub.repository import MAIN, Commit, Repository, StoredFile, Tree, at


@dataclass
class Discussion:
    """A pull request where it has a `base`, the commit that it started from."""

    number: int
    title: str
    author: str
    base: Commit | None = None
    target: str = f"refs/heads/{MAIN}"
    status: str = "open"
    merged_as: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def reference(self) -> str:
        return f"refs/pr/{self.number}"

    def add_event(self, kind: str, author: str, data: dict[str, Any]) -> dict[str, Any]:
        event = {
            "id": f"{self.number:04x}{len(self.events):04x}",
            "type": kind,
            "author": {"name": author},
            "createdAt": at(len(self.events)),
            "data": data,
        }
        self.events.append(event)
        return event

    def comment(self, author: str, text: str) -> dict[str, Any]:
        content = {"latest": {"raw": text}, "edited": False, "hidden": False}
        return self.add_event("comment", author, content)

    def change_status(self, author: str, status: str) -> dict[str, Any]:
        self.status = status
        return self.add_event("status-change", author, {"status": status})

    def overview(self, repository: Repository) -> dict[str, Any]:
        return {
            "num": self.number,
            "title": self.title,
            "author": {"name": self.author},
            "status": self.status,
            "createdAt": at(self.number),
            "isPullRequest": self.base is not None,
            "repo": {"name": repository.name, "type": repository.kind},
        }

    def details(self, repository: Repository) -> dict[str, Any]:
        found = self.overview(repository) | {"events": self.events}
        if self.base is not None:
            conflicts = [] if self.status == "merged" else self.conflicts(repository)
            found["changes"] = {"base": self.target, "mergeCommitId": self.merged_as}
            found["filesWithConflicts"] = conflicts
            found["diff"] = "\n".join(sorted(self.changes(repository)))
        return found

    def changes(self, repository: Repository) -> dict[str, StoredFile | None]:
        """What this pull request makes of each path that it touches."""
        assert self.base is not None
        return _difference(self.base.files, repository.references[self.reference].files)

    def conflicts(self, repository: Repository) -> list[str]:
        """Paths to which this and the branch have done different things since."""
        assert self.base is not None
        mine = self.changes(repository)
        theirs = _difference(self.base.files, repository.references[self.target].files)
        return sorted(path for path in mine.keys() & theirs.keys() if mine[path] != theirs[path])

    def merge(self, repository: Repository, author: str) -> Commit:
        if self.base is None or self.status != "open":
            raise Refusal(400, "Not an open pull request")
        if self.conflicts(repository):
            raise Refusal(409, "This pull request has conflicts")
        onto = repository.references[self.target]
        files: dict[str, StoredFile] = dict(onto.files)
        for path, file in self.changes(repository).items():
            if file is None:
                files.pop(path, None)
            else:
                files[path] = file
        commit = repository.commit(onto, files, f"{self.title} (#{self.number})", "", author)
        repository.references[self.target] = commit
        self.merged_as = commit.oid
        self.change_status(author, "merged")
        return commit


def _difference(before: Tree, after: Tree) -> dict[str, StoredFile | None]:
    paths = before.keys() | after.keys()
    return {path: after.get(path) for path in paths if before.get(path) != after.get(path)}
